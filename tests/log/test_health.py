"""Which log is worst, and what the clock alone makes of a judgement that is an hour old."""

from dataclasses import replace

from keptlog.log.assessment import Assessment, assess
from keptlog.log.told.health import late_ms, totals_of, worst_of
from keptlog.log.told.standing import standing_of
from keptlog.log.uncleanable import Uncleanable
from keptlog.log.words.units import LONG_MAX
from tests.building import HOUR_MS, NOW_MS, config, log, segment

OLD_MS = NOW_MS - 24 * HOUR_MS


def judged(age_ms: int, lag_ms: int = LONG_MAX, ratio: float = 1.0) -> Assessment:
    settings = config(segment_ms=1, max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio=ratio)
    return assess(log([segment(0, 9, time_ms=NOW_MS - age_ms)], settings), NOW_MS)


def test_a_log_is_late_from_its_deadline_on_however_old_its_judgement_is() -> None:
    in_time = judged(HOUR_MS, lag_ms=2 * HOUR_MS)
    assert in_time.deadline_ms == NOW_MS + HOUR_MS
    assert late_ms(in_time, NOW_MS) == 0
    assert late_ms(in_time, NOW_MS + 3 * HOUR_MS) == 2 * HOUR_MS
    totals = totals_of([in_time], NOW_MS + 3 * HOUR_MS)
    assert (totals.late, totals.largest_late_ms, totals.due) == (1, 2 * HOUR_MS, 0)


def test_a_log_without_a_maximum_lag_or_without_dirty_records_has_no_deadline() -> None:
    assert judged(HOUR_MS).deadline_ms is None
    clean = assess(log([segment(0, 9)], config(max_compaction_lag_ms=1), checkpoint=10), NOW_MS)
    assert clean.deadline_ms is None
    assert late_ms(clean, NOW_MS) == 0


def test_the_late_come_before_the_uncleanable_and_those_before_the_due_and_the_nearest_deadline() -> None:
    late, later = judged(4 * HOUR_MS, 3 * HOUR_MS), judged(4 * HOUR_MS, HOUR_MS)
    failed = assess(replace(judged(HOUR_MS).log, uncleanable=Uncleanable("torn", OLD_MS, 1, NOW_MS + HOUR_MS)), NOW_MS)
    due, near, far = judged(HOUR_MS, ratio=0.5), judged(HOUR_MS, 2 * HOUR_MS), judged(HOUR_MS, 9 * HOUR_MS)
    worst = [later, late, failed, due, near, far]
    assert worst_of(worst[::-1], NOW_MS, 9) == worst
    assert worst_of(worst[::-1], NOW_MS, 2) == [later, late]


def test_a_log_that_no_clean_comes_to_is_worse_than_none_that_one_comes_to() -> None:
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19, time_ms=OLD_MS)]
    waiting = assess(log(segments, config(segment_ms=1), checkpoint=10), NOW_MS)
    kept = assess(replace(judged(HOUR_MS).log, config=config(cleanup_policy="delete", segment_ms=1)), NOW_MS)
    assert kept.sections.cleanable_ratio > waiting.cleanable_ratio
    assert worst_of([kept, waiting], NOW_MS, 1) == [waiting]
    assert standing_of(kept, None).rank(NOW_MS) > standing_of(waiting, None).rank(NOW_MS)


def test_totals_are_over_all_sections() -> None:
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19, time_ms=OLD_MS), segment(20, 29)]
    each = assess(log(segments, config(segment_ms=HOUR_MS), checkpoint=10), NOW_MS)
    totals = totals_of([each, each], NOW_MS)
    assert (totals.logs, totals.records, totals.dirty_records) == (2, 60, 40)
    assert (totals.bytes, totals.cleanable_bytes, totals.waiting_bytes) == (600, 200, 200)
