"""Histories of many snapshots in no time: manifests and lists as commits write them, without a commit for each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSnapshotUpdate
from sqlalchemy import update
from sqlalchemy.orm import Session

from keptlog.log.segment import Segment
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.metadata.change import OPERATION
from keptlog.table.metadata.file_metrics import LiveFile, data_file_of
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange, OtherBase, _Producer, _Transaction
from keptlog.table.metadata.state import SNAPSHOT_ID
from tests.table.purges import clock_ms
from tests.table.stores import TOPIC


class History:
    """A topic's table, and what happens to it, in memory but for manifests; ``save`` makes it the catalog's."""

    def __init__(self, home: Path) -> None:
        catalog = open_catalog(home)
        assert isinstance(catalog, EmbeddedCatalog)
        self._catalog = catalog
        self.table = catalog.load_table(("keptlog", TOPIC))
        self.table.io = PyArrowFileIO()  # which does not wait for the disk
        self._live_files = LiveFiles()
        self._numbers = itertools.count()

    @property
    def live(self) -> list[LiveFile]:
        """The files of the current snapshot."""
        return [file for files in self._live_files.of(self.table).values() for file in files]

    def new_file(self) -> DataFile:
        """A file at a path that was never used; nothing is written there."""
        number = next(self._numbers)
        path = f"{self.table.location()}/data/partition=0/{number}.parquet"
        return data_file_of(0, Segment(path, number, number, 0, 0, 1, 1))

    def add(self, added: Sequence[DataFile] = (), removed: Sequence[LiveFile] = ()) -> Snapshot:
        """A commit as an append or a clean makes it."""
        live = self._live_files.of(self.table) if removed else {}
        return self._commit(FileChange(_summary("append"), {}, added, removed, live))

    def bring_back(self, snapshot: Snapshot) -> Snapshot:
        """A commit as a repair makes it: with the files of an older snapshot."""
        manifests = snapshot.manifests(self.table.io)
        return self._commit(FileChange(_summary("repair"), {}, base=OtherBase(manifests, (), ())))

    def _commit(self, change: FileChange) -> Snapshot:
        transaction = _Transaction(self.table)
        updates, _ = _Producer(transaction, self.table, change)._commit()
        [snapshot] = [each.snapshot for each in updates if isinstance(each, AddSnapshotUpdate)]
        metadata = self.table.metadata
        self._become(
            snapshots=[*metadata.snapshots, snapshot],
            refs=metadata.refs | {MAIN_BRANCH: _reference(snapshot, "branch")},
            current_snapshot_id=snapshot.snapshot_id,
            last_sequence_number=snapshot.sequence_number,
        )
        return snapshot

    def roll_back(self, snapshot: Snapshot) -> None:
        """Make an older snapshot the current one."""
        refs = self.table.metadata.refs | {MAIN_BRANCH: _reference(snapshot, "branch")}
        self._become(refs=refs, current_snapshot_id=snapshot.snapshot_id)

    def tag(self, snapshot: Snapshot, name: str) -> None:
        """Keep a snapshot by a name."""
        self._become(refs=self.table.metadata.refs | {name: _reference(snapshot, "tag")})

    def expire(self, snapshots: Sequence[Snapshot]) -> None:
        """Take snapshots out, as PyIceberg does."""
        gone = {each.snapshot_id for each in snapshots}
        self._become(
            snapshots=[
                each.model_copy(update={"parent_snapshot_id": None}) if each.parent_snapshot_id in gone else each
                for each in self.table.metadata.snapshots
                if each.snapshot_id not in gone
            ]
        )

    def save(self, properties: dict[str, str]) -> None:
        """Make all of it what the catalog knows."""
        belongs_to = {SNAPSHOT_ID: str(self.table.metadata.current_snapshot_id)}
        self._become(properties=self.table.properties | belongs_to | properties, last_updated_ms=clock_ms())
        location = self.table.location_provider().new_table_metadata_file_location(1)
        ToOutputFile.table_metadata(self.table.metadata, self.table.io.new_output(location))
        with Session(self._catalog.engine) as session:
            session.execute(update(IcebergTables).values(metadata_location=location))
            session.commit()

    def _become(self, **changed: object) -> None:
        metadata: TableMetadata = self.table.metadata.model_copy(update=changed)
        self.table = Table(self.table.name(), metadata, self.table.metadata_location, self.table.io, self.table.catalog)


def _summary(operation: str) -> dict[str, str]:
    return {COMMIT_ID: "commit", OPERATION: operation}


def _reference(snapshot: Snapshot, kind: str) -> SnapshotRef:
    return SnapshotRef.model_validate({"snapshot-id": snapshot.snapshot_id, "type": kind})
