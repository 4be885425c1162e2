"""Writes anew what a topic notes beside its log, where another program has left something there that says nothing.

    log.p<N>.last-pass       what the last clean cost        emptied: the next clean writes it
    log.p<N>.uncleanable     why the last clean failed       emptied: the log is tried again
    log.erasures.open        what is open of its erasures    counted again from the erasures themselves

None is part of the log, and none is needed to write to it. But who looks at a topic reads them all, so that nonsense in
one of them hides the whole topic.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from keptlog.log.erasures.open_erasures import open_erasures
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change
from keptlog.table.metadata.lineage import COMMIT_ID, require_own
from keptlog.table.metadata.manifests import FileChange, commit_without_snapshot
from keptlog.table.metadata.state import OPEN_ERASURES, damaged_notes
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.removal.erasure_register import read_erasures


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
        return (*self._empty(), *self._count_erasures(run_id, now_ms))

    def _empty(self) -> tuple[str, ...]:
        found: Collection[str] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal found
            found = damaged_notes(self.topic, table.properties).keys() - {OPEN_ERASURES}
            update = SetPropertiesUpdate(updates=dict.fromkeys(sorted(found), ""))
            return (lambda: commit_without_snapshot(self.committer.catalog, table, update)) if found else None

        self.committer.commit(Change(self.topic), prepare)
        return tuple(sorted(found))

    def _count_erasures(self, run_id: str, now_ms: int) -> tuple[str, ...]:
        """In a commit that makes a snapshot, so that it passes over no erasure that comes meanwhile."""
        found: tuple[str, ...] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal found
            if OPEN_ERASURES not in damaged_notes(self.topic, table.properties):
                return None
            require_own(table)
            found = (OPEN_ERASURES,)
            # When the clock can first bring one on is found out by the next look; until then it may be now.
            counted = open_erasures(read_erasures(self.files, table), now_ms)
            summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "repair"}
            return FileChange(summary, {OPEN_ERASURES: to_json(counted)}).written(table)

        self.committer.commit(Change(self.topic, commit_id=run_id), prepare)
        return found
