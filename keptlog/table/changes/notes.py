"""Writes anew what a topic notes beside its log, where another program has left something there that says nothing.

    log.p<N>.last-pass       what the last clean cost        emptied: the next clean writes it
    log.p<N>.uncleanable     why the last clean failed       emptied: the log is tried again
    log.p<N>.leader-epoch    under whom the end was read     emptied: the source is believed to be whole
    log.p<N>.as-of           as of when nothing was missed   emptied: it is not known
    log.p<N>.ingest-stopped  why an ingest stopped           emptied: the next ingest tells
    log.erasures.open        what is open of its erasures    counted again from the erasures themselves
    log.condemned            journals of sweeps              listed again: all sweeps that are not over
    log.snapshot-id          what the state belongs to       removed: the newest snapshot of keptlog's

None is part of the log. But who looks at a topic reads the first four, so that nonsense in one of them hides the whole
topic, and nobody writes to it with nonsense in one of the others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate

from keptlog.errors import LogCorrupt
from keptlog.log.erasures.erasure import Erasure
from keptlog.log.erasures.open_erasures import open_erasures
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, SAME_AGAIN, Change
from keptlog.table.metadata.format import SET_IT_BACK
from keptlog.table.metadata.lineage import COMMIT_ID, require_own
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.state import CONDEMNED, ERASURES, OPEN_ERASURES, SNAPSHOT_ID, damaged_notes
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.metadata.without_snapshot import commit_without_snapshot
from keptlog.table.removal.erasure_register import read_erasures, register_folder
from keptlog.table.removal.journal import is_sweep, journal_folder, read_journals

_COUNTED = (CONDEMNED, OPEN_ERASURES)
"""What is made again from what lies in storage; the others say nothing from then on."""


@dataclass(frozen=True, slots=True)
class NotesRepair:
    """A repair of the notes of one topic."""

    topic: str
    committer: Committer
    files: TableFiles

    def mend(self, run_id: str, now_ms: int) -> tuple[str, ...]:
        """Write them anew; tells which properties that were.

        Raises:
            LogCorrupt: the erasures themselves can't be read, or another program has changed the topic.
            StalePlan: others kept committing first.
        """
        return (*self.mend_snapshot_id(), *self._empty(), *self._count(run_id, now_ms))

    def mend_snapshot_id(self) -> tuple[str, ...]:
        """The same for the snapshot's id alone: before that nobody can tell whether another program was there.

        Raises:
            StalePlan: others kept committing first.
        """
        found: tuple[str, ...] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal found
            found = (SNAPSHOT_ID,) if SNAPSHOT_ID in damaged_notes(self.topic, table.properties) else ()
            update = RemovePropertiesUpdate(removals=[SNAPSHOT_ID])
            return (lambda: commit_without_snapshot(self.committer.catalog, table, update)) if found else None

        self.committer.commit(Change(self.topic, require_fit=_anything_fits), prepare)
        return found

    def _empty(self) -> tuple[str, ...]:
        found: Collection[str] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal found
            found = damaged_notes(self.topic, table.properties).keys() - {*_COUNTED, SNAPSHOT_ID}
            update = SetPropertiesUpdate(updates=dict.fromkeys(sorted(found), ""))
            return (lambda: commit_without_snapshot(self.committer.catalog, table, update)) if found else None

        self.committer.commit(Change(self.topic), prepare)
        return tuple(sorted(found))

    def _count(self, run_id: str, now_ms: int) -> tuple[str, ...]:
        """In a commit that makes a snapshot, so that it passes over nothing that comes meanwhile."""
        found: tuple[str, ...] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal found
            damaged = damaged_notes(self.topic, table.properties)
            found = tuple(name for name in _COUNTED if name in damaged)
            if not found:
                return None
            require_own(table)
            summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "repair"}
            return FileChange(summary, self._counted(table, found, now_ms)).written(table)

        self.committer.commit(Change(self.topic, commit_id=run_id, remedy=SAME_AGAIN), prepare)
        return found

    def _counted(self, table: Table, names: Collection[str], now_ms: int) -> Mapping[str, str]:
        counted: dict[str, str] = {}
        if OPEN_ERASURES in names:
            # When the clock can first bring one on is found out by the next look; until then it may be now.
            counted[OPEN_ERASURES] = to_json(open_erasures(self._erasures(table), now_ms))
        if CONDEMNED in names:
            folder = journal_folder(table.location())
            journals, _ = read_journals(self.files, table.location(), [each.path for each in self.files.list(folder)])
            # One that can't be read is carried out by nobody; a purge sets it aside.
            sweeps = sorted(path.removeprefix(folder) for path, journal in journals.items() if is_sweep(journal))
            counted[CONDEMNED] = json.dumps(sweeps)
        return counted

    def _erasures(self, table: Table) -> tuple[Erasure, ...]:
        """What is remembered; a file of it without a name is no sign that there are none."""
        folder = register_folder(table)
        if ERASURES not in table.properties and any(True for _ in self.files.list(folder)):
            where = f"topic {self.topic}: property {ERASURES}"
            raise LogCorrupt(f"{where} is gone, though {folder} holds files; {SET_IT_BACK}").of_property()
        return read_erasures(self.files, table)


def _anything_fits(_: Table) -> None:
    """What another program has done to the topic is for the repair that follows."""
