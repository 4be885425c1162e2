"""A commit that changes what a table says, and not which files it holds: properties move, snapshots go.

It lands only on the snapshot, the branches and the tags that were loaded, as a change of files does (``manifests``).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableUpdate,
)
from typing_extensions import override

from keptlog.table.metadata.state import SNAPSHOT_ID


def removal_of(
    metadata: TableMetadata, snapshot_ids: Iterable[int], refs: Iterable[str] = ()
) -> tuple[TableUpdate, ...]:
    """Take tags, branches and snapshots out of a table, and what others have counted of the snapshots' partitions.

    PyIceberg takes out their statistics alone: the table would name those of partitions for good, and nobody could
    delete them. An earlier keptlog has left some behind; they go too. Tags and branches go first: with their snapshots
    they would go unnamed, and nobody would assert that they have not moved.
    """
    going = set(snapshot_ids)
    dropped = tuple(RemoveSnapshotRefUpdate.model_validate({"ref-name": each}) for each in refs)
    if not going:
        return dropped
    stay = {each.snapshot_id for each in metadata.snapshots} - going
    counted = {each.snapshot_id for each in metadata.partition_statistics} - stay
    return (
        *dropped,
        *(RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": each}) for each in sorted(counted)),
        RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(going)}),
    )


def commit_without_snapshot(catalog: Catalog, table: Table, *updates: TableUpdate) -> None:
    """Commit changes of the metadata alone, and only while the table's current snapshot is the one that was loaded.

    So must be a branch or tag that is taken out. All others must be as they were, and what else is taken out must be
    there, where the catalog compares in this process; a server can't be asked for that.

    Raises:
        CommitFailedException: another one is, or it is gone.
    """
    requirements = (AssertTableUUID(uuid=table.metadata.table_uuid), _AssertRefs(table.metadata, updates))
    pointed_to = {name: reference.snapshot_id for name, reference in table.metadata.refs.items()}
    going = [each.ref_name for each in updates if isinstance(each, RemoveSnapshotRefUpdate)]
    moved = (AssertRefSnapshotId.model_validate({"ref": each, "snapshot-id": pointed_to[each]}) for each in going)
    # PyIceberg deletes the metadata files that leave a history after the commit, and only who commits by the table.
    sent = copy(table)  # with all that came with it: a server may have given a token for this table alone
    sent.catalog = catalog
    sent._do_commit(updates, (*requirements, *moved))  # noqa: SLF001


def require_same_refs(before: TableMetadata, now: TableMetadata) -> None:
    """Refuse a table of which a branch or a tag points elsewhere than it did, is kept for longer, is new, or is gone.

    A rollback may have put main where it was, but not the snapshot that the state belongs to.

    Raises:
        CommitFailedException: one of that; it is a lost race.
    """
    if _pointed_to(before) != _pointed_to(now):
        raise CommitFailedException("a branch or a tag was made, moved or removed meanwhile")
    if before.properties.get(SNAPSHOT_ID) != now.properties.get(SNAPSHOT_ID):
        raise CommitFailedException("the table was committed to meanwhile, and main was put back")


def _require_there(updates: Iterable[TableUpdate], now: TableMetadata) -> None:
    """Refuse to take out what is gone: PyIceberg says so with a ``ValueError``, as of much else."""
    snapshots = {each.snapshot_id for each in now.snapshots}
    counted = {each.snapshot_id for each in now.partition_statistics}
    for update in updates:
        if isinstance(update, RemoveSnapshotsUpdate) and not snapshots.issuperset(update.snapshot_ids):
            raise CommitFailedException("another purge has expired the same snapshots")
        if isinstance(update, RemovePartitionStatisticsUpdate) and update.snapshot_id not in counted:
            raise CommitFailedException("statistics of partitions were taken out meanwhile")


def _pointed_to(metadata: TableMetadata) -> dict[str, tuple[int, int | None]]:
    """Each with its retention: who gives one a longer one wants it to stay."""
    return {name: (reference.snapshot_id, reference.max_ref_age_ms) for name, reference in metadata.refs.items()}


class _AssertRefs(AssertRefSnapshotId):
    """That main is where it was, as any catalog understands it; one in this process is held to more besides.

    A requirement names one ref, and none can name a tag that nobody has heard of yet. PyIceberg's own catalogs call
    ``validate`` with what their compare-and-swap builds on; a server gets the JSON of the class above, which is kept.
    """

    _before: TableMetadata
    _updates: tuple[TableUpdate, ...]

    def __init__(self, before: TableMetadata, updates: tuple[TableUpdate, ...]) -> None:
        main: dict[str, Any] = {"ref": MAIN_BRANCH, "snapshot-id": before.current_snapshot_id}
        super().__init__(**main)
        self._before = before
        self._updates = updates

    @override
    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]  # as all requirements do
        super().validate(base_metadata)
        if base_metadata is not None:
            require_same_refs(self._before, base_metadata)
            _require_there(self._updates, base_metadata)
