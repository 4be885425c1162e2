"""What purges have found, put aside on this machine's disk: topics in which nothing is to be done before a time.

    cache/purges/users.json    users lay at 00042-….metadata.json when it was purged: nothing to do before 14:00

It is only ever a reason to leave a topic alone, and never longer than a day (``quiet``); nothing is deleted because of
it. It holds for the settings and the grace it was made with. What the purge had to
tell is kept with it, so that it is told again. The files may be deleted at any time; one that is damaged
counts as none. Where there is none, or another machine purges, each purge looks.

The folder ``cache`` is bounded by the topics that there are: a purge of all of them removes what is of no topic.
"""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from keptlog.errors import InvalidConfig
from keptlog.foreign_json import json_value
from keptlog.log.topic_partition import valid_topic_name
from keptlog.regular_file import read_file
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.reading.cache import ENDINGS, ENTRY, FOLDER
from keptlog.table.removal.held import HeldFile
from keptlog.whole_file import make_home_folder, replace_file

_PURGES = "purges"
_UNFINISHED_MS = 12 * 3_600_000
"""No file of the folder is written for so long."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Finding:
    location: str
    at_ms: int
    until_ms: int
    settings: int
    """Checksum of the broker settings."""
    orphan_grace_ms: int
    held: tuple[tuple[str, int, str], ...]
    not_looked_at: tuple[str, ...]
    """What was still to be told."""


@dataclass(frozen=True)
class PurgeMemory:
    """Of one home. Kept where there is a home; beside a configured catalog (``is_made``) the folder is made for it."""

    home: Path
    broker_settings: Mapping[str, str]
    is_made: bool = False

    def quiet(self, topic: str, location: str, now_ms: int, orphan_grace_ms: int) -> PurgeReceipt | None:
        """What a purge of a topic would tell, if it has nothing to do while its metadata lies there; else null."""
        try:
            found = _Finding(**json_value(read_file(self._path(topic))))
            made_with = (found.location, found.settings, found.orphan_grace_ms)
            is_same = made_with == (location, self._settings, orphan_grace_ms)
            if not (location and is_same and found.at_ms <= now_ms < found.until_ms):
                return None
            held = tuple(HeldFile(*each) for each in found.held)
            return PurgeReceipt(topic, (), (), (), (), held=held, not_looked_at=tuple(found.not_looked_at))
        except (OSError, ValueError, TypeError):
            return None

    def forget_others(self, topics: Collection[str], now_ms: int) -> None:
        """Remove what this machine remembers of topics that are gone, and what writers have left that were killed."""
        current = {f"{topic}{ending}" for topic in topics for ending in ENDINGS}
        for folder in (self.home / FOLDER, self.home / FOLDER / _PURGES):
            with contextlib.suppress(OSError):
                for path in [each for each in folder.iterdir() if each.is_file() and each.name not in current]:
                    if path.suffix in ENDINGS or path.stat().st_mtime_ns // 1_000_000 < now_ms - _UNFINISHED_MS:
                        path.unlink(missing_ok=True)

    def begin(self, topic: str) -> None:
        """A purge begins: who is killed in it leaves something to do."""
        with contextlib.suppress(OSError, InvalidConfig):
            self._path(topic).unlink()

    def end(self, receipt: PurgeReceipt, now_ms: int, orphan_grace_ms: int) -> None:
        """Remember what a purge has found; what can't be written is not remembered."""
        if receipt.quiet is None:
            return
        held = tuple((each.path, each.bytes, each.holder) for each in receipt.held)
        until_ms, told = receipt.quiet.until_ms, (held, receipt.not_looked_at)
        found = _Finding(receipt.quiet.location, now_ms, until_ms, self._settings, orphan_grace_ms, *told)
        try:
            path = self._path(receipt.topic)
            if self.is_made or self.home.is_dir():
                self.home.mkdir(parents=True, exist_ok=True)
                for folder in (path.parent.parent, path.parent):
                    make_home_folder(folder)
                replace_file(path, json.dumps(asdict(found)).encode())
        except (OSError, InvalidConfig) as error:
            _logger.debug("topic %s: what was found can't be remembered: %s", receipt.topic, error)

    @property
    def _settings(self) -> int:
        return zlib.crc32(json.dumps(sorted(self.broker_settings.items())).encode())

    def _path(self, topic: str) -> Path:
        """Raises InvalidConfig for a table that is no topic: its name could lead out of the folder."""
        return self.home / FOLDER / _PURGES / f"{valid_topic_name(topic)}{ENTRY}"
