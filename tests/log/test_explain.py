"""Why a log is cleaned or not, in words that name the rule and its values."""

from dataclasses import replace

from keptlog.log.assessment import assess
from keptlog.log.broker import BrokerConfig
from keptlog.log.plan import plan_step
from keptlog.log.record import LARGEST_TIMESTAMP_MS
from keptlog.log.segment import Log
from keptlog.log.told.explain import explain
from keptlog.log.uncleanable import Uncleanable
from keptlog.log.words.iso_time import iso_time, next_time
from tests.building import HOUR_MS, NOW_MS, config, log, segment

OLD_MS = NOW_MS - 24 * HOUR_MS


def told(judged: Log) -> tuple[str, str]:
    explanation = explain(assess(judged, NOW_MS))
    return explanation.verdict, explanation.due


def test_each_reason_to_clean_is_told_with_its_numbers() -> None:
    dirty = log([segment(0, 9, time_ms=OLD_MS)], config(segment_ms=1))
    assert told(dirty) == ("to be cleaned now: dirty ratio 1.00 is above min.cleanable.dirty.ratio=0.5", "now")
    late = log([segment(0, 9, time_ms=NOW_MS - 1500)], config(max_compaction_lag_ms=1000))
    assert told(late) == ("to be cleaned now: a record is 500 ms past max.compaction.lag.ms", "now")
    expired = log([segment(0, 9, horizon_ms=NOW_MS - 7)], checkpoint=10)
    assert told(expired) == ("tombstones to be removed now: the earliest delete horizon passed 7 ms ago", "now")


def test_an_expiry_whose_turn_it_is_goes_before_the_clean_and_both_are_told() -> None:
    settings = config(segment_ms=1, compaction_strategy="timestamp", max_compaction_lag_ms=HOUR_MS)
    segments = [segment(0, 9, horizon_ms=NOW_MS - 7), segment(10, 19, size=300, time_ms=OLD_MS)]
    judged = log(segments, settings, checkpoint=10)
    late = "a record is 23 h past max.compaction.lag.ms"
    expired = "tombstones to be removed now: the earliest delete horizon passed 7 ms ago"
    verdicts = {False: f"{expired}; the next pass is a clean: {late}", True: f"to be cleaned now: {late}"}
    broker = BrokerConfig(keptlog_cleaner_commit_max_bytes=200)
    for last_was_expiry, verdict in verdicts.items():
        assessment = assess(replace(judged, last_was_expiry=last_was_expiry), NOW_MS)
        explanation = explain(assessment, broker)
        assert (explanation.verdict, explanation.due) == (verdict, "now")
        step = plan_step(assessment, broker)
        assert step is not None
        assert (step.kind == "expire") is not last_was_expiry, "the plan of the same moment"


def test_a_log_that_is_left_alone_says_when_it_is_looked_at_again() -> None:
    clean = log([segment(0, 9)], checkpoint=10)
    assert told(clean) == (
        "left alone: clean: nothing was appended since its last clean",
        "when new records make it so",
    )
    active = log([segment(0, 9)], config(segment_ms=999))
    assert told(active) == (
        "left alone: all dirty records are in the active segment",
        "by 2023-11-14T22:13:21.000Z (in 1 s) at the earliest, or when new records make it so",
    )


def test_the_sections_are_told_with_their_bounds() -> None:
    segments = [segment(0, 9, time_ms=OLD_MS), segment(10, 19, time_ms=OLD_MS), segment(20, 29)]
    sections = {
        each.name: each
        for each in explain(assess(log(segments, config(segment_ms=HOUR_MS), checkpoint=10), NOW_MS)).sections
    }
    assert list(sections) == ["clean", "cleanable", "uncleanable", "active"]
    cleanable, uncleanable = sections["cleanable"], sections["uncleanable"]
    assert (cleanable.base_offset, cleanable.end_offset, cleanable.records, cleanable.bytes) == (10, 20, 10, 100)
    assert (uncleanable.base_offset, uncleanable.end_offset, uncleanable.segments) == (None, None, 0)


def test_a_reset_checkpoint_is_told() -> None:
    rules = explain(assess(log([segment(0, 9)], checkpoint=99), NOW_MS)).rules
    assert any("the checkpoint 99 lies outside of the log [0, 10]" in rule for rule in rules)


def test_a_moment_that_never_comes_is_told_as_never() -> None:
    assert next_time(253_402_300_799_998) == "at 9999-12-31T23:59:59.998Z"
    assert next_time(253_402_300_799_999) == "never", "so a tombstone is stamped that never goes"
    kept = log([segment(0, 9, horizon_ms=LARGEST_TIMESTAMP_MS)], config(delete_retention_ms=2**63 - 1), checkpoint=10)
    assert explain(assess(kept, NOW_MS)).due == "when new records make it so"
    assert any(
        rule.endswith("the earliest delete horizon passes never") for rule in explain(assess(kept, NOW_MS)).rules
    )
    given_up = replace(log([segment(0, 9)]), uncleanable=Uncleanable("no space", NOW_MS, 1, 2**63 - 1))
    assert "next try never" in told(given_up)[0]
    assert told(given_up)[1] == "never by itself: a clean of it failed"


def test_a_time_beyond_the_calendar_is_told_as_a_number() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(2**62) == "after the year 9999"


def test_versions_retention_and_old_segments_are_explained() -> None:
    settings = config(
        cleanup_policy="compact,delete", compaction_strategy="timestamp", retention_ms=1000, retention_bytes=10**6
    )
    rules = explain(assess(log([segment(0, 9, time_ms=NOW_MS - 2000)], settings), NOW_MS)).rules
    assert "compaction.strategy=timestamp: the latest record of a key has the highest version" in rules
    assert "retention.ms=1000 (1 s), retention.bytes=1000000 (976.6 KiB)" in rules
    old = "0-9.parquet is to be removed, retention_ms: its latest record is 2 s old, retention.ms=1000 (1 s)"
    assert old in rules


def test_a_log_that_no_clean_comes_to_is_never_due_and_is_told_when_retention_comes() -> None:
    """With new records, it said: nothing ever makes such a log due."""
    kept = log([segment(0, 9, time_ms=OLD_MS)], config(cleanup_policy="delete", retention_ms=25 * HOUR_MS))
    never = "never: cleanup.policy is delete"
    assert told(kept) == (
        "left alone: cleanup.policy is delete: it is not compacted",
        f"{never}; retention removes its oldest segment at 2023-11-14T23:13:20.001Z (in 1 h)",
    )
    for retention_ms, goes in ((HOUR_MS, "; retention removes 1 segment now"), (-1, "")):
        settings = config(cleanup_policy="delete", retention_ms=retention_ms)
        assert told(replace(kept, config=settings))[1] == f"{never}{goes}"
    empty = replace(kept, config=config(cleanup_policy=""))
    assert told(empty)[1] == "never: cleanup.policy is empty"


def test_of_a_log_that_no_clean_comes_to_only_the_rules_are_told_that_hold_for_it() -> None:
    kept = log([segment(0, 9)], config(cleanup_policy="delete", compaction_strategy="timestamp"))
    rules = explain(assess(kept, NOW_MS)).rules
    assert [rule.partition("=")[0] for rule in rules] == ["cleanup.policy", "segment.ms", "retention.ms"]


def test_a_mark_on_a_log_that_no_clean_comes_to_promises_no_next_try() -> None:
    marked = replace(
        log([segment(0, 9)], config(cleanup_policy="delete")), uncleanable=Uncleanable("no space", NOW_MS, 1, NOW_MS)
    )
    assert any("next try never: cleanup.policy is delete:" in rule for rule in explain(assess(marked, NOW_MS)).rules)


def test_a_log_whose_clean_failed_says_so_and_when_it_is_tried_again() -> None:
    mark = Uncleanable("no space", since_ms=NOW_MS - 1000, attempts=3, retry_at_ms=NOW_MS + 5000)
    dirty = log([segment(0, 9, time_ms=NOW_MS - 8 * 24 * HOUR_MS)])
    found = explain(assess(replace(dirty, uncleanable=mark), NOW_MS))
    assert found.verdict.startswith("left alone: uncleanable")
    assert found.verdict.endswith("3 cleans failed, the last with: no space")
    assert found.due == (
        "at 2023-11-14T22:13:25.000Z (in 5 s), when it is tried again; new records change nothing of that"
    )
    assert found.rules[-1] == (
        "uncleanable since 2023-11-14T22:13:19.000Z, next try at 2023-11-14T22:13:25.000Z: "
        "3 cleans failed, the last with: no space"
    )


def test_a_log_that_failed_and_is_not_due_says_from_when_new_records_make_it_so() -> None:
    """As after a clean by name, or after a longer lag was set: it said that new records do, which is left alone too."""
    mark = Uncleanable("no space", since_ms=NOW_MS, attempts=9, retry_at_ms=NOW_MS + HOUR_MS, wait_ms=HOUR_MS)
    not_before = "when new records make it so, not before 2023-11-14T23:13:20.000Z (in 1 h): a clean of it failed"

    assert explain(assess(replace(log([]), uncleanable=mark), NOW_MS)).due == not_before
    young = log([segment(0, 9, time_ms=NOW_MS)], config(max_compaction_lag_ms=2 * HOUR_MS, min_cleanable_dirty_ratio=1))
    assert explain(assess(replace(young, uncleanable=mark), NOW_MS)).due.endswith(
        f"(in 2 h) at the earliest, or {not_before}"
    )
