"""What was done to a topic, kept beyond the snapshots that tell it.

A commit says in its snapshot's summary what it cost. So that is known if the commit has landed, and only then, without
another request (ADR 59). But a purge expires snapshots. What it is about to forget it writes down before, in one file
a day:

    snapshots    3 clean   4 append   5 clean          3 and 4 are to be expired
    file         3 clean   4 append                    metadata/receipts/history/2026-11-23-<id>.json
    snapshots                         5 clean          after the commit

Whoever reads takes both, each snapshot once; so it does no harm if the commit does not land, or if two purges write
down the same. A purge that finds a file of its day writes another with all that is in it, and then deletes it: so there
are few files, and none is ever changed. Where one before could not be deleted, the next purge deletes it, and merges
none. A file is deleted ``keptlog.history.retention.ms`` after its day.

It is nobody's proof, and nothing is decided by it: a file that is damaged or gone costs only what it told. While a key
is to be erased, a purge deletes damaged ones: nobody can look them through (``unreadable_entries``). What is deleted
for good has receipts (``keptlog.receipts``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, LogCorrupt, first_line
from keptlog.log.told.history import HistoryEntry, PassCost
from keptlog.log.words.iso_time import iso_time, time_from
from keptlog.regular_file import NotAFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID
from keptlog.table.metadata.lineage import is_ours, summary_of
from keptlog.table.metadata.stored_json import from_json, to_json

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

COST = "keptlog.cost"
"""Snapshot summary property: what a clean or a drop has cost, as JSON."""
_DAY_MS = 24 * 3_600_000
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-[^/]+\.json")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The content of a file."""

    topic_id: str
    """A topic that was created again under the same name has the same folder."""
    entries: tuple[HistoryEntry, ...]


def remember_entries(
    files: TableFiles, table: Table, expiring: Iterable[Snapshot], new_id: str, now_ms: int
) -> list[str]:
    """Write down what these snapshots tell; to be called before the commit that expires them.

    Gives the files that are in the new one whole, and are to be deleted.
    """
    entries = {each.snapshot_id: each for each in map(_entry, expiring)}
    if not entries:
        return []
    day = iso_time(now_ms)[:10]
    of_today = [path for path, of_day in _paths(files, table.location()) if of_day == day]
    before = {path: read for path in of_today if (read := _read(files, table, path)) is not None}
    left = _told_by_others(before)
    # They could not be deleted. While they can't be, what is merged would be written again and again.
    for read in () if left else before.values():
        entries = {each.snapshot_id: each for each in read} | entries
    stored = StoredHistory(str(table.metadata.table_uuid), tuple(entries.values()))
    files.write_bytes(f"{_folder(table.location())}{day}-{new_id}.json", to_json(stored).encode())
    return left or list(before)


def _told_by_others(stored: Mapping[str, Sequence[HistoryEntry]]) -> list[str]:
    """The files of which each entry is in another one, too, that is not among them."""
    ids = {path: {each.snapshot_id for each in entries} for path, entries in stored.items()}
    left: list[str] = []
    for path, own in ids.items():
        others = set[int]().union(*(ids[other] for other in ids if other != path and other not in left))
        if len(ids) > 1 and own <= others:
            left.append(path)
    return left


def outdated_entries(files: TableFiles, location: str, now_ms: int, retention_ms: int) -> list[str]:
    """The files of what was written down longer ago than that, of the topic at a location."""
    oldest = _oldest_day(now_ms, retention_ms)
    return [path for path, day in _paths(files, location) if day < oldest]


def outdated_from_ms(path: str, location: str, retention_ms: int) -> int | None:
    """From when on that tells so of a file; null for one that is called as none of the history is."""
    name = _NAME.fullmatch(path.removeprefix(_folder(location)))
    try:
        return time_from(name[1], 0) + retention_ms + 2 * _DAY_MS if name else None
    except InvalidConfig:  # no day of a calendar: keptlog has not written it
        return None


def unreadable_entries(files: TableFiles, table: Table, moment_ms: int) -> list[str]:
    """What was written before a moment and can't be understood: an erasure waits until it is looked through."""
    folder = _folder(table.location())
    old = [file.path for file in files.list(folder) if file.modified_ms <= moment_ms]
    named = [path for path in old if _NAME.fullmatch(path.removeprefix(folder)) and _read(files, table, path) is None]
    for path in named:
        _logger.warning("%s is deleted: nothing is decided by it, and an erasure would wait for it", path)
    return named


def history_of(files: TableFiles, table: Table, now_ms: int, retention_ms: int) -> list[HistoryEntry]:
    """All that is remembered of a topic, earliest first."""
    oldest = _oldest_day(now_ms, retention_ms)
    found: dict[int, HistoryEntry] = {}
    seen = set[str]()
    # A purge may merge a file that is listed and not read yet. The one that has taken its place is in the next list.
    while new := [path for path, day in _paths(files, table.location()) if day >= oldest and path not in seen]:
        seen.update(new)
        for path in new:
            found |= {each.snapshot_id: each for each in _read(files, table, path) or ()}
    found |= {each.snapshot_id: each for each in map(_entry, table.metadata.snapshots)}
    return sorted(found.values(), key=lambda each: (each.at_ms, each.snapshot_id))


def _entry(snapshot: Snapshot) -> HistoryEntry:
    summary = summary_of(snapshot)
    operation = snapshot.summary.operation.value if snapshot.summary else "commit"
    return HistoryEntry(
        snapshot.snapshot_id,
        snapshot.timestamp_ms,
        summary.get(OPERATION, operation),
        is_own=is_ours(snapshot),
        run_id=summary.get(RUN_ID),
        records_added=_number(summary, "added-records"),
        records_removed=_number(summary, "deleted-records"),
        bytes_added=_number(summary, "added-files-size"),
        bytes_removed=_number(summary, "removed-files-size"),
        files_added=_number(summary, "added-data-files"),
        files_removed=_number(summary, "deleted-data-files"),
        cost=_cost(summary.get(COST)),
    )


def _number(summary: Mapping[str, str], name: str) -> int:
    text = summary.get(name, "")
    return int(text) if text.isdecimal() else 0


def _cost(text: str | None) -> PassCost | None:
    """What a snapshot says that it has cost; null if it says nothing that can be understood."""
    if not text:
        return None
    try:
        return from_json(PassCost, text, COST, "cost of a pass", "nothing needs it")
    except LogCorrupt:
        return None


def _read(files: TableFiles, table: Table, path: str) -> Sequence[HistoryEntry] | None:
    """The entries of a file; none if they are of another topic, null if it can't be understood, or is gone."""
    try:
        content = files.read_bytes(path).decode()
        stored = from_json(StoredHistory, content, path, "history of a topic", "delete it: nothing is decided by it")
    except FileNotFoundError:  # a purge has just written it anew, or forgotten it
        return None
    except (LogCorrupt, UnicodeDecodeError, NotAFile) as error:
        _logger.warning("what %s tells of the history is not known: %s", path, first_line(error))
        return None
    is_of_topic = stored.topic_id == str(table.metadata.table_uuid)
    return stored.entries if is_of_topic else ()


def _paths(files: TableFiles, location: str) -> list[tuple[str, str]]:
    """The files that there are, each with its day."""
    folder = _folder(location)
    named = ((file.path, _NAME.fullmatch(file.path.removeprefix(folder))) for file in files.list(folder))
    return sorted((path, name[1]) for path, name in named if name)


def is_history(path: str, location: str) -> bool:
    """Whether a file of the topic at a location is called as the files of its history are."""
    return bool(_NAME.fullmatch(path.removeprefix(_folder(location))))


def _oldest_day(now_ms: int, retention_ms: int) -> str:
    return iso_time(max(now_ms - retention_ms - _DAY_MS, 0))[:10]


def _folder(location: str) -> str:
    return f"{location}/metadata/receipts/history/"
