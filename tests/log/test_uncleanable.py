"""A log whose clean failed is tried again, after longer and longer."""

import pickle
from dataclasses import replace

import pytest

from keptlog.errors import Action, InvalidConfig, InvariantViolated, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.assessment import Trigger, assess
from keptlog.log.plan import make_plan, why_left_alone
from keptlog.log.told.explain import explain
from keptlog.log.uncleanable import Backoff, Uncleanable, after_failure, what_helps
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
    assert first == Uncleanable("no space", 1000, 1, 16_000, wait_ms=15_000)
    second = after_failure(first, "corrupt", 20_000, BACKOFF, Action.FIX_DATA)
    assert second == Uncleanable("corrupt", 1000, 2, 50_000, "fix_data", 30_000)
    assert (first.failed_ms, second.failed_ms) == (1000, 20_000)


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, 20 * 365 * 24 * HOUR_MS])
def test_a_log_that_failed_by_a_clock_far_ahead_may_be_tried_and_its_next_mark_is_of_now(ahead_ms: int) -> None:
    """It was left alone until all other clocks had come as far."""
    before = after_failure(None, "no space", NOW_MS, BACKOFF)
    mark = after_failure(before, "no space", NOW_MS + ahead_ms, BACKOFF)

    seen = assess(replace(DIRTY, uncleanable=mark), NOW_MS)

    assert seen.trigger is Trigger.DIRTY_RATIO
    assert "next try as soon as it is due" in mark.told(NOW_MS)
    assert after_failure(mark, "no space", NOW_MS, BACKOFF).is_waiting(NOW_MS + BACKOFF.after(3) - 1)
    first = after_failure(None, "no space", NOW_MS + ahead_ms, BACKOFF)
    assert after_failure(first, "no space", NOW_MS, BACKOFF).since_ms == NOW_MS


def test_an_older_mark_whose_first_failure_is_still_to_come_keeps_nobody_waiting() -> None:
    older = Uncleanable("no space", NOW_MS + HOUR_MS, 1, NOW_MS + HOUR_MS + 15_000)
    assert assess(replace(DIRTY, uncleanable=older), NOW_MS).trigger is Trigger.DIRTY_RATIO


def test_a_clock_that_is_ahead_by_less_than_the_wait_still_keeps_the_log_waiting() -> None:
    mark = after_failure(None, "no space", NOW_MS + BACKOFF.after(1), BACKOFF)
    assert assess(replace(DIRTY, uncleanable=mark), NOW_MS).trigger is None
    assert assess(replace(DIRTY, uncleanable=mark), NOW_MS - 1).good_until_ms == NOW_MS


def test_a_log_that_failed_is_left_alone_until_its_time() -> None:
    waiting = assess(FAILED, NOW_MS)
    assert waiting.trigger is None
    assert waiting.due_ms == NOW_MS + 1
    reason = make_plan([waiting], NOW_MS).left_alone["t-0"]
    assert reason.startswith("uncleanable")
    assert reason.endswith("2 cleans failed, the last with: segment 0-9.parquet can't be read")
    assert assess(FAILED, NOW_MS + 1).trigger is Trigger.DIRTY_RATIO


def test_a_log_that_is_due_again_is_not_said_to_be_below_its_ratio() -> None:
    """Status told of a log that had failed, and whose time had come, that its ratio, 1.00, was not above 0.5."""
    due = assess(FAILED, NOW_MS + 1)
    assert why_left_alone(due) == "due because of dirty_ratio, but no segment of it would change"
    assert not [rule for rule in explain(due).rules if "is not above" in rule]


def test_a_log_whose_time_to_be_tried_has_come_is_looked_at_again_like_any_other() -> None:
    idle = replace(DIRTY, config=config(segment_ms=1, min_cleanable_dirty_ratio=1, max_compaction_lag_ms=48 * HOUR_MS))
    failed = assess(replace(idle, uncleanable=MARK), NOW_MS + 2)
    assert failed.trigger is None
    assert failed.due_ms == NOW_MS + 24 * HOUR_MS + 1


def test_a_log_that_failed_is_cleaned_before_its_time_when_someone_asks_for_it() -> None:
    assert [step.trigger for step in make_plan([assess(FAILED, NOW_MS)], NOW_MS, requested=True).steps] == ["requested"]


def test_a_mark_counts_its_failures_in_words_and_says_when_the_next_clean_comes() -> None:
    once, reason = replace(MARK, attempts=1), "segment 0-9.parquet can't be read"
    since, then = "uncleanable since 2023-11-14T22:13:19.995Z", "2023-11-14T22:13:20.001Z"
    assert once.told(NOW_MS) == f"{since}, next try at {then}: 1 clean failed with: {reason}"
    assert MARK.told(NOW_MS) == f"{since}, next try at {then}: 2 cleans failed, the last with: {reason}"
    assert once.told(NOW_MS + 1) == f"{since}, next try as soon as it is due: 1 clean failed with: {reason}"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Action.FIX_DATA, "no clean succeeds before its data are repaired"),
        (Action.FIX_CONFIG, "no clean succeeds before that setting is changed"),
        (Action.UPGRADE, "no clean succeeds before keptlog is upgraded"),
        (Action.FIX_STORAGE, "no clean succeeds before the storage lets it"),
        (Action.REPORT_BUG, "no clean succeeds before that bug is mended: please report it"),
    ],
)
def test_no_try_is_promised_of_what_can_not_succeed(action: Action, said: str) -> None:
    told = replace(MARK, action=action.value).told(NOW_MS)
    assert told.endswith(f"2 cleans failed, the last with: {MARK.reason}; {said}")
    assert "try" not in told
    assert "again" not in told


def test_a_mark_of_an_action_that_only_a_newer_keptlog_knows_promises_nothing() -> None:
    assert "try" not in replace(MARK, action="call_for_help").told(NOW_MS)


def test_what_helps_is_told_by_the_kind_of_error_and_what_nobody_foresaw_may_pass() -> None:
    kinds = [LogCorrupt, InvalidConfig, InvariantViolated, StorageUnavailable, KeptlogError]
    assert [what_helps(kind("x")) for kind in kinds] == ["fix_data", "fix_config", "report_bug", "retry", "retry"]


def test_what_a_storage_refuses_for_good_is_not_told_to_be_tried_again() -> None:
    refused = pickle.loads(pickle.dumps(StorageUnavailable("access is denied").for_good()))  # noqa: S301
    assert what_helps(refused) == "fix_storage"
    assert refused.is_refused
