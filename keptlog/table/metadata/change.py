"""What is to land in a table, told from any other change by an id, which its snapshot keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.log.run_id import valid_run_id
from keptlog.table.metadata.lineage import COMMIT_ID, require_own
from keptlog.table.namespaces import NAMESPACE

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from keptlog.log.topic_partition import TopicPartition

RUN_ID = "keptlog.run-id"
OPERATION = "keptlog.operation"
"""Snapshot summary properties, beside ``COMMIT_ID``."""
SAME_AGAIN = "run the same command again, which finds out"
"""What to do about a commit without an answer of what takes no run id, and does no harm twice."""


@dataclass(frozen=True, slots=True)
class Change:
    """What tells one change from another; how it is made is prepared for each table anew."""

    topic: str
    topic_id: str | None = None
    """The topic that it was made for; null for the one that has the name when it is first looked at."""
    commit_id: str | None = None
    """Also tells it from another change of the same run; null if it does no harm to land twice."""
    since: int | None = None
    """The sequence number from which on it may have landed, 0 for ever; null if it can't have before it is sent."""
    require_fit: Callable[[Table], None] = require_own
    """Says of each fresh table whether it may be built on at all; only a repair has one of its own."""
    remedy: str = ""
    """What to do if nobody can say whether it landed; empty for a run that is run again with the same run id."""
    namespace: str = NAMESPACE
    """In another one it is no topic that is changed, but a table of keptlog's own."""
    once_bare: str | None = None
    """Its operation, if a keptlog from before gave changes of it the bare run id. Who made one under this run id may
    have made this one, so it is found; of which log it was is not in its id."""

    def __str__(self) -> str:
        """Its name in the log: its topic, and its run if it has one."""
        return f"{self.place}, run {self.run_id}" if self.run_id else self.place

    @property
    def place(self) -> str:
        """What is changed, in words."""
        return f"topic {self.topic}" if self.namespace == NAMESPACE else f"table {self.namespace}.{self.topic}"

    @property
    def run_id(self) -> str:
        """Of the run that makes it; empty if it is of none."""
        return (self.commit_id or "").partition("/")[0]

    def summary(self, operation: str) -> dict[str, str]:
        """What its snapshot tells of it."""
        return {RUN_ID: self.run_id, COMMIT_ID: self.commit_id or "", OPERATION: operation}


def log_change(
    name: TopicPartition, run_id: str, operation: str, *, is_new_run: bool, topic_id: str | None = None
) -> Change:
    """What a run does to one log, once for each operation.

    Raises:
        InvalidConfig: the run id is not possible.
    """
    commit_id = commit_id_for(run_id, operation, name.partition)
    return Change(name.topic, topic_id, commit_id, may_have_landed_since(is_new_run=is_new_run), once_bare=operation)


def may_have_landed_since(*, is_new_run: bool) -> int | None:
    """``Change.since`` before a run sends anything: who has just made its run id has not used it before."""
    return None if is_new_run else 0


def commit_id_for(run_id: str, operation: str, partition: int) -> str:
    """Of the run, of what it does and to which log: one run may delete records of several, and append to them.

    Raises:
        InvalidConfig: the run id is not possible.
    """
    return f"{valid_run_id(run_id)}/{operation}/{partition}"


def commit_id_of(run_id: str, paths: Iterable[str]) -> str:
    """Of the run and of the files that it moves: a run may commit twice, first to clean and then to expire.

    Raises:
        InvalidConfig: the run id is not possible.
    """
    return f"{valid_run_id(run_id)}/{hashlib.sha256(' '.join(sorted(paths)).encode()).hexdigest()}"
