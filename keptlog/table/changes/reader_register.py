"""Registers readers of a topic, and removes them; what a topic stores of them stands in ``readers``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyiceberg.table import Table

from keptlog.table.commits.commit import Committer, Land
from keptlog.table.metadata.change import OPERATION, RUN_ID, SAME_AGAIN, Change
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.prefixes import READER_PREFIX
from keptlog.table.metadata.state import truncation_counts
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.reading.readers import Registration, registration_in

_REMOVED_AGAIN = "run the same command again: if it says that there is no such reader, that one is removed"


@dataclass(frozen=True, slots=True)
class ReaderRegister:
    """Registers readers, and removes them: each in one commit that makes a snapshot (ADR 10)."""

    committer: Committer
    topic_id: str | None = None
    """Of the topic that is meant; null for the one that has the name."""

    def change(
        self, topic: str, name: str, changed: Callable[[Registration | None], Registration], run_id: str
    ) -> Registration:
        """Replace a registration by what ``changed`` makes of it; gives what is registered then.

        A new one, which has an id of its own, gets how often each log has been truncated.

        Raises:
            LogCorrupt: what is stored under this name is no registration.
            StalePlan, CommitStateUnknown: the commit lost every race, or got no answer.
        """
        found = changed(None)

        def prepare(table: Table) -> Land | None:
            nonlocal found
            before = registration_in(topic, table.properties, name)
            found = changed(before)
            if not (before and before.id == found.id):
                found = replace(found, truncations=truncation_counts(topic, table.properties))
            if found == before:
                return None
            return FileChange(_summary(run_id), {READER_PREFIX + name: to_json(found)}).written(table)

        self.committer.commit(Change(topic, self.topic_id, run_id, remedy=SAME_AGAIN), prepare)
        return found

    def remove(self, topic: str, name: str, run_id: str) -> None:
        """Remove a registration, also one that nobody can read: that is how it is mended.

        Raises:
            StalePlan, CommitStateUnknown: as above.
        """
        key = READER_PREFIX + name

        def prepare(table: Table) -> Land | None:
            if key not in table.properties:
                return None
            return FileChange(_summary(run_id), {}, removed_properties=[key]).written(table)

        self.committer.commit(Change(topic, self.topic_id, run_id, remedy=_REMOVED_AGAIN), prepare)


def _summary(run_id: str) -> dict[str, str]:
    return {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "register"}
