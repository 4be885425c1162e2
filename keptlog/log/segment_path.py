"""Where the files of one topic-partition lie, written and read here alone.

    <location>/partition=<N>/<file>                 a segment
    <location>/watermarks/partition=<N>/<file>      watermarks of deleted keys

The table says which partition a live file belongs to. The path tells it of files that no table knows any more. Only the
folders right above the file tell: a lake may itself lie in one of such a name.
"""

from __future__ import annotations

import re

_SEGMENT = re.compile(r"/partition=\d+/\d{20}-[^/]+\.parquet$")
_IN_FOLDER = re.compile(r"(/watermarks)?/partition=(\d+)/[^/]*$")


def partition_folder(location: str, partition: int) -> str:
    """The folder of a partition, below the location of what all partitions of a topic have of a kind."""
    return f"{location}/partition={partition}"


def partition_in(path: str) -> int | None:
    """The partition in whose folder a file lies, null for a file of no log alone."""
    found = _IN_FOLDER.search(path)
    return int(found[2]) if found else None


def is_named_by_keptlog(path: str) -> bool:
    """Whether a data file lies where keptlog's own lie, and is called as they are: by its base offset, in 20 digits."""
    return _SEGMENT.search(path) is not None


def watermarks_folder(location: str, partition: int) -> str:
    """The folder of a partition's watermarks, below the same location."""
    return partition_folder(f"{location}/watermarks", partition)


def watermarks_partition_in(path: str) -> int | None:
    """The partition of a file of watermarks, null for any other file."""
    found = _IN_FOLDER.search(path)
    return int(found[2]) if found and found[1] else None
