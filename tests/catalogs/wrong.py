"""Catalogs that are wrong on purpose, one defect each: SQLite's, but for what its class says."""

from __future__ import annotations

import threading
import time
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
)

from keptlog.table.metadata.manifests import FileChange

_one_at_a_time = threading.RLock()


class LastWriterWins(SqlCatalog):
    """Takes every commit, whatever it was built on."""

    def forgets(self, requirement: Any) -> bool:
        return isinstance(requirement, AssertRefSnapshotId)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        with _one_at_a_time:
            asked = tuple(each for each in requirements if not self.forgets(each))
            if len(asked) < len(requirements):
                number = self.load_table(table.name()).last_sequence_number + 1
                updates = tuple(_numbered(each, number) for each in updates)
            return super().commit_table(table, asked, updates)


def _numbered(update: Any, number: int) -> Any:
    if not isinstance(update, AddSnapshotUpdate):
        return update
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"sequence_number": number})})


class FirstRowsLost(LastWriterWins):
    """Takes "there is no snapshot" for no expectation, as Nessie 0.99 did with PyIceberg 0.12."""

    def forgets(self, requirement: Any) -> bool:
        return isinstance(requirement, AssertRefSnapshotId) and requirement.snapshot_id is None


class TableIdsForgotten(LastWriterWins):
    """Asks no commit which table it was made for."""

    def forgets(self, requirement: Any) -> bool:
        return isinstance(requirement, AssertTableUUID)


class ForeignPropertiesLost(SqlCatalog):
    """Stores the properties that the one who commits knew, as a Hive client did."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        unknown = set(self.load_table(table.name()).properties).difference(table.properties)
        if unknown:
            updates = (RemovePropertiesUpdate(removals=sorted(unknown)), *updates)
        return super().commit_table(table, requirements, updates)


class ShortProperties(SqlCatalog):
    """Has room for 4,000 letters."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        return super().commit_table(table, requirements, tuple(map(self._shortened, updates)))

    def _shortened(self, update: Any) -> Any:
        if not isinstance(update, SetPropertiesUpdate):
            return update
        return SetPropertiesUpdate(updates={name: text[:4000] for name, text in update.updates.items()})


class PropertiesFirst(SqlCatalog):
    """Makes two commits of one: properties, which no snapshot can refuse, and then the rest."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        properties = tuple(each for each in updates if isinstance(each, SetPropertiesUpdate))
        rest = tuple(each for each in updates if not isinstance(each, SetPropertiesUpdate))
        if properties and rest:
            super().commit_table(table, (), properties)
        return super().commit_table(table, requirements, rest or properties)


class PropertiesLater(SqlCatalog):
    """Makes two commits of one, the snapshot first."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        properties = tuple(each for each in updates if isinstance(each, SetPropertiesUpdate))
        rest = tuple(each for each in updates if not isinstance(each, SetPropertiesUpdate))
        if not (properties and rest):
            return super().commit_table(table, requirements, updates)
        super().commit_table(table, requirements, rest)
        return super().commit_table(table, (), properties)


class SnapshotsOfItsOwn(SqlCatalog):
    """Adds a snapshot behind each that is committed, as one that maintains tables by itself."""

    _is_at_it = False

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        answer = super().commit_table(table, requirements, updates)
        if not self._is_at_it and any(isinstance(each, AddSnapshotUpdate) for each in updates):
            self._is_at_it = True
            FileChange({}, {}).land(self.load_table(table.name()))
            self._is_at_it = False
        return answer


class SummariesLost(SqlCatalog):
    """Keeps of a snapshot's summary what it knows itself."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        return super().commit_table(table, requirements, tuple(map(self._without, updates)))

    def _without(self, update: Any) -> Any:
        if not isinstance(update, AddSnapshotUpdate) or not update.snapshot.summary:
            return update
        summary = type(update.snapshot.summary)(update.snapshot.summary.operation)
        return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"summary": summary})})


class OneSnapshotShown(SqlCatalog):
    """Lists the current snapshot, and no older one, as Nessie 0.99 did."""

    def load_table(self, identifier: Any) -> Table:
        table = super().load_table(identifier)
        current = table.metadata.current_snapshot_id
        shown = [each for each in table.metadata.snapshots if each.snapshot_id == current]
        table.metadata = table.metadata.model_copy(update={"snapshots": shown})
        return table


class OldestShown(SqlCatalog):
    """Shows each connection a table as it saw it first, until it commits there itself."""

    def load_table(self, identifier: Any) -> Table:
        seen = self.__dict__.setdefault("_seen", {})
        name = tuple(identifier)[-2:]
        if name not in seen:
            seen[name] = super().load_table(identifier)
        return seen[name]  # type: ignore[no-any-return]

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        answer = super().commit_table(table, requirements, updates)
        self.__dict__.setdefault("_seen", {}).pop(tuple(table.name())[-2:], None)
        return answer


class SmallLetters(SqlCatalog):
    """Knows no capitals, as Hive and Glue."""

    def create_table(self, identifier: Any, *args: Any, **kwargs: Any) -> Table:
        return super().create_table((identifier[0], identifier[1].lower()), *args, **kwargs)


class SettingsForgotten(SqlCatalog):
    """Makes tables without what it does not know."""

    def create_table(self, identifier: Any, *args: Any, **kwargs: Any) -> Table:
        kwargs["properties"] = {name: text for name, text in kwargs["properties"].items() if "retry" not in name}
        return super().create_table(identifier, *args, **kwargs)


class NoRename(SqlCatalog):
    """Leaves tables where they are."""

    def rename_table(self, *_: Any) -> Table:
        raise NotImplementedError("this catalog does not rename tables")


class CopiesInstead(SqlCatalog):
    """Copies a table that is to be renamed."""

    def rename_table(self, from_identifier: Any, to_identifier: Any) -> Table:
        return self.register_table(to_identifier, self.load_table(from_identifier).metadata_location)


class ExpiresTooMuch(SqlCatalog):
    """Takes an expiry as a reason to tidy up."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        if any(isinstance(each, RemoveSnapshotsUpdate) for each in updates):
            known = [each.snapshot_id for each in table.metadata.snapshots]
            more = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": known[:-1]})
            updates = tuple(more if isinstance(each, RemoveSnapshotsUpdate) else each for each in updates)
        return super().commit_table(table, requirements, updates)


class ExpiresNothing(SqlCatalog):
    """Takes no notice of an expiry."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        kept = tuple(each for each in updates if not isinstance(each, RemoveSnapshotsUpdate))
        return super().commit_table(table, requirements, kept)


class OneCommitOnly(SqlCatalog):
    """Takes one commit a table, and refuses all others."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        if table.current_snapshot() is not None:
            requirements = (
                *requirements,
                AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": 1}),
            )
        return super().commit_table(table, requirements, updates)


class Unreachable(SqlCatalog):
    """Answers no commit, and takes none."""

    def commit_table(self, *_: Any) -> CommitTableResponse:
        raise ConnectionResetError("nobody is there")


class Hangs(SqlCatalog):
    """Never answers a commit."""

    def commit_table(self, *_: Any) -> CommitTableResponse:
        while True:
            time.sleep(60)
