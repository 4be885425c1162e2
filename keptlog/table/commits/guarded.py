"""Commits a change only if something more is true of the table that it is built on.

It is asked of each table that was just loaded, not before the first: what is asked needs the storage, and a commit
waits for a storage that is away, and goes on once it is back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.table.commits.commit import Committer, Land, Prepare

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from keptlog.table.metadata.change import Change
    from keptlog.table.metadata.runs import LandedChange


@dataclass(frozen=True, slots=True)
class GuardedCommitter(Committer):
    """Commits as another one does, where ``require`` raises nothing of the table; what it raises is a refusal."""

    behind: Committer
    require: Callable[[Table], None]

    @classmethod
    def of(cls, behind: Committer, require: Callable[[Table], None]) -> GuardedCommitter:
        """The same committer, but that it asks that first."""
        return cls(behind.catalog, behind.sleep, behind.files, behind, require)

    def commit(self, change: Change, prepare: Prepare) -> LandedChange | None:
        def guarded(table: Table) -> Land | None:
            self.require(table)
            return prepare(table)

        return self.behind.commit(change, guarded)
