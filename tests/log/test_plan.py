"""What a plan holds, and that it is data."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.assessment import Trigger, assess
from keptlog.log.broker import BrokerConfig
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.plan import describe_step, make_plan, plan_step, why_left_alone
from keptlog.log.segment import Log
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.log.strategy import Strategy, StrategyKind
from tests.building import HOUR_MS, NOW_MS, config, log, segment
from tests.log.test_assessment import logs_with_tombstones

OLD_MS = NOW_MS - 24 * HOUR_MS
CLEAN = segment(0, 9, time_ms=OLD_MS)
DIRTY = segment(10, 19, size=300, time_ms=OLD_MS)
ACTIVE = segment(20, 29)
EXPIRED = segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS - 1)


def compacted(**settings: object) -> Log:
    return log([CLEAN, DIRTY, ACTIVE], config(**{"segment_ms": HOUR_MS} | settings), checkpoint=10)


def planned(judged: Log, *, requested: bool = False) -> CleanStep:
    step = plan_step(assess(judged, NOW_MS), requested=requested)
    assert step is not None
    return step


def compaction(judged: Log) -> Compact:
    step = planned(judged)
    assert isinstance(step, Compact)
    return step


def test_a_compaction_takes_all_segments_from_the_log_start_to_the_first_uncleanable() -> None:
    step = compaction(compacted(delete_retention_ms=60, segment_bytes=250))
    assert (step.kind, step.trigger) == ("compact", Trigger.DIRTY_RATIO)
    assert step.segments == (CLEAN, DIRTY)
    assert step.dirty == (DIRTY,)
    assert (step.first_dirty_offset, step.end_offset, step.checkpoint) == (10, 20, 10)
    assert (step.bounds.end_offset, step.bounds.now_ms, step.bounds.delete_retention_ms) == (20, NOW_MS, 60)
    assert step.segment_bytes == 250


def test_only_the_last_input_of_a_compaction_must_be_rewritten() -> None:
    step = compaction(compacted())
    assert [step.must_rewrite(each) for each in step.segments] == [False, True]
    longer = compaction(log([CLEAN, DIRTY, replace(ACTIVE, first_timestamp_ms=OLD_MS)], config(segment_ms=1)))
    assert [longer.must_rewrite(each) for each in longer.segments] == [False, False, True]


def test_an_expiry_takes_only_the_clean_segments_with_a_tombstone_past_its_horizon() -> None:
    waiting = segment(10, 19, time_ms=OLD_MS, horizon_ms=NOW_MS + 1)
    judged = log([EXPIRED, waiting, segment(20, 29, time_ms=OLD_MS)], config(), checkpoint=30)
    step = planned(judged)
    assert isinstance(step, Expire)
    assert (step.kind, step.trigger) == ("expire", Trigger.TOMBSTONE_EXPIRY)
    assert step.segments == (EXPIRED,)
    assert step.first_dirty_offset == step.end_offset == 30


@pytest.mark.parametrize(("cleaning_to", "is_due"), [(None, True), (10, False), (5, True)])
def test_a_segment_that_first_dirty_lies_in_is_expired_only_if_no_dirty_tombstone_can_have_a_horizon(
    cleaning_to: int | None, is_due: bool
) -> None:
    """An expire step removes nothing of the dirty section, and would be due again at once."""
    idle = log([EXPIRED], config(min_cleanable_dirty_ratio=1), checkpoint=5)
    judged = replace(idle, cleaning_to=cleaning_to)
    assert assess(judged, NOW_MS).trigger == (Trigger.TOMBSTONE_EXPIRY if is_due else None)
    assert (plan_step(assess(judged, NOW_MS)) is not None) is is_due


def test_a_log_that_is_not_due_has_no_step_unless_one_is_requested() -> None:
    judged = compacted(min_cleanable_dirty_ratio=1)
    assert plan_step(assess(judged, NOW_MS)) is None
    step = planned(judged, requested=True)
    assert (step.kind, step.trigger, step.segments) == ("compact", Trigger.REQUESTED, (CLEAN, DIRTY))


def test_a_request_keeps_a_stronger_reason() -> None:
    assert planned(compacted(), requested=True).trigger is Trigger.DIRTY_RATIO


def test_a_request_compacts_what_would_only_have_been_expired() -> None:
    judged = log([EXPIRED, DIRTY], config(segment_ms=HOUR_MS, min_cleanable_dirty_ratio=1), checkpoint=10)
    assert planned(judged).kind == "expire"
    step = planned(judged, requested=True)
    assert (step.kind, step.trigger, step.segments) == ("compact", Trigger.REQUESTED, (EXPIRED, DIRTY))


def test_a_request_expires_tombstones_when_nothing_is_cleanable() -> None:
    assert planned(log([EXPIRED], checkpoint=10), requested=True).kind == "expire"


@pytest.mark.parametrize(
    "judged",
    [
        log([CLEAN], checkpoint=10),
        log([ACTIVE]),
        log([]),
        log([DIRTY], config(segment_ms=1, min_compaction_lag_ms=48 * HOUR_MS)),
        log([CLEAN, DIRTY], config(cleanup_policy="delete", segment_ms=1)),
    ],
)
def test_a_request_can_not_clean_what_is_clean_active_too_young_or_not_compacted(judged: Log) -> None:
    assert plan_step(assess(judged, NOW_MS), requested=True) is None


@pytest.mark.parametrize(
    ("judged", "reason"),
    [
        (log([CLEAN], checkpoint=10), "clean: nothing was appended since its last clean"),
        (log([]), "empty: nothing was ever appended"),
        (log([], start=7), "empty: none of its records is left"),
        (log([ACTIVE]), "all dirty records are in the active segment"),
        (
            log([DIRTY], config(segment_ms=1, min_compaction_lag_ms=48 * HOUR_MS)),
            "all dirty records wait for min.compaction.lag.ms=172800000 (2 d)",
        ),
        (log([CLEAN, DIRTY], config(cleanup_policy="delete")), "cleanup.policy is delete: it is not compacted"),
        (log([CLEAN], config(cleanup_policy="")), "cleanup.policy is empty: it is not compacted"),
        (
            compacted(min_cleanable_dirty_ratio=0.8),
            "dirty ratio 0.75 is not above min.cleanable.dirty.ratio=0.8 and no record is past its maximum lag",
        ),
    ],
)
def test_a_log_that_is_left_alone_has_a_reason(judged: Log, reason: str) -> None:
    assessment = assess(judged, NOW_MS)
    assert why_left_alone(assessment) == reason
    assert make_plan([assessment], NOW_MS).left_alone == {"t-0": reason}


def test_a_plan_has_its_steps_in_the_order_of_urgency() -> None:
    late = log([DIRTY], config(max_compaction_lag_ms=HOUR_MS), name="late-0")
    dirty = log([DIRTY], config(segment_ms=HOUR_MS), name="dirty-0")
    asked = log([CLEAN, DIRTY], config(segment_ms=HOUR_MS, min_cleanable_dirty_ratio=1), name="asked-0", checkpoint=10)
    expired = log([EXPIRED], name="a-0", checkpoint=10)
    assessments = [assess(each, NOW_MS) for each in (expired, asked, dirty, late)]
    plan = make_plan(assessments, NOW_MS, requested=True)
    assert [step.topic_partition.topic for step in plan.steps] == ["late", "dirty", "a", "asked"]
    assert [step.topic_partition.topic for step in plan.steps if isinstance(step, Expire)] == ["a"]


@given(logs_with_tombstones(), st.integers(NOW_MS - 1000, NOW_MS + 9000), st.booleans())
def test_a_step_never_touches_what_is_young_or_active_and_always_makes_progress(
    judged: Log, now_ms: int, requested: bool
) -> None:
    assessment = assess(judged, now_ms)
    step = plan_step(assessment, requested=requested)
    if step is None:
        assert assessment.trigger is None
        return
    assert not set(step.segments) & set(assessment.sections.uncleanable + assessment.sections.active)
    if isinstance(step, Compact):
        assert step.dirty
        assert step.end_offset > step.first_dirty_offset


def test_a_step_is_told_in_one_line() -> None:
    assert describe_step(planned(compacted())) == (
        "t-0: compact offsets [10, 20) of 1 dirty segment (300 B) into 1 clean one, dirty ratio 0.75, dirty_ratio"
    )
    assert describe_step(planned(log([EXPIRED], checkpoint=10))) == (
        "t-0: expire tombstones in 1 segment (100 B), tombstone_expiry"
    )


def test_a_step_may_map_as_many_keys_as_its_broker_allows_for_its_strategy() -> None:
    broker = BrokerConfig.of({"keptlog.offset.map.overflow": "shuffle"})
    by_offset, by_timestamp = compacted(), compacted(compaction_strategy="timestamp")
    [bounded] = make_plan([assess(by_offset, NOW_MS)], NOW_MS, broker).steps
    assert isinstance(bounded, Compact)
    assert bounded.map_capacity == MapCapacity(5_033_164, MapOverflow.SHUFFLE)
    step = plan_step(assess(by_timestamp, NOW_MS), broker)
    assert isinstance(step, Compact)
    assert step.strategy == Strategy(StrategyKind.TIMESTAMP)
    assert step.map_capacity.max_keys == BrokerConfig().max_keys(step.strategy)
    assert compaction(by_offset).map_capacity == UNBOUNDED


@pytest.mark.parametrize("requested", [True, False])
@pytest.mark.parametrize("dirty_hours", [2, 4])
@pytest.mark.parametrize(
    ("strategy", "last_was_expiry", "kind"),
    [("timestamp", False, "expire"), ("timestamp", True, "compact"), ("offset", False, "compact")],
)
def test_a_clean_that_would_leave_tombstones_takes_turns_with_their_expiry_whatever_the_records_are_dated(
    strategy: str, last_was_expiry: bool, kind: str, dirty_hours: int, requested: bool
) -> None:
    """The tombstone has been past its horizon for 3 hours."""
    expired = segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS - 3 * HOUR_MS)
    dirty = segment(10, 19, size=300, time_ms=NOW_MS - dirty_hours * HOUR_MS)
    settings = config(segment_ms=HOUR_MS, compaction_strategy=strategy)
    judged = replace(log([expired, dirty, ACTIVE], settings, checkpoint=10), last_was_expiry=last_was_expiry)
    broker = BrokerConfig(keptlog_cleaner_commit_max_bytes=200)
    step = plan_step(assess(judged, NOW_MS), broker, requested=requested)
    assert step is not None
    assert step.kind == kind
    in_one_commit = plan_step(assess(judged, NOW_MS), requested=requested)
    assert in_one_commit is not None
    assert in_one_commit.kind == "compact"


def test_after_the_expiry_the_clean_is_still_due() -> None:
    settings = config(segment_ms=HOUR_MS, compaction_strategy="timestamp")
    broker = BrokerConfig(keptlog_cleaner_commit_max_bytes=200)
    step = plan_step(assess(log([CLEAN, DIRTY, ACTIVE], settings, checkpoint=10), NOW_MS), broker)
    assert isinstance(step, Compact)
    assert step.leaves_tombstones


def test_a_step_whose_map_is_full_ends_early_without_what_lies_behind() -> None:
    step = compaction(
        log([CLEAN, DIRTY, replace(ACTIVE, first_timestamp_ms=OLD_MS)], config(segment_ms=1), checkpoint=10)
    )
    assert step.end_offset == 30
    assert step.ended_at(30) is step
    shorter = step.ended_at(15)
    assert (shorter.end_offset, shorter.ends_early, step.ends_early) == (15, True, False)
    assert shorter.segments == (CLEAN, DIRTY)
    assert shorter.must_rewrite(DIRTY)
    assert step.ended_at(20).segments == (CLEAN, DIRTY)


def test_a_log_waits_for_a_transaction_that_is_still_open() -> None:
    waiting = assess(replace(compacted(), last_stable_offset=10), NOW_MS)
    assert why_left_alone(waiting) == "all dirty records wait for the transaction that begins at offset 10"
