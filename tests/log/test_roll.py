"""Which of the newest segments stand for Kafka's active segment."""

from dataclasses import replace

import pytest

from keptlog.log.assessment import Trigger, assess
from keptlog.log.roll import active_segments, closing_ms
from keptlog.log.segment import Segment
from tests.building import HOUR_MS, MIB, NOW_MS, config, is_rolled_before, log, segment

DAY_MS = 24 * HOUR_MS


def offsets(segments: tuple[Segment, ...]) -> list[int]:
    return [each.base_offset for each in segments]


def test_all_that_was_appended_is_active_until_something_closes_it() -> None:
    appended = [segment(0, 9), segment(10, 19), segment(20, 29)]
    assert offsets(active_segments(appended, config(), NOW_MS)) == [0, 10, 20]


def test_nothing_appended_nothing_active() -> None:
    assert active_segments([], config(), NOW_MS) == ()


def test_a_run_is_closed_by_the_segment_that_would_make_it_too_large() -> None:
    appended = [segment(0, 9, size=400), segment(10, 19, size=600), segment(20, 29, size=1)]
    assert offsets(active_segments(appended, config(segment_bytes=1000), NOW_MS)) == [20]


def test_a_run_of_exactly_the_maximum_size_is_still_active() -> None:
    appended = [segment(0, 9, size=400), segment(10, 19, size=600)]
    assert offsets(active_segments(appended, config(segment_bytes=1000), NOW_MS)) == [0, 10]


def test_a_segment_larger_than_the_maximum_stands_alone() -> None:
    appended = [segment(0, 9), segment(10, 19, size=5000), segment(20, 29)]
    assert offsets(active_segments(appended, config(segment_bytes=1000), NOW_MS)) == [20]
    assert offsets(active_segments(appended[:2], config(segment_bytes=1000), NOW_MS)) == [10]


def test_kafkas_own_example_of_rolling_by_size() -> None:
    """UnifiedLogTest.testSizeBasedLogRoll: sets of 70 bytes into segments of 690, so nine fit and the tenth rolls."""
    appended = [segment(offset, offset, size=70) for offset in range(10)]
    settings = config(segment_bytes=690)
    assert offsets(active_segments(appended[:9], settings, NOW_MS)) == list(range(9))
    assert offsets(active_segments(appended, settings, NOW_MS)) == [9]


def test_a_run_is_closed_by_timestamps_more_than_segment_ms_after_its_first() -> None:
    run = [segment(0, 9, time_ms=NOW_MS)]
    settings = config(segment_ms=1000)
    assert not is_rolled_before(run, segment(10, 19, time_ms=NOW_MS + 1000), settings)
    assert is_rolled_before(run, segment(10, 19, time_ms=NOW_MS + 1001), settings)


def test_the_largest_timestamp_of_the_new_segment_decides() -> None:
    run = [segment(0, 9, time_ms=NOW_MS)]
    assert is_rolled_before(run, segment(10, 19, time_ms=NOW_MS, until_ms=NOW_MS + 1001), config(segment_ms=1000))


def test_the_run_begins_anew_with_the_segment_that_closed_the_last_one() -> None:
    appended = [segment(offset, offset, time_ms=NOW_MS + 600 * offset) for offset in range(5)]
    assert offsets(active_segments(appended, config(segment_ms=1000), NOW_MS + 2400)) == [4]
    assert offsets(active_segments(appended[:4], config(segment_ms=1000), NOW_MS + 1800)) == [2, 3]


def test_the_maximum_lag_closes_a_run_when_it_is_shorter_than_segment_ms() -> None:
    run = [segment(0, 9, time_ms=NOW_MS)]
    later = segment(10, 19, time_ms=NOW_MS + 601)
    assert is_rolled_before(run, later, config(segment_ms=1000, max_compaction_lag_ms=600))
    assert not is_rolled_before(run, later, config(cleanup_policy="delete", segment_ms=1000, max_compaction_lag_ms=600))


def test_records_older_than_what_was_appended_before_close_nothing() -> None:
    appended = [segment(0, 9, time_ms=NOW_MS), segment(10, 19, time_ms=NOW_MS - 900)]
    assert offsets(active_segments(appended, config(segment_ms=1000), NOW_MS)) == [0, 10]


def test_the_clock_closes_the_run_of_an_idle_log() -> None:
    """Kafka's stays active for ever: KAFKA-20664."""
    appended = [segment(0, 9, time_ms=NOW_MS), segment(10, 19, time_ms=NOW_MS + 900)]
    settings = config(segment_ms=1000)
    assert offsets(active_segments(appended, settings, NOW_MS + 1000)) == [0, 10]
    assert active_segments(appended, settings, NOW_MS + 1001) == ()


@pytest.mark.parametrize(
    "times_ms",
    [(NOW_MS - HOUR_MS, NOW_MS - 9 * DAY_MS, NOW_MS), (NOW_MS + 9000 * DAY_MS, NOW_MS - 2 * DAY_MS)],
    ids=["behind a young one", "behind one that is to come"],
)
def test_an_old_record_is_closed_by_the_clock_wherever_it_stands_in_its_run(times_ms: tuple[int, ...]) -> None:
    """The run's first file alone would keep it active past its maximum lag, for years behind a clock that was ahead."""
    appended = [segment(10 * number, 10 * number + 9, time_ms=time_ms) for number, time_ms in enumerate(times_ms)]
    for settings in (config(segment_ms=DAY_MS), config(max_compaction_lag_ms=DAY_MS)):
        assert active_segments(appended, settings, NOW_MS) == ()
        closes_ms = min(times_ms) + DAY_MS + 1
        assert closing_ms(appended, settings) == closes_ms
        assert len(active_segments(appended, settings, closes_ms - 1)) == len(appended)
    late = log(appended, config(max_compaction_lag_ms=DAY_MS))
    assert assess(late, NOW_MS).trigger is Trigger.MAX_COMPACTION_LAG
    young = assess(late, min(times_ms) + DAY_MS)
    assert (young.trigger, young.due_ms) == (None, closing_ms(appended, late.config))


def test_a_record_without_a_time_closes_no_run_in_which_others_have_one() -> None:
    mixed = replace(segment(10, 19, time_ms=NOW_MS), first_timestamp_ms=-1)
    settings = config(segment_ms=DAY_MS)
    assert len(active_segments([segment(0, 9, time_ms=NOW_MS), mixed], settings, NOW_MS)) == 2
    assert len(active_segments([mixed], settings, NOW_MS)) == 1
    assert active_segments([segment(0, 9, time_ms=-1)], settings, NOW_MS) == ()
    assert not is_rolled_before([mixed], segment(20, 29, time_ms=NOW_MS), settings)


def test_records_from_the_future_stay_active_until_the_clock_has_passed_them() -> None:
    appended = [segment(0, 9, time_ms=NOW_MS + 50_000)]
    settings = config(segment_ms=1000)
    assert offsets(active_segments(appended, settings, NOW_MS)) == [0]
    assert active_segments(appended, settings, NOW_MS + 51_001) == ()


def test_the_smallest_size_that_an_operator_can_set_is_one_mebibyte() -> None:
    appended = [segment(0, 9, size=MIB), segment(10, 19, size=1)]
    assert offsets(active_segments(appended, config(segment_bytes=MIB), NOW_MS)) == [10]
