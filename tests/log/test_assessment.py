"""Which logs are due, why, in which order, and when to look again."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log import assessment
from keptlog.log.assessment import Trigger, assess, in_order_of_urgency
from keptlog.log.config import TopicConfig
from keptlog.log.record import LARGEST_TIMESTAMP_MS
from keptlog.log.sections import Sections, sections_of
from keptlog.log.segment import Log, Segment
from keptlog.log.uncleanable import Uncleanable
from tests.building import HOUR_MS, NOW_MS, config, log, segment
from tests.log.test_sections import logs

OLD_MS = NOW_MS - 24 * HOUR_MS


def half_dirty(name: str = "t-0", *, dirty_bytes: int = 100, age_ms: int = 2 * HOUR_MS, **settings: object) -> Log:
    """A log of 100 clean bytes and as many dirty ones as wanted, closed by the clock after an hour."""
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19, size=dirty_bytes, time_ms=NOW_MS - age_ms)]
    return log(segments, config(**{"segment_ms": HOUR_MS} | settings), name=name, checkpoint=10)


def test_a_ratio_equal_to_the_minimum_is_not_enough() -> None:
    assert assess(half_dirty(), NOW_MS).cleanable_ratio == 0.5
    assert assess(half_dirty(), NOW_MS).trigger is None
    assert assess(half_dirty(dirty_bytes=101), NOW_MS).trigger is Trigger.DIRTY_RATIO


def test_with_a_minimum_of_one_the_ratio_never_decides() -> None:
    never = log([segment(0, 9, time_ms=OLD_MS)], config(segment_ms=HOUR_MS, min_cleanable_dirty_ratio=1))
    assert assess(never, NOW_MS).cleanable_ratio == 1.0
    assert assess(never, NOW_MS).trigger is None


def test_with_a_minimum_of_zero_any_cleanable_byte_decides_but_none_does_not() -> None:
    assert assess(half_dirty(dirty_bytes=1, min_cleanable_dirty_ratio=0), NOW_MS).trigger is Trigger.DIRTY_RATIO
    clean = log([segment(0, 9, time_ms=OLD_MS)], config(min_cleanable_dirty_ratio=0), checkpoint=10)
    assert assess(clean, NOW_MS).trigger is None


def test_a_record_past_the_maximum_lag_is_due_whatever_the_ratio() -> None:
    lag_ms = 2 * HOUR_MS
    in_time = assess(half_dirty(age_ms=lag_ms, max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio=1), NOW_MS)
    assert (in_time.trigger, in_time.max_compaction_delay_ms) == (None, 0)
    late = assess(half_dirty(age_ms=lag_ms + 1, max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio=1), NOW_MS)
    assert (late.trigger, late.max_compaction_delay_ms) == (Trigger.MAX_COMPACTION_LAG, 1)


def test_an_idle_log_meets_its_maximum_lag_too() -> None:
    """Kafka's does not, because its active segment is never rolled: KAFKA-20664."""
    idle = log([segment(0, 9, time_ms=NOW_MS - 1001)], config(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1))
    assert assess(idle, NOW_MS - 1).trigger is None
    assert assess(idle, NOW_MS).trigger is Trigger.MAX_COMPACTION_LAG


def test_a_log_is_not_due_by_lag_while_nothing_of_it_is_cleanable() -> None:
    settings = config(segment_ms=1, segment_bytes=1, min_compaction_lag_ms=1000, max_compaction_lag_ms=1000)
    held_back = segment(0, 9, time_ms=OLD_MS, until_ms=NOW_MS + HOUR_MS)
    assessment = assess(log([held_back], settings), NOW_MS)
    assert assessment.max_compaction_delay_ms > 0
    assert assessment.trigger is None


@pytest.mark.parametrize("no_time_ms", [0, -1])
def test_records_without_a_timestamp_are_not_late(no_time_ms: int) -> None:
    settings = config(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1)
    assessment = assess(log([segment(0, 9, time_ms=no_time_ms)], settings), NOW_MS)
    assert assessment.sections.cleanable
    assert assessment.trigger is None
    assert assessment.earliest_uncompacted_ms is None


def test_the_first_millisecond_of_1970_is_a_timestamp() -> None:
    assert assess(log([segment(0, 9, time_ms=1, until_ms=NOW_MS)]), NOW_MS).earliest_uncompacted_ms == 1


def test_a_record_without_a_timestamp_does_not_hide_how_late_the_others_are() -> None:
    settings = config(max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1)
    mixed = log([segment(0, 9, time_ms=-1, until_ms=NOW_MS - 1500)], settings)
    assert assess(mixed, NOW_MS).max_compaction_delay_ms == 500


def test_a_tombstone_is_due_at_its_horizon_without_new_data() -> None:
    """Kafka waits for new data: KAFKA-8522."""
    stamped = log([segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS)], checkpoint=10)
    early, due = assess(stamped, NOW_MS - 1), assess(stamped, NOW_MS)
    assert (early.trigger, early.due_ms, early.delete_expired_ms) == (None, NOW_MS, 0)
    assert (due.trigger, due.delete_expired_ms) == (Trigger.TOMBSTONE_EXPIRY, 0)
    assert assess(stamped, NOW_MS + 5).delete_expired_ms == 5


def test_a_stamped_tombstone_that_became_dirty_again_waits_to_be_compacted() -> None:
    stamped = segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS - 1)
    reset = log([stamped], config(segment_ms=HOUR_MS, min_cleanable_dirty_ratio=1), checkpoint=99)
    assert assess(reset, NOW_MS).sections.checkpoint_reset
    assert assess(reset, NOW_MS).trigger is None


def test_a_topic_that_is_not_compacted_is_never_due() -> None:
    expired = segment(0, 9, time_ms=OLD_MS, horizon_ms=OLD_MS)
    settings = config(cleanup_policy="delete", min_cleanable_dirty_ratio=0, max_compaction_lag_ms=1, segment_ms=1)
    assessment = assess(log([expired, segment(10, 19, time_ms=OLD_MS)], settings, checkpoint=10), NOW_MS)
    assert (assessment.trigger, assessment.due_ms) == (None, None)


@pytest.mark.parametrize("policy", ["delete", ""])
def test_a_log_that_is_not_compacted_is_never_late_whatever_the_brokers_settings_say(policy: str) -> None:
    """Kafka's cleaner looks only at compacted logs: ``LogCleanerManager.grabFilthiestCompactedLog``."""
    settings = TopicConfig.of({"cleanup.policy": policy}, {"log.cleaner.max.compaction.lag.ms": "1000"})
    assessment = assess(log([segment(0, 9, time_ms=OLD_MS, horizon_ms=OLD_MS)], settings, checkpoint=0), NOW_MS)
    assert (assessment.trigger, assessment.due_ms) == (None, None)
    assert (assessment.max_compaction_delay_ms, assessment.earliest_uncompacted_ms) == (0, None)
    assert assessment.delete_expired_ms == 0


@pytest.mark.parametrize(
    "unlimited",
    [
        pytest.param(log([segment(0, 9)], config(segment_ms=2**63 - 1)), id="the active segment is closed"),
        pytest.param(half_dirty(max_compaction_lag_ms=2**63 - 1), id="a record is late"),
        pytest.param(half_dirty(max_compaction_lag_ms=2**62), id="a record is late, as good as never"),
        pytest.param(half_dirty(age_ms=-(2**62), min_compaction_lag_ms=1), id="a record is old enough"),
        pytest.param(log([segment(0, 9, horizon_ms=2**63 // 1000)], checkpoint=10), id="a tombstone may go"),
    ],
)
def test_what_no_calendar_has_a_date_for_is_never_due_by_the_clock(unlimited: Log) -> None:
    """Status told of a log without a maximum lag that it was due at 9223373735990775808 ms."""
    assert assess(unlimited, NOW_MS).due_ms is None


def test_what_is_due_in_the_year_9999_is_told_but_for_the_horizon_that_means_never() -> None:
    for horizon_ms, due_ms in ((LARGEST_TIMESTAMP_MS - 1, LARGEST_TIMESTAMP_MS - 1), (LARGEST_TIMESTAMP_MS, None)):
        stamped = log([segment(0, 9, time_ms=OLD_MS, horizon_ms=horizon_ms)], checkpoint=10)
        assert assess(stamped, NOW_MS).due_ms == due_ms


def test_the_late_go_first_then_the_dirty_then_the_expired_and_the_rest_not_at_all() -> None:
    """Kafka takes the dirtiest, whatever is late."""
    judged = [
        half_dirty("clean-0"),
        log([segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS - 5)], name="expired-0", checkpoint=10),
        log([segment(0, 9, time_ms=OLD_MS, horizon_ms=NOW_MS - 9)], name="expired-1", checkpoint=10),
        half_dirty("dirty-0", dirty_bytes=200),
        half_dirty("dirty-1", dirty_bytes=900),
        half_dirty("late-0", age_ms=3 * HOUR_MS + 1, dirty_bytes=1, max_compaction_lag_ms=3 * HOUR_MS),
        half_dirty("late-1", age_ms=4 * HOUR_MS, dirty_bytes=1, max_compaction_lag_ms=3 * HOUR_MS),
    ]
    order = in_order_of_urgency([assess(each, NOW_MS) for each in judged])
    names = [str(each.log.topic_partition) for each in order]
    assert names == ["late-1", "late-0", "dirty-1", "dirty-0", "expired-1", "expired-0"]


def test_equally_urgent_logs_go_by_name() -> None:
    names = ["b-0", "a-10", "a-9"]
    assessments = [assess(half_dirty(name, dirty_bytes=200), NOW_MS) for name in names]
    assert [str(each.log.topic_partition) for each in in_order_of_urgency(assessments)] == ["a-9", "a-10", "b-0"]


def test_the_oldest_uncompacted_record_may_be_in_the_active_segment() -> None:
    active = log([segment(0, 9, time_ms=OLD_MS), segment(10, 19, time_ms=NOW_MS - 7)], config(), checkpoint=10)
    assert assess(active, NOW_MS).earliest_uncompacted_ms == NOW_MS - 7


def test_a_log_that_is_due_is_due_now() -> None:
    assert assess(half_dirty(dirty_bytes=200), NOW_MS).due_ms == NOW_MS


def test_a_clean_log_without_tombstones_is_due_by_new_data_only() -> None:
    clean = assess(log([segment(0, 9)], checkpoint=10), NOW_MS)
    assert (clean.due_ms, clean.delete_expired_ms) == (None, 0)


def test_an_active_segment_is_looked_at_again_when_the_clock_closes_it() -> None:
    active = log([segment(0, 9, time_ms=NOW_MS)], config(segment_ms=1000))
    assert assess(active, NOW_MS).due_ms == NOW_MS + 1001
    assert assess(active, NOW_MS + 1000).trigger is None
    assert assess(active, NOW_MS + 1001).trigger is Trigger.DIRTY_RATIO
    several = log([segment(0, 9, time_ms=NOW_MS - 700), segment(10, 19)], config(segment_ms=1000))
    assert assess(several, NOW_MS).due_ms == NOW_MS + 301


def test_a_closed_segment_is_looked_at_again_when_its_maximum_lag_has_passed() -> None:
    settings = config(segment_bytes=1, max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1)
    judged = log([segment(0, 9, time_ms=NOW_MS - 7), segment(10, 19)], settings)
    assert assess(judged, NOW_MS).due_ms == NOW_MS - 7 + 1001
    assert assess(judged, NOW_MS - 7 + 1000).trigger is None
    assert assess(judged, NOW_MS - 7 + 1001).trigger is Trigger.MAX_COMPACTION_LAG


def test_a_young_segment_is_looked_at_again_when_its_minimum_lag_has_passed() -> None:
    settings = config(segment_bytes=1, min_compaction_lag_ms=1000)
    judged = log([segment(0, 9, time_ms=NOW_MS - 7), segment(10, 19)], settings)
    assert assess(judged, NOW_MS).due_ms == NOW_MS - 7 + 1000
    assert assess(judged, NOW_MS - 7 + 999).trigger is None
    assert assess(judged, NOW_MS - 7 + 1000).trigger is Trigger.DIRTY_RATIO


def test_a_log_that_waits_is_divided_once_however_many_segments_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look judges all logs of a home, and to divide one takes a walk through its segments."""
    divided: list[int] = []

    def counted(judged: Log, now_ms: int, active: Sequence[Segment] | None) -> Sections:
        divided.append(now_ms)
        return sections_of(judged, now_ms, active)

    monkeypatch.setattr(assessment, "sections_of", counted)
    young = [segment(10 * each, 10 * each + 9, time_ms=NOW_MS + each) for each in range(100)]
    settings = config(segment_bytes=1, min_compaction_lag_ms=HOUR_MS)
    assert assess(log(young, settings), NOW_MS).due_ms == NOW_MS + HOUR_MS
    assert divided == [NOW_MS]


def test_as_many_young_segments_are_waited_for_as_the_ratio_needs() -> None:
    clean, young = segment(0, 9, time_ms=OLD_MS), [segment(10 * each, 10 * each + 9) for each in (1, 2, 3)]
    in_order = [replace(each, largest_timestamp_ms=NOW_MS + lead) for each, lead in zip(young, (5, 9, 7), strict=True)]
    settings = config(segment_bytes=1, min_compaction_lag_ms=1000, min_cleanable_dirty_ratio=0.7)
    judged = log([clean, *in_order, segment(40, 49)], settings, checkpoint=10)
    assert assess(judged, NOW_MS).due_ms == NOW_MS + 1009
    undecided = replace(judged, last_stable_offset=25)
    assert assess(undecided, NOW_MS).due_ms is None


@st.composite
def logs_with_tombstones(draw: st.DrawFn) -> Log:
    judged = draw(logs())
    horizons = st.none() | st.integers(NOW_MS - 2000, NOW_MS + 6000)
    segments = tuple(replace(each, earliest_delete_horizon_ms=draw(horizons)) for each in judged.segments)
    return replace(judged, segments=segments)


@given(logs_with_tombstones(), st.integers(NOW_MS - 1000, NOW_MS + 9000), st.data())
def test_nothing_becomes_due_before_due_ms_by_time_alone(judged: Log, now_ms: int, data: st.DataObject) -> None:
    before = assess(judged, now_ms)
    if before.trigger:
        return
    if before.due_ms is None:
        later_ms = data.draw(st.integers(now_ms, now_ms + 10**9))
    else:
        assert before.due_ms > now_ms
        later_ms = data.draw(st.integers(now_ms, before.due_ms - 1))
    after = assess(judged, later_ms)
    assert after.trigger is None
    assert after.due_ms == before.due_ms


@given(logs_with_tombstones(), st.integers(NOW_MS - 1000, NOW_MS + 9000))
def test_whoever_only_looks_at_due_ms_finds_every_dirty_log_due_in_the_end(judged: Log, now_ms: int) -> None:
    """The maximum lag of these logs is finite, so that none may be left alone for ever with cleanable records in it."""
    for _ in range(40):
        assessment = assess(judged, now_ms)
        if assessment.trigger or assessment.due_ms is None:
            break
        now_ms = assessment.due_ms
    else:
        pytest.fail("due_ms never ends")
    if assessment.sections.dirty:
        assert assessment.trigger is not None


@given(logs_with_tombstones(), st.integers(NOW_MS - 1000, NOW_MS + 9000), st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_at_due_ms_a_log_is_due(judged: Log, now_ms: int, ratio: float) -> None:
    judged = replace(judged, config=replace(judged.config, min_cleanable_dirty_ratio=ratio))
    due_ms = assess(judged, now_ms).due_ms
    assert due_ms is None or assess(judged, due_ms).trigger is not None


def test_a_log_that_no_clock_makes_due_has_no_due_ms() -> None:
    settings = config(segment_ms=1000, min_cleanable_dirty_ratio=1)
    assert assess(log([segment(0, 9, time_ms=NOW_MS)], settings), NOW_MS).due_ms is None
    with_lag = config(segment_ms=1000, min_cleanable_dirty_ratio=1, max_compaction_lag_ms=5000)
    assert assess(log([segment(0, 9, time_ms=NOW_MS)], with_lag), NOW_MS).due_ms == NOW_MS + 5001


def test_after_a_failure_a_log_is_due_at_the_next_try_if_anything_makes_it_due_then() -> None:
    mark = Uncleanable("it broke", NOW_MS - 1000, attempts=1, retry_at_ms=NOW_MS + 1000)
    assert assess(replace(half_dirty(dirty_bytes=200), uncleanable=mark), NOW_MS).due_ms == NOW_MS + 1000
    assert assess(replace(half_dirty(dirty_bytes=100), uncleanable=mark), NOW_MS).due_ms is None


def test_where_a_missing_timestamp_hides_the_first_one_the_largest_stands_for_it() -> None:
    for missing_ms in (0, -1):
        hidden = segment(0, 9, time_ms=missing_ms, until_ms=NOW_MS - 1500)
        assert assess(log([hidden], config(max_compaction_lag_ms=1000)), NOW_MS).max_compaction_delay_ms == 500
