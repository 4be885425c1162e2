"""Steps on their way through Spark: each is staged and verified, or has its own error.

    steps --where does the topic's data lie?--> engine --verify--> an outcome or an error a step
              a topic that can't say fails alone

Several topics in a row that are out of reach are told as one error, for it may be an outage (``apart``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.errors import InvariantViolated, KeptlogError, StorageUnavailable
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import CleanStep, Compact
from keptlog.passes.apart import asking_a_topic
from keptlog.passes.landing import OUTAGES_BORNE
from keptlog.progress import Progress
from keptlog.storage.leftover import discard

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.passes.in_legs import InLegs
    from keptlog.table.store import LogStore


def is_in_legs(step: CleanStep) -> bool:
    """Whether a step is too large for one commit."""
    return isinstance(step, Compact) and len(step.legs) > 1


@dataclass(frozen=True)
class Rewrites:
    """The rewrites of one pass, of one store with one engine."""

    store: LogStore
    engine: Engine
    run_id: str
    progress: Progress

    def done(self, steps: Sequence[CleanStep]) -> list[RewriteResult | KeptlogError]:
        """The same as ``each``; a large step, which comes alone, is done in legs.

        Raises:
            KeptlogError: what a large step ends with; or as ``each``.
        """
        match steps:
            case [Compact() as step] if is_in_legs(step):
                return [self._in_legs.rewrite(step, self._location(step.topic_partition.topic))]
        return self.each(steps)

    def each(self, steps: Sequence[CleanStep]) -> list[RewriteResult | KeptlogError]:
        """Run steps on Spark and verify each outcome; everything is staged, nothing visible. No steps, no session.

        Returns:
            An outcome for each step, in their order, or the error that its log ends with; then nothing is staged of it.

        Raises:
            StorageUnavailable: Spark fails, or the catalog, and nobody knows for which log; nothing is staged.
        """
        errors: dict[str, KeptlogError] = {}
        locations = self._locations(steps, errors)
        within_reach = [step for step in steps if step.topic_partition.topic in locations]
        rewritten = iter(self.engine.rewrite_each(within_reach, locations, self.run_id, self.progress))
        return [
            self._verified(next(rewritten)) if (topic := step.topic_partition.topic) in locations else errors[topic]
            for step in steps
        ]

    def live_legs(self, step: CleanStep) -> int:
        """How many commits a step has made that is not done."""
        from keptlog.passes.in_legs import changed_by  # noqa: PLC0415

        return changed_by(self._in_legs.live_of(step.topic_partition)) if is_in_legs(step) else 0

    def look_for_outage(self, steps: Sequence[CleanStep]) -> None:
        """Whether the first of these steps could be done at all, or its topic alone is out of reach.

        Raises:
            Exception: Spark, the catalog or the storage is out of reach; or a topic is broken (LogCorrupt …).
        """
        self.engine.probe(self.run_id)
        topics = list(dict.fromkeys(step.topic_partition.topic for step in steps))[:OUTAGES_BORNE]
        for topic in topics:
            try:
                with asking_a_topic():
                    self.store.describe_topic(topic)
            except StorageUnavailable:
                if topic == topics[-1]:
                    raise
            else:
                return

    @cached_property
    def _in_legs(self) -> InLegs:
        """One for all tries: it knows which legs are live."""
        from keptlog.passes.in_legs import InLegs  # noqa: PLC0415

        return InLegs(self.store, self.engine, self.run_id, self.progress)

    def _verified(self, outcome: RewriteResult | KeptlogError) -> RewriteResult | KeptlogError:
        if isinstance(outcome, RewriteResult):
            try:
                verify(outcome)
            except InvariantViolated as error:
                discard(self.store.files, outcome.staged_paths)
                return error
        return outcome

    def _locations(self, steps: Sequence[CleanStep], errors: dict[str, KeptlogError]) -> dict[str, str]:
        """Where the data of each step's topic lies; a topic that does not tell comes into ``errors``.

        Raises:
            StorageUnavailable: several topics in a row are out of reach: the others are not asked.
        """
        locations: dict[str, str] = {}
        out_of_reach = 0
        for topic in dict.fromkeys(step.topic_partition.topic for step in steps):
            try:
                locations[topic] = self._location(topic)
            except KeptlogError as error:
                errors[topic] = error
                out_of_reach += isinstance(error, StorageUnavailable)
                if out_of_reach == OUTAGES_BORNE:
                    raise
            else:
                out_of_reach = 0
        return locations

    def _location(self, topic: str) -> str:
        with asking_a_topic():
            location = self.store.data_location(topic)
        # A task would find it out as well, but takes a job for it, and for each try.
        self.store.files.require_client(location)
        return location
