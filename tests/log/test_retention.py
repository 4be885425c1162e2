"""Which old segments go, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.plan import describe_step, make_retention_plan
from keptlog.log.retention import RetentionRule, log_start_after_deletion, retention_of
from keptlog.log.segment import Log, Segment
from tests.building import HOUR_MS, NOW_MS, config, log, segment


def three(*ages_ms: int) -> list[Segment]:
    """Three segments of 100 bytes and ten offsets, so old."""
    ages_ms = ages_ms or (0, 0, 0)
    return [segment(10 * n, 10 * n + 9, time_ms=NOW_MS - age_ms) for n, age_ms in enumerate(ages_ms)]


def kept(segments: list[Segment], *, policy: str = "delete", start: int = 0, **settings: object) -> Log:
    named = {"retention.ms": -1} | {name.replace("_", "."): value for name, value in settings.items()}
    return log(segments, config(cleanup_policy=policy, **named), start=start)


def outcome(found: Log, high_watermark: int | None = None) -> tuple[list[str], int]:
    """The rule for each segment that goes, and the new log start offset."""
    retention = retention_of(found, NOW_MS, high_watermark=high_watermark)
    return [str(each.rule) for each in retention.old], retention.log_start_offset


TIME, SIZE, START = (
    str(rule) for rule in (RetentionRule.RETENTION_MS, RetentionRule.RETENTION_BYTES, "log_start_offset")
)


def test_a_segment_goes_when_its_latest_record_is_older_than_allowed() -> None:
    assert outcome(kept(three(101, 100, 99), retention_ms=100)) == ([TIME], 10)
    assert outcome(kept(three(100, 100, 99), retention_ms=100)) == ([], 0)
    assert outcome(kept(three(999, 999, 999), retention_ms=-1)) == ([], 0)
    assert outcome(kept(three(1, 0, 0), retention_ms=0)) == ([TIME], 10)


def test_a_young_segment_keeps_the_older_ones_behind_it() -> None:
    assert outcome(kept(three(-5, 999, 999), retention_ms=100)) == ([], 0)


def test_a_segment_without_timestamps_is_never_too_old() -> None:
    assert outcome(kept(three(NOW_MS + 1, 999, 999), retention_ms=100)) == ([], 0)
    assert outcome(kept(three(NOW_MS, 999, 0), retention_ms=100)) == ([TIME, TIME], 20)


def test_segments_go_while_the_log_without_them_is_still_as_large_as_allowed() -> None:
    assert outcome(kept(three(), retention_bytes=200)) == ([SIZE], 10)
    assert outcome(kept(three(), retention_bytes=201)) == ([], 0)
    assert outcome(kept(three(), retention_bytes=300)) == ([], 0)
    assert outcome(kept(three(), retention_bytes=0)) == ([SIZE] * 3, 30)


def test_a_segment_goes_when_it_lies_below_the_log_start() -> None:
    assert outcome(kept(three(), start=9)) == ([], 9)
    assert outcome(kept(three(), start=10)) == ([START], 10)
    assert outcome(kept(three(), start=15)) == ([START], 15)
    assert outcome(kept(three(), start=30)) == ([START] * 3, 30)


def test_the_rules_run_in_kafkas_order_each_on_what_the_one_before_left() -> None:
    """The first segment's future timestamp would hold back the second; but it lies below the log start."""
    assert outcome(kept(three(-5, 999, 0), start=10, retention_ms=100)) == ([START, TIME], 20)
    assert outcome(kept(three(0, 999, 0), retention_bytes=201, retention_ms=100)) == ([], 0)
    assert outcome(kept(three(0, 999, 0), retention_bytes=200, retention_ms=100)) == ([SIZE, TIME], 20)


def test_the_log_start_moves_behind_what_goes_and_not_across_what_a_clean_removed_behind_it() -> None:
    """Kafka's segment keeps its base offset. Here it begins at its first record, and a reader at 10 misses nothing."""
    segments = [segment(0, 9, time_ms=NOW_MS - 999), segment(15, 19)]
    assert outcome(kept(segments, retention_ms=100)) == ([TIME], 10)
    assert outcome(kept(segments, start=12, retention_ms=100)) == ([START], 12)


def test_when_all_goes_the_log_begins_where_it_ends() -> None:
    assert outcome(kept(three(999, 999, 999), retention_ms=100)) == ([TIME] * 3, 30)
    assert outcome(log([], config(cleanup_policy="delete"), start=7)) == ([], 7)


def test_the_last_segment_goes_only_with_all_that_the_log_ever_held() -> None:
    cleaned_away = replace(kept(three(999, 999, 999), retention_ms=100), log_end_offset=40)
    assert outcome(cleaned_away) == ([TIME] * 3, 40)
    assert outcome(cleaned_away, high_watermark=39) == ([TIME] * 2, 20)


def test_nothing_goes_that_reaches_beyond_the_high_watermark() -> None:
    assert outcome(kept(three(999, 999, 999), retention_ms=100), high_watermark=19) == ([TIME], 10)
    assert outcome(kept(three(999, 999, 999), retention_ms=100), high_watermark=20) == ([TIME, TIME], 20)


@pytest.mark.parametrize("policy", ["compact", ""])
def test_without_delete_in_the_policy_only_the_log_start_counts(policy: str) -> None:
    old = kept(three(999, 999, 999), policy=policy, retention_ms=1, retention_bytes=1, start=10)
    assert outcome(old) == ([START], 10)


def test_a_compacted_topic_that_also_deletes_has_both() -> None:
    assert outcome(kept(three(999, 0, 0), policy="compact,delete", retention_ms=100)) == ([TIME], 10)


def test_each_segment_says_why_it_goes() -> None:
    old = retention_of(kept(three(0, 999, 0), start=10, retention_ms=100), NOW_MS).old
    assert [each.why for each in old] == [
        "it ends at offset 9, below the log start offset 10",
        "its latest record is 999 ms old, retention.ms=100",
    ]
    (by_size,) = retention_of(kept(three(), retention_bytes=200), NOW_MS).old
    assert by_size.why == "the log has 200 B without it, retention.bytes=200"


@pytest.mark.parametrize(("before", "expected"), [(0, 5), (4, 5), (5, 5), (6, 6), (30, 30), (-1, 30)])
def test_records_are_deleted_before_any_offset_up_to_the_log_end(before: int, expected: int) -> None:
    assert log_start_after_deletion(kept(three(), start=5), before) == expected


@pytest.mark.parametrize("before", [31, -2])
def test_an_offset_outside_of_the_log_is_out_of_range(before: int) -> None:
    with pytest.raises(InvalidConfig, match=f"t-0: offset {before} is out of range: .* up to 30, or -1 for all"):
        log_start_after_deletion(kept(three(), start=5), before)


def test_a_plan_removes_the_old_segments_of_every_log_and_leaves_the_others_alone() -> None:
    old = replace(kept(three(999, 999, 0), retention_ms=100), checkpoint=20)
    young = log(three(), config(cleanup_policy="delete", retention_ms=HOUR_MS), name="t-1")
    plan = make_retention_plan([young, old], NOW_MS)
    (step,) = plan.steps
    assert step.segments == old.segments[:2]
    assert (step.checkpoint, step.log_start_offset, step.new_log_start_offset) == (20, 0, 20)
    assert plan.left_alone == {"t-1": "no segment is old"}
    assert describe_step(step) == "t-0: remove 2 old segments (200 B), log start offset 0 -> 20"
