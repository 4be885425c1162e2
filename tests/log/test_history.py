"""What commits to a topic add up to, and what a commit says of very many logs."""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.assessment import assess
from keptlog.log.plan import plan_step
from keptlog.log.result import Counts, RewriteResult
from keptlog.log.told.history import OTHERS, HistoryEntry, LogCost, PassCost, cost_by_day, cost_of
from keptlog.log.topic_partition import TopicPartition
from tests.building import HOUR_MS, NOW_MS, config, log, segment

DAY_MS = 24 * HOUR_MS
OLD = [segment(base, base + 9, time_ms=NOW_MS - DAY_MS) for base in (0, 10)]


def outcome(partition: int) -> RewriteResult:
    """Both segments of a log, of which ten records are superseded."""
    step = plan_step(assess(log(OLD, config(segment_ms=HOUR_MS)), NOW_MS))
    assert step
    step = replace(step, topic_partition=TopicPartition("users", partition))
    added = replace(segment(0, 19, name="-new"), record_count=10)
    return RewriteResult(step, step.segments, (added,), Counts(kept=10, superseded=10), 10, 10)


def test_a_commit_says_of_each_log_what_went_and_why() -> None:
    cost = cost_of([outcome(1), outcome(0)], 1500)
    assert [each.partition for each in cost.logs] == [0, 1]
    [first, _] = cost.logs
    assert (first.trigger, first.records_read, first.superseded, first.expired) == ("dirty_ratio", 20, 10, 0)
    assert (first.bytes_read, first.map_keys) == (sum(each.size_bytes for each in OLD), 10)
    assert (cost.log_count, cost.triggers, cost.bytes_read) == (2, ["dirty_ratio"], 2 * first.bytes_read)


def test_of_very_many_logs_the_others_are_told_together() -> None:
    cost = cost_of([outcome(number) for number in range(120)], None)
    assert len(cost.logs) == 51
    others = cost.logs[-1]
    assert (others.partition, others.logs, others.superseded) == (OTHERS, 70, 700)
    assert cost.log_count == 120
    assert cost.bytes_read == 120 * sum(each.size_bytes for each in OLD)


def test_a_day_adds_up_what_its_commits_did() -> None:
    clean = HistoryEntry(
        2,
        7,
        "clean",
        records_added=6,
        records_removed=10,
        bytes_added=60,
        bytes_removed=100,
        files_added=1,
        files_removed=1,
        cost=PassCost((LogCost(0, "dirty_ratio", 10, 100, 60, 4, 0, 0, 6),), 1500),
    )
    entries = [
        HistoryEntry(3, DAY_MS + 1, "append", records_added=4, bytes_added=40, files_added=1),
        HistoryEntry(1, 5, "append", records_added=10, bytes_added=100, files_added=1),
        clean,
    ]
    first, second = cost_by_day(entries)
    assert (first.day, first.commits, first.cleans) == ("1970-01-01", 2, 1)
    assert (first.bytes_read, first.bytes_written, first.duration_ms) == (100, 160, 1500)
    assert (first.records_arrived, first.records_removed) == (10, 4)
    assert (second.day, second.commits, second.records_arrived) == ("1970-01-02", 1, 4)
