"""The rule of the state machine that cleans as a large log is cleaned: a commit for each segment."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import note
from hypothesis.stateful import precondition, rule

from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.log.reference import ReferenceLog
from keptlog.log.steps import Compact
from keptlog.passes.clean import Cleaner
from tests.logs import ReferenceTwin, carry_out
from tests.model.histories import DAY_MS, PARTITIONS, RECORDS, TOPIC

A_SEGMENT_A_COMMIT = BrokerConfig(keptlog_cleaner_commit_max_bytes=1)


class CleaningInLegs:
    """What the machine has besides."""

    cleaner: Cleaner
    expected: dict[int, ReferenceTwin]
    now_ms: int

    @property
    def is_compacted(self) -> bool:
        raise NotImplementedError

    def append(self, records: list[NewRecord], time_ms: int) -> None:
        raise NotImplementedError

    def _changed(self, partition: int) -> None:
        raise NotImplementedError

    def _as_it_is_now(self, partition: int) -> ReferenceLog:
        raise NotImplementedError

    @precondition(lambda self: self.is_compacted)
    @rule(records=RECORDS)
    def append_and_clean_in_legs(self, records: list[NewRecord]) -> None:
        """By version tombstones are left to an expiry, and one expiry takes one segment."""
        self.append(records, DAY_MS + 1)
        cleaner = replace(self.cleaner, broker=A_SEGMENT_A_COMMIT)
        names = [f"{TOPIC}-{partition}" for partition in PARTITIONS]
        plan = cleaner.plan(names, now_ms=self.now_ms, requested=True)
        told = [(str(step.topic_partition), len(step.legs) if isinstance(step, Compact) else 0) for step in plan.steps]
        note(f"clean in legs: {told}")
        planned_from = {partition: self._as_it_is_now(partition) for partition in PARTITIONS}
        assert not carry_out(cleaner, plan).failed
        for step in plan.steps:
            partition = step.topic_partition.partition
            log = self.expected[partition].log = planned_from[partition]
            if isinstance(step, Compact):
                assert log.clean(self.now_ms, None if step.leaves_tombstones else 0)
            else:
                assert log.expire(self.now_ms, step.segments[-1].last_offset)
            self._changed(partition)
