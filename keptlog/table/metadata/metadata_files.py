"""The files that say what a table holds: whether they are still there, and as long as they were when they were read.

    metadata file  -->  manifest list  -->  manifests

None of them ever changes, so what they said may be remembered. But they may be lost or cut off later, with the folder
that was moved or by hand; then the table can't be read any more, and nothing can be done with it, whatever memory says.
A disk of this machine is asked that in two microseconds a file, and so each time before memory answers. An object store
is not asked: there each question is a request.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table

METADATA_ENDINGS = (".metadata.json", ".metadata.json.gz")
"""Of the first of them, whoever has written it."""
MetadataFiles = tuple[tuple[str, int], ...]
"""Paths on a disk of this machine, and their sizes in bytes."""
_NOT_READ = -1
"""The size of what was gone before it was asked for: it is never found so."""


def own_metadata(table: Table) -> list[str]:
    """The metadata files of the table itself: wherever they lie and whatever they are called, Iceberg writes them."""
    return [table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)]


def metadata_files(locations: Iterable[str]) -> MetadataFiles:
    """Those of these files that lie on a disk of this machine, as they are now."""
    from keptlog.table.io.files import local_path  # noqa: PLC0415  # whoever only asks whether they are whole needs none

    paths = (local_path(location) for location in locations)
    return tuple((path, _size_of(path)) for path in paths if path is not None)


def are_whole(files: Iterable[tuple[str, int]]) -> bool:
    """Whether all are as they were."""
    return all(size_bytes != _NOT_READ and _size_of(path) == size_bytes for path, size_bytes in files)


def may_be_whole(location: str, size_bytes: int) -> bool:
    """Whether a file is as long as was said of it; a store is not asked, and true is said of what lies there."""
    from keptlog.table.io.files import local_path  # noqa: PLC0415

    path = local_path(location)
    return path is None or _size_of(path) == size_bytes


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116  # a Path would take longer than the disk
    except OSError:
        # Why it can't be had says whoever reads it.
        return _NOT_READ
