"""A catalog in whose tables time never goes back, whatever the clocks of its writers show.

    writer A, right            12:00:00  12:00:10
    writer B, 2 minutes slow                       11:58:20                  what its clock shows
    stored                     12:00:00  12:00:10  12:00:10                  what it commits

Iceberg's Java library refuses to open a table whose logs of snapshots or of metadata go back by more than a minute, so
that one slow clock would lock Spark and Trino out until twenty more commits have come. Catalogs that keep only where
the metadata lies have it made here, in this process; those behind REST make their own.

Sequence numbers don't go back either: a snapshot built before another one came and was taken back is a lost race. And
where a table lies is said without a slash at its end (``plain_location``).
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier
from typing_extensions import override

from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.metadata.plain_location import lying_plainly, table_lying_plainly


class ForwardInTime(MetastoreCatalog):
    """Stands before a catalog's class. ``now_ms`` is the clock of its commits, by default PyIceberg's own."""

    now_ms: Callable[[], int] | None = None

    @override
    def load_table(self, identifier: str | Identifier) -> Table:
        """A table as it is now."""
        return table_lying_plainly(super().load_table(identifier))  # type: ignore[safe-super]  # it stands before one that has it

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
        _require_newest(current_table.last_sequence_number, updates)
        shown_ms = [update.snapshot.timestamp_ms for update in updates if isinstance(update, AddSnapshotUpdate)]
        at_ms = max(self.now_ms() if self.now_ms else max(shown_ms, default=0), newest_change_ms(current))
        updates = tuple(_at(at_ms, update) for update in updates)
        staged = super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        staged.metadata = lying_plainly(staged.metadata)
        if not shown_ms and not self.now_ms:
            at_ms = max(at_ms, staged.metadata.last_updated_ms)
        if staged.metadata.metadata_log != current.metadata_log:  # otherwise nothing changes, and nothing is committed
            staged.metadata = _changed_at(at_ms, staged.metadata, current)
        return staged

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]  # its own is called through the instance
        """Write it; a new table's comes without the step above."""
        if self.now_ms and not metadata.metadata_log and not metadata.snapshots:
            metadata = metadata.model_copy(update={"last_updated_ms": self.now_ms()})
        super()._write_metadata(metadata, io, metadata_path)


def _require_newest(last: int, updates: tuple[TableUpdate, ...]) -> None:
    """Refuse a snapshot whose number was taken meanwhile, although the current snapshot is the one it was built on.

    So it is after a commit that another program has taken back. PyIceberg has no retryable error for it.

    Raises:
        CommitFailedException: another commit came first.
    """
    for update in updates:
        number = update.snapshot.sequence_number if isinstance(update, AddSnapshotUpdate) else None
        if number is not None and number <= last:
            raise CommitFailedException(f"sequence number {number} was given out meanwhile: the newest is {last}")


def _at(at_ms: int, update: TableUpdate) -> TableUpdate:
    """An update as it is committed: a new snapshot is of this time."""
    if not isinstance(update, AddSnapshotUpdate):
        return update
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": at_ms})})


def _changed_at(at_ms: int, metadata: TableMetadata, before: TableMetadata) -> TableMetadata:
    """Metadata as it is committed: whatever says when it was changed says this time."""
    log = list(metadata.snapshot_log)
    if log and log[-1] not in before.snapshot_log:  # a new snapshot is current, or by a rollback an older one again
        log[-1] = log[-1].model_copy(update={"timestamp_ms": at_ms})
    return metadata.model_copy(update={"last_updated_ms": at_ms, "snapshot_log": log})


def forward_in_time(catalog: Catalog, now_ms: Callable[[], int] | None) -> Catalog:
    """The same catalog, opened again so that time never goes back; as it is if it makes no metadata in this process."""
    if not isinstance(catalog, MetastoreCatalog):
        return catalog
    catalog.close()
    kind = type(catalog)
    opened: ForwardInTime = type(kind.__name__, (ForwardInTime, kind), {})(catalog.name, **catalog.properties)
    opened.now_ms = now_ms
    return opened
