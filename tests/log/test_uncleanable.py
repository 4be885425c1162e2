"""A log whose clean failed is tried again, after longer and longer."""

from dataclasses import replace

from keptlog.log.assessment import Trigger, assess
from keptlog.log.plan import make_plan
from keptlog.log.uncleanable import Backoff, Uncleanable, after_failure
from tests.building import HOUR_MS, NOW_MS, config, log, segment

BACKOFF = Backoff(first_ms=15_000, longest_ms=100_000)
MARK = Uncleanable("segment 0-9.parquet can't be read", since_ms=NOW_MS - 5, attempts=2, retry_at_ms=NOW_MS + 1)
DIRTY = log([segment(0, 9, time_ms=NOW_MS - 24 * HOUR_MS)], config(segment_ms=1))
FAILED = replace(DIRTY, uncleanable=MARK)


def test_the_wait_doubles_up_to_the_longest() -> None:
    assert [BACKOFF.after(attempts) for attempts in (1, 2, 3, 4, 5, 1000)] == [15_000, 30_000, 60_000] + 3 * [100_000]


def test_the_first_wait_may_be_longer_than_the_longest() -> None:
    assert Backoff(first_ms=50, longest_ms=10).after(1) == 50
    assert Backoff(first_ms=0, longest_ms=0).after(7) == 0


def test_a_mark_counts_the_failures_and_keeps_the_time_of_the_first() -> None:
    first = after_failure(None, "no space", 1000, BACKOFF)
    assert first == Uncleanable("no space", 1000, 1, 16_000)
    assert after_failure(first, "corrupt", 20_000, BACKOFF) == Uncleanable("corrupt", 1000, 2, 50_000)


def test_a_log_that_failed_is_left_alone_until_its_time() -> None:
    waiting = assess(FAILED, NOW_MS)
    assert waiting.trigger is None
    assert waiting.due_ms == NOW_MS + 1
    reason = make_plan([waiting], NOW_MS).left_alone["t-0"]
    assert reason.startswith("uncleanable")
    assert reason.endswith("2 cleans failed, the last with: segment 0-9.parquet can't be read")
    assert assess(FAILED, NOW_MS + 1).trigger is Trigger.DIRTY_RATIO


def test_a_log_whose_time_to_be_tried_has_come_is_looked_at_again_like_any_other() -> None:
    idle = replace(DIRTY, config=config(segment_ms=1, min_cleanable_dirty_ratio=1, max_compaction_lag_ms=48 * HOUR_MS))
    failed = assess(replace(idle, uncleanable=MARK), NOW_MS + 2)
    assert failed.trigger is None
    assert failed.due_ms == NOW_MS + 24 * HOUR_MS + 1


def test_a_log_that_failed_is_cleaned_before_its_time_when_someone_asks_for_it() -> None:
    assert [step.trigger for step in make_plan([assess(FAILED, NOW_MS)], NOW_MS, requested=True).steps] == ["requested"]
