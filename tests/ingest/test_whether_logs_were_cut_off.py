"""An ingest asks whether idle logs were cut off that have a later leader: what it is not told now is no failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.source import EpochEnds
from keptlog.log.source import IngestPlan, OffsetRange
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.memory import MemorySource

REFUSED = InvalidConfig("the user has no permission")
SILENT = [StorageUnavailable(f"broker {number} says nothing") for number in (1, 2)]


@dataclass(frozen=True)
class UntoldSource(MemorySource):
    """One whose leaders don't say where epochs end."""

    errors: Mapping[TopicPartition, KeptlogError] = field(default_factory=dict)

    def ends_of_epochs(self, _plans: Sequence[IngestPlan]) -> EpochEnds:  # type: ignore[override]
        return {}, self.errors


def test_what_is_not_told_now_is_a_warning_for_each_cause_and_what_never_will_be_fails_alone(store: LogStore) -> None:
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    assert not ingest.carry_out(ingest.plan(MemorySource({"users": (1,) * 8})), "run-1").failed
    why = [*[SILENT[0]] * 5, SILENT[1], REFUSED]
    errors = {TopicPartition("users", partition): error for partition, error in enumerate(why)}

    plans = ingest.plan(UntoldSource({"users": (*(1,) * 7, 2)}, errors=errors))
    [planned] = plans.topics
    unsure = tuple(OffsetRange(partition, 1, 1, 1, 0, 1) for partition in range(len(why)))
    plans = replace(plans, topics=(replace(planned, plan=replace(planned.plan, unsure=unsure)),))
    result = ingest.carry_out(plans, "run-2")

    assert result.failed == {"users-6": REFUSED}
    assert result.warnings == (
        "users-0, users-1, users-2 and 2 more: broker 1 says nothing",
        "users-5: broker 2 says nothing",
    )
    assert [str(each.topic_partition) for each in result.committed] == ["users-7"], "what is there to be read is read"


def test_what_is_not_told_now_fails_what_was_to_be_compared_as_the_next_ingest_compares_nothing(
    store: LogStore,
) -> None:
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    assert not ingest.carry_out(ingest.plan(MemorySource({"users": (1, 1)})), "run-1").failed

    errors = {TopicPartition("users", 0): SILENT[0]}
    plans = ingest.plan(UntoldSource({"users": (1, 1)}, errors=errors), reconcile=True)
    [planned] = plans.topics
    unsure = (OffsetRange(0, 1, 1, 1, 0, 1),)
    plans = replace(plans, topics=(replace(planned, plan=replace(planned.plan, unsure=unsure)),))
    result = ingest.carry_out(plans, "run-2")

    assert (result.failed, result.warnings) == ({"users-0": SILENT[0]}, ())
