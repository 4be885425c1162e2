"""What was read of the topics, put aside on this machine's disk for the next process that only wants to look.

A command has no memory, and a sensor's process forgets when it is restarted; reading a thousand tables again takes
seconds. So what a table said is kept in one small file a topic, under the metadata location at which it said so. Every
commit moves that location, so an entry that is found is right, and one that is not is read from the table. So it is
where the files that said it are lost or cut off (``metadata_files``), and whoever reads them says so.

It is never the truth. Whoever changes a log reads the table itself. The folder may be deleted at any time; a file that
is damaged, or of another version, counts as none; of two processes that write one, the last one wins.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any

from keptlog.errors import InvalidConfig
from keptlog.foreign_json import json_value
from keptlog.log.holder import Held, HolderKind
from keptlog.log.segment import Segment
from keptlog.log.topic_partition import valid_topic_name
from keptlog.regular_file import read_file
from keptlog.table.metadata.format import FORMAT_VERSION
from keptlog.table.metadata.logs import StoredTopic
from keptlog.table.metadata.metadata_files import are_whole
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, STATE_PREFIX
from keptlog.table.metadata.state import COMMENT, OWNERS
from keptlog.whole_file import make_home_folder, something_random

_logger = logging.getLogger(__name__)

FOLDER = "cache"
ENTRY, STANDING = ".json", ".standing"
"""How files of a topic end: what its table says, and how its logs stand by it (``keptlog.table.reading.standings``)."""
ENDINGS = ENTRY, STANDING
_COLUMNS = [field.name for field in fields(Segment)]
_HELD_COLUMNS = ["kind", "since_ms", "files", "bytes", "name", "partition"]
_KEPT_UNTIL = "kept_until_ms"
"""One column more, but only of a tag or a branch that ends."""
_PROPERTIES = [FORMAT_VERSION, STATE_PREFIX, CONFIG_PREFIX, COMMENT, OWNERS]
"""How the names of those properties begin that are kept.

With the columns it is the version: an entry of a keptlog with others counts as none, but further fields are read over.
"""
_LINEAGE = "own"
"""Only topics whose snapshot and state belong together are kept; a keptlog that did not ask has not said so."""
_PARTITIONED = "by each file's spec"
"""How it was told in which log a file is; a keptlog that took all files for partitioned by our spec has not said so."""


@dataclass(frozen=True, slots=True)
class TopicCache:
    """The entries in one home.

    None are kept where there is no home: a look makes nothing that was not there. But beside a configured catalog,
    whose topics are elsewhere, ``is_made`` says that the folder is made for them alone.
    """

    home: Path
    is_made: bool = False

    def get(self, topic: str, location: str) -> StoredTopic | None:
        """What the topic's table says at a metadata location, if it is known and the files that say it are there."""
        stored = self._known(topic, location)
        return stored if stored and are_whole(stored.metadata_files) else None

    def _known(self, topic: str, location: str) -> StoredTopic | None:
        try:
            if (text := self.read(topic, ENTRY)) is None:
                return None
            entry = json_value(text)
            version = [entry["columns"], entry["kept"], entry["lineage"], entry["partitioned"]]
            if [entry["location"], *version] != [location, _COLUMNS, _PROPERTIES, _LINEAGE, _PARTITIONED]:
                return None
            return _stored(topic, entry)
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def put(self, stored: StoredTopic) -> None:
        """Remember it, instead of what was known of the topic. What can't be written is not remembered."""
        self.write(stored.topic, ENTRY, json.dumps(_entry(stored), separators=(",", ":")).encode())
        # It is of what was known until now.
        self._forget(stored.topic, STANDING)

    def read(self, topic: str, ending: str) -> bytes | None:
        """What was written of a topic; null if it is damaged.

        Raises:
            OSError, ValueError: it is not there, or can't be read.
        """
        checksum, _, text = read_file(self._path(topic, ending)).partition(b"\n")
        return text if int(checksum, 16) == zlib.crc32(text) else None

    def write(self, topic: str, ending: str, text: bytes) -> None:
        """Write something of a topic, instead of what was there; or nothing, if that can't be."""
        try:
            if self.is_made:
                self.home.mkdir(parents=True, exist_ok=True)
            if self.home.is_dir():
                self._write(self._path(topic, ending), b"%08x\n" % zlib.crc32(text) + text)
        except InvalidConfig:
            return
        except OSError as error:
            if self.is_made:
                _tell_once(self.home / FOLDER, error.strerror)

    def forget(self, topic: str) -> None:
        """Remove all of the topic."""
        for ending in ENDINGS:
            self._forget(topic, ending)

    def _forget(self, topic: str, ending: str) -> None:
        with contextlib.suppress(OSError, InvalidConfig):
            self._path(topic, ending).unlink()

    def outdated(self, locations: Mapping[str, str]) -> list[Held]:
        """Files of the folder that are not of a topic as it is now: ``locations`` says where each is."""
        topics = [topic for topic, location in locations.items() if self._known(topic, location)]
        current = {self._path(topic, ending) for topic in topics for ending in ENDINGS}
        held = []
        with contextlib.suppress(OSError):
            for path in sorted((self.home / FOLDER).iterdir()):
                if path not in current and path.is_file():
                    status = path.stat()
                    since_ms = status.st_mtime_ns // 1_000_000
                    held.append(Held(HolderKind.CACHE, since_ms, 1, status.st_size, path=str(path)))
        return held

    def _write(self, path: Path, content: bytes) -> None:
        make_home_folder(path.parent)
        written = path.with_name(f"tmp{something_random()}")
        try:
            # With the rights that the umask gives, as the table's own metadata has: users of a group share a home.
            written.write_bytes(content)
            written.replace(path)
        except OSError:
            written.unlink(missing_ok=True)
            raise

    def _path(self, topic: str, ending: str) -> Path:
        """Its file with this ending.

        Raises:
            InvalidConfig: no topic is called so, but some other table may be: its name could lead out of the folder.
        """
        return self.home / FOLDER / f"{valid_topic_name(topic)}{ending}"


@lru_cache(maxsize=16)
def _tell_once(folder: Path, why: str | None) -> None:
    told = "nothing is remembered of topics, so that each process reads all of them: %s can't be written (%s); %s"
    _logger.warning(told, folder, why, "set KEPTLOG_HOME to a folder that can")


def _entry(stored: StoredTopic) -> dict[str, Any]:
    """Column by column, which is read in a third of the time."""
    segments = [segment for of_partition in stored.segments.values() for segment in of_partition]
    prefix = os.path.commonprefix([segment.path for segment in segments])  # noqa: RUF071  # characters are meant
    return {
        "location": stored.location,
        "columns": _COLUMNS,
        "kept": _PROPERTIES,
        "lineage": _LINEAGE,
        "partitioned": _PARTITIONED,
        "properties": {name: value for name, value in stored.properties.items() if name.startswith(tuple(_PROPERTIES))},
        "counts": [[partition, len(of_partition)] for partition, of_partition in stored.segments.items()],
        "prefix": prefix,
        "paths": [segment.path[len(prefix) :] for segment in segments],
        "held": held_as_lists(stored.held),
        "metadata_files": stored.metadata_files,
        "topic_id": stored.topic_id,
        "numbers": [[getattr(segment, column) for segment in segments] for column in _COLUMNS[1:]],
    }


def _stored(topic: str, entry: dict[str, Any]) -> StoredTopic:
    segments = _segments([entry["prefix"] + path for path in entry["paths"]], entry["numbers"])
    by_partition: dict[int, tuple[Segment, ...]] = {}
    start = 0
    for partition, count in entry["counts"]:
        by_partition[partition] = segments[start : start + count]
        start += count
    if start != len(segments):
        raise ValueError("other segments than were counted")
    held, said_by = held_of_lists(entry["held"]), tuple((path, size) for path, size in entry["metadata_files"])
    topic_id = entry.get("topic_id")
    return StoredTopic(topic, entry["location"], entry["properties"], by_partition, held, said_by, topic_id)


def held_as_lists(held: Iterable[Held]) -> list[list[Any]]:
    """What a table tells of bytes that are not live, for JSON."""
    return [[getattr(each, column) for column in _held_columns(each)] for each in held]


def held_of_lists(lists: Iterable[list[Any]]) -> tuple[Held, ...]:
    """The same from JSON."""
    return tuple(_held(*each) for each in lists)


def _held_columns(held: Held) -> list[str]:
    return _HELD_COLUMNS if held.kept_until_ms is None else [*_HELD_COLUMNS, _KEPT_UNTIL]


def _held(kind: str, *rest: Any) -> Held:
    columns = dict(zip(_HELD_COLUMNS[1:], rest, strict=False))
    kept_until_ms = rest[len(columns)] if len(rest) > len(columns) else None
    return Held(HolderKind(kind), **columns, kept_until_ms=kept_until_ms)


def _segments(paths: list[str], numbers: list[list[Any]]) -> tuple[Segment, ...]:
    """Column by column, which makes them in a fifth of the time: half a million of them are read in a large home.

    Raises:
        ValueError: the columns are not equally long.
    """
    columns = [paths, *numbers]
    if {len(column) for column in columns} != {len(paths)} or len(columns) != len(_COLUMNS):
        raise ValueError("columns of other lengths")
    segments = tuple(map(object.__new__, repeat(Segment, len(paths))))
    for name, column in zip(_COLUMNS, columns, strict=True):
        deque(map(getattr(Segment, name).__set__, segments, column), maxlen=0)  # the slot: it is frozen for others
    return segments
