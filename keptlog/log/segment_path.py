"""Where the files of one topic-partition lie: ``<location>/partition=<N>/…``, written and read here alone.

The table says which partition a live file belongs to. The path tells it of files that no table knows any more.
"""

from __future__ import annotations

import re

_FOLDER = re.compile(r"/partition=(\d+)/")


def partition_folder(location: str, partition: int) -> str:
    """The folder of a partition, below the location of what all partitions of a topic have of a kind."""
    return f"{location}/partition={partition}"


def partition_in(path: str) -> int | None:
    """The partition in whose folder a file lies, null for a file of no log alone."""
    found = _FOLDER.search(path)
    return int(found[1]) if found else None
