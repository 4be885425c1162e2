"""What of a log's files is not in storage as the table says, as far as a list of names and sizes tells.

    the table says    [ a: 100 bytes ][ b: 80 bytes ][ c: 90 bytes ]
    the storage has   [ a: 100 bytes ]               [ c: 12 bytes ]     b is missing, c is damaged

A clean of such a log fails, and so does every reader. What is inside of a file of the right size, ``verify`` looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keptlog.log.segment import Log, Segment

MENDING = "put the file back from a copy of the storage"
MENDING_IF_GONE = f"{MENDING}, unless the catalog was put back from a backup (keptlog doctor tells)"
"""Of metadata: an older catalog names files that a purge has deleted since, and nothing of the lake is lost."""


@dataclass(frozen=True, slots=True)
class WrongFile:
    """A live file that is not in storage as the table says."""

    path: str
    what: str
    """What is wrong with it, in one clause."""
    is_missing: bool
    """Else it has another length."""
    todo: str = MENDING

    def __str__(self) -> str:
        return f"{self.what}; {self.todo}"


@dataclass(frozen=True, slots=True)
class FilesOnDisk:
    """Files of logs on a disk: what is asked of it, without the logs."""

    folder: str
    """Of all of them; names are below it."""
    names: Sequence[str]
    sizes: Sequence[int | None]
    """In bytes, name by name; null for a file of which the table keeps none."""


def why_no_purge(path: str, todo: str = "put it back from a copy of the storage") -> str:
    """What keeps a purge from deleting anything of a topic that has lost this live file, and what to do."""
    return f"live file {path} is not there, and no purge deletes anything: {todo}"


def live_paths(log: Log) -> list[str]:
    """The files that a log consists of."""
    return [segment.path for segment in log.segments] + ([log.watermarks_path] if log.watermarks_path else [])


def wrong_files(log: Log, size_of: Callable[[str], int | None]) -> list[WrongFile]:
    """What is wrong with a log's files; ``size_of`` says how many bytes a path has, null if it is gone.

    Of a file of watermarks the table keeps no size: it may only be missing.
    """
    found: list[WrongFile] = []
    for segment in log.segments:
        size_bytes = size_of(segment.path)
        if size_bytes is None:
            found.append(lost_segment(log, segment))
        elif size_bytes != segment.size_bytes:
            what = _damaged(segment.path, f"has {size_bytes} bytes, not {segment.size_bytes}")
            found.append(WrongFile(segment.path, what, is_missing=False))
    if log.watermarks_path and size_of(log.watermarks_path) is None:
        found.append(lost_watermarks(log, log.watermarks_path))
    return found


def lost_segment(log: Log, segment: Segment) -> WrongFile:
    """A segment that is not in storage."""
    name = f"segment {segment.path} (offsets {segment.base_offset} to {segment.last_offset})"
    return WrongFile(segment.path, _missing(log, name), is_missing=True)


def lost_watermarks(log: Log, path: str) -> WrongFile:
    """A file of watermarks that is not in storage."""
    todo = f"{MENDING}, {give_up_watermarks(log.topic_partition.topic)}"
    return WrongFile(path, _missing(log, f"file {path} with its watermarks"), is_missing=True, todo=todo)


def give_up_watermarks(topic: str) -> str:
    """What helps too where a file of watermarks is lost.

    Where another program has rolled the topic back, an adoption alone would lose acknowledged records as well.
    """
    first = f"if another program has changed the topic, keptlog repair {topic} comes first"
    return f"or give up its watermarks: keptlog repair {topic} --adopt ({first})"


def damaged_text(path: str, what: str) -> str:
    """One sentence on a file that is not as it was written; ``what`` says how that shows, and has it as subject."""
    return f"{_damaged(path, what)}; {MENDING}"


def _missing(log: Log, what: str) -> str:
    return f"{log.topic_partition}: {what} is missing from storage though the table lists it"


def _damaged(path: str, what: str) -> str:
    return f"{path} {what}: it is damaged"
