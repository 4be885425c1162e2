"""What of a log's files is not in storage as the table says, as far as a list of names and sizes tells.

    the table says    [ a: 100 bytes ][ b: 80 bytes ][ c: 90 bytes ]
    the storage has   [ a: 100 bytes ]               [ c: 12 bytes ]     b is missing, c is damaged

A clean of such a log fails, and so does every reader. What is inside of a file of the right size, ``verify`` looks at.
"""

from __future__ import annotations

from collections.abc import Callable

from keptlog.log.segment import Log, Segment

MENDING = "put the file back from a copy of the storage"


def wrong_files(log: Log, size_of: Callable[[str], int | None]) -> dict[str, str]:
    """Path to what is wrong with it, in one sentence; ``size_of`` says how many bytes a path has, null if it is gone.

    Of a file of watermarks the table keeps no size: it may only be missing.
    """
    found: dict[str, str] = {}
    for segment in log.segments:
        size_bytes = size_of(segment.path)
        if size_bytes is None:
            found[segment.path] = missing(log, segment_name(segment))
        elif size_bytes != segment.size_bytes:
            found[segment.path] = damaged_text(segment.path, f"has {size_bytes} bytes, not {segment.size_bytes}")
    if log.watermarks_path and size_of(log.watermarks_path) is None:
        found[log.watermarks_path] = missing(log, watermarks_name(log.watermarks_path))
    return found


def segment_name(segment: Segment) -> str:
    """What a segment is called in a sentence."""
    return f"segment {segment.path} (offsets {segment.base_offset} to {segment.last_offset})"


def watermarks_name(path: str) -> str:
    """What a file of watermarks is called in a sentence."""
    return f"file {path} with its watermarks"


def missing(log: Log, what: str) -> str:
    """One sentence on a file that is lost."""
    return f"{log.topic_partition}: {what} is missing from storage though the table lists it; {MENDING}"


def damaged_text(path: str, what: str) -> str:
    """One sentence on a file that is not as it was written; ``what`` says how that shows, and has it as subject."""
    return f"{path} {what}: it is damaged; {MENDING}"
