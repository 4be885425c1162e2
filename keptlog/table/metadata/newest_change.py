"""When a table was last changed, by all that its metadata tells: the witness against a clock that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


def newest_change_ms(metadata: TableMetadata) -> int:
    """The latest time of any change that a table's metadata tells of, in ms since 1970 UTC."""
    logged = [entry.timestamp_ms for entry in metadata.snapshot_log]
    logged += [entry.timestamp_ms for entry in metadata.metadata_log]
    return max([metadata.last_updated_ms, *logged, *(snapshot.timestamp_ms for snapshot in metadata.snapshots)])
