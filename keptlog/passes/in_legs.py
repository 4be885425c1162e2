"""Carries a large step out leg by leg, and commits each but the last, which is left to whoever commits the pass.

    leg 1   rewrite -> verify -> commit     live: what it replaces may be purged from now on
    leg 2   rewrite -> verify -> commit
    leg 3   rewrite -> verify               the outcome; its commit moves the checkpoint

A pass that ends between two legs, or is killed, leaves a log in which everything is right but not everything is done:
the checkpoint stands where it stood. The next pass maps and judges again from the log start, and hardly rewrites what
these legs have rewritten. So does a second try of this one, on the segments as they stand by then; what the legs of the
first have done is told with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import InvariantViolated
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import Compact
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.apart import asking_a_topic
from keptlog.progress import Progress
from keptlog.storage.leftover import discard

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.table.store import LogStore


@dataclass(frozen=True, slots=True)
class _Begun:
    """A step on its way, in whatever try of it."""

    standing: Compact
    """With its segments as they stand."""
    live: tuple[RewriteResult, ...] = ()
    """Its legs that are live, of all tries."""

    def after(self, leg: RewriteResult) -> _Begun:
        """The same once a leg is live."""
        standing = replace(self.standing.ended_at(leg.step.end_offset), segments=leg.segments_after)
        return _Begun(standing, (*self.live, leg))


def changed_by(legs: Iterable[RewriteResult]) -> int:
    """How many of these legs have changed the log: one in which nothing was to be done has no commit."""
    return sum(not leg.is_empty for leg in legs)


@dataclass
class InLegs:
    """The large steps of one pass on their way."""

    store: LogStore
    engine: Engine
    run_id: str
    progress: Progress
    _begun: dict[TopicPartition, _Begun] = field(default_factory=dict)
    """The steps of which a leg is live."""

    def rewrite(self, step: Compact, location: str) -> RewriteResult:
        """Commit all legs but the last, and stage that one. ``location`` is where the topic's data lies.

        Raises:
            StalePlan: the log was changed by somebody else, or an input is gone.
            InvariantViolated: a leg would break a guarantee.
            KeptlogError: the storage fails, or whoever runs the tasks. The legs before are live.
        """
        name = step.topic_partition
        begun = self._begun.get(name, _Begun(step))
        with closing(self.engine.rewrite_in_legs(begun.standing, location, self.run_id, self.progress)) as legs:
            for outcome in legs:
                if outcome.ends_step:
                    return self._verified(replace(outcome, earlier=begun.live))
                self._commit(self._verified(outcome))
                begun = self._begun[name] = begun.after(outcome)
        raise InvariantViolated(f"{name}: a clean in legs has no last one; nothing is lost, please report this")

    def live_of(self, name: TopicPartition) -> tuple[RewriteResult, ...]:
        """The legs of a log that are live; none if it was not begun."""
        begun = self._begun.get(name)
        return begun.live if begun else ()

    def _verified(self, outcome: RewriteResult) -> RewriteResult:
        try:
            verify(outcome)
        except InvariantViolated:
            discard(self.store.files, outcome.staged_paths)
            raise
        return outcome

    def _commit(self, outcome: RewriteResult) -> None:
        if outcome.is_empty:
            discard(self.store.files, outcome.staged_paths)
        else:
            with asking_a_topic():
                self.store.swap(outcome.step.topic_partition.topic, [outcome], self.run_id)
