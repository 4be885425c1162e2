"""Of metadata that another program has put outside of its table's folder: where the table itself lies, and lay.

``write.metadata.path`` may name a folder of one table or of many. A table that is moved then leaves no trace in the
paths of its metadata, and its second name none below its folder. So the metadata is read: it says the location.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keptlog.table.metadata.metadata_files import METADATA_ENDINGS, own_metadata
from keptlog.table.metadata.metadata_reading import whole_metadata
from keptlog.table.metadata.references import below, comparable, inside

if TYPE_CHECKING:
    from pyiceberg.table import Table

METADATA_PATH = "write.metadata.path"
"""Iceberg's property for where a table's metadata is written, if not in its own folder."""


def places_of_metadata(table: Table) -> list[str]:
    """The folder of a table, and those outside of it that have its metadata, or are to have the next."""
    folders = [path.rpartition("/")[0] for path in own_metadata(table)]
    folders.append(table.properties.get(METADATA_PATH, "").rstrip("/"))
    is_below = below(table.location())
    return [table.location(), *(each for each in dict.fromkeys(folders) if each and not is_below(comparable(each)))]


def lies_below(table: Table, path: str) -> bool:
    """Whether the table of a metadata file has its files in the folder of this one; one that can't be read has none."""
    metadata = whole_metadata(table.io, path)
    return metadata is not None and below(table.location())(inside(metadata.location))


def lay_elsewhere(table: Table, outside: Sequence[str]) -> str | None:
    """Of its earlier metadata outside of its folder, oldest first, one that tells of another location; null if none.

    Of each folder the oldest that can be read is asked. One of which nothing can be read is believed if the table
    names it as the place of its metadata.
    """
    named = table.properties.get(METADATA_PATH)
    is_named = below(named) if named else None
    by_folder: dict[str, list[str]] = {}
    for path in outside:
        by_folder.setdefault(comparable(path.rpartition("/")[0]), []).append(path)
    for paths in by_folder.values():
        read = (whole_metadata(table.io, path) for path in paths if path.endswith(METADATA_ENDINGS))
        oldest = next((metadata for metadata in read if metadata), None)
        if oldest is None and is_named and is_named(comparable(paths[0])):
            continue
        if oldest is None or inside(oldest.location) != inside(table.location()):
            return paths[0]
    return None
