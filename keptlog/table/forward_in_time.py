"""A catalog in whose tables time never goes back, whatever the clocks of its writers show.

    writer A, right            12:00:00  12:00:10
    writer B, 2 minutes slow                       11:58:20                  what its clock shows
    stored                     12:00:00  12:00:10  12:00:10                  what it commits

Iceberg's Java library refuses to open a table whose logs of snapshots or of metadata go back by more than a minute, so
that one slow clock would lock Spark and Trino out until twenty more commits have come. Catalogs that keep only where
the metadata lies have it made here, in this process; those behind REST make their own.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.io import FileIO
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier
from typing_extensions import override


class ForwardInTime(MetastoreCatalog):
    """Stands before a catalog's class. ``now_ms`` is the clock of its commits, by default PyIceberg's own."""

    now_ms: Callable[[], int] | None = None

    @override
    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        if current_table is None:
            return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        current = current_table.metadata
        updates = tuple(self._stamped(update, current) for update in updates)
        staged = super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        if staged.metadata.metadata_log != current.metadata_log:  # otherwise nothing changes, and nothing is committed
            at_ms = self._time_ms(staged.metadata.last_updated_ms, current)
            if any(isinstance(update, AddSnapshotUpdate) for update in updates):
                at_ms = staged.metadata.last_updated_ms
            staged.metadata = staged.metadata.model_copy(update={"last_updated_ms": at_ms})
        return staged

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]  # its own is called through the instance
        """Write it; a new table's comes without the step above."""
        if self.now_ms and not metadata.metadata_log and not metadata.snapshots:
            metadata = metadata.model_copy(update={"last_updated_ms": self.now_ms()})
        super()._write_metadata(metadata, io, metadata_path)

    def _stamped(self, update: TableUpdate, current: TableMetadata) -> TableUpdate:
        """An update as it is committed: a new snapshot gets its time now."""
        if not isinstance(update, AddSnapshotUpdate):
            return update
        at_ms = self._time_ms(update.snapshot.timestamp_ms, current)
        return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": at_ms})})

    def _time_ms(self, shown_ms: int, current: TableMetadata) -> int:
        return max(self.now_ms() if self.now_ms else shown_ms, newest_ms(current))


def newest_ms(metadata: TableMetadata) -> int:
    """The latest time of any change that a table's metadata tells of, in ms since 1970 UTC."""
    logged = [entry.timestamp_ms for entry in metadata.snapshot_log]
    logged += [entry.timestamp_ms for entry in metadata.metadata_log]
    return max([metadata.last_updated_ms, *logged, *(snapshot.timestamp_ms for snapshot in metadata.snapshots)])


def forward_in_time(catalog: Catalog, now_ms: Callable[[], int] | None) -> Catalog:
    """The same catalog, opened again so that time never goes back; as it is if it makes no metadata in this process."""
    if not isinstance(catalog, MetastoreCatalog):
        return catalog
    catalog.close()
    kind = type(catalog)
    opened: ForwardInTime = type(kind.__name__, (ForwardInTime, kind), {})(catalog.name, **catalog.properties)
    opened.now_ms = now_ms
    return opened
