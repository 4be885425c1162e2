"""Kafka's cleaner metrics."""

from dataclasses import replace

from keptlog.log.assessment import Assessment, assess
from keptlog.log.erasures.open_erasures import DeadlineCount, OpenErasures
from keptlog.log.told.metrics import LastPass, cleaner_metrics, metrics_by_log
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable
from tests.building import HOUR_MS, NOW_MS, config, log, segment

OLD_MS = NOW_MS - 24 * HOUR_MS
PASS = LastPass(ended_ms=NOW_MS - 70, duration_ms=4999, bytes_read=1000, bytes_written=299, map_keys=19, map_slots=100)
OTHER = LastPass(ended_ms=NOW_MS - 50, duration_ms=10, bytes_read=1000, bytes_written=0, map_keys=1, map_slots=100)


def judged(name: str, *, checkpoint: int | None = None, lag_ms: int = 2**62, failed: bool = False) -> Assessment:
    """A log of three closed segments of 100 bytes."""
    segments = [segment(base, base + 9, time_ms=OLD_MS) for base in (0, 10, 20)]
    settings = config(segment_ms=1, max_compaction_lag_ms=lag_ms)
    found = log(segments, settings, name=name, checkpoint=checkpoint)
    mark = Uncleanable("no space", NOW_MS, 1, NOW_MS + 1) if failed else None
    return assess(replace(found, uncleanable=mark), NOW_MS)


def test_without_logs_and_passes_all_is_zero_and_nothing_ever_ran() -> None:
    assert cleaner_metrics([], {}, {}, NOW_MS).to_dict() == {
        "max-dirty-percent": 0,
        "max-compaction-delay-secs": 0,
        "uncleanable-partitions-count": 0,
        "uncleanable-bytes": 0,
        "cleaner-recopy-percent": 0,
        "max-buffer-utilization-percent": 0,
        "max-clean-time-secs": 0,
        "time-since-last-run-ms": None,
        "erasure-delay-secs": 0,
        "erasures-open-count": 0,
        "erasures-overdue-count": 0,
    }


def test_the_dirtiest_and_the_latest_log_count() -> None:
    logs = [
        judged("a-0", checkpoint=20),
        judged("b-0", checkpoint=10, lag_ms=23 * HOUR_MS - 1),
        judged("c-0", lag_ms=1),
    ]
    metrics = cleaner_metrics(logs[:2], {}, {}, NOW_MS)
    assert (metrics.max_dirty_percent, metrics.max_compaction_delay_secs) == (66, 3600)
    assert cleaner_metrics(logs, {}, {}, NOW_MS).max_dirty_percent == 100


def test_a_delay_shows_also_when_nothing_can_be_cleaned() -> None:
    stuck = replace(judged("a-0", lag_ms=HOUR_MS).log, last_stable_offset=0)
    found = assess(stuck, NOW_MS)
    assert found.trigger is None
    assert cleaner_metrics([found], {}, {}, NOW_MS).max_compaction_delay_secs == 23 * 3600


def test_uncleanable_logs_are_counted_with_their_cleanable_bytes_and_are_not_the_dirtiest() -> None:
    metrics = cleaner_metrics([judged("a-0", checkpoint=20), judged("b-0", checkpoint=10, failed=True)], {}, {}, NOW_MS)
    assert (metrics.uncleanable_partitions_count, metrics.uncleanable_bytes) == (1, 200)
    assert metrics.max_dirty_percent == 33


def test_passes_add_up_to_what_was_copied_and_count_by_their_largest() -> None:
    passes = {TopicPartition("a", 0): PASS, TopicPartition("b", 0): OTHER, TopicPartition("gone", 0): OTHER}
    metrics = cleaner_metrics([judged("a-0"), judged("b-0")], passes, {}, NOW_MS)
    assert metrics.cleaner_recopy_percent == 14
    assert metrics.max_buffer_utilization_percent == 19
    assert metrics.max_clean_time_secs == 4
    assert metrics.time_since_last_run_ms == 50


def test_a_pass_that_a_clock_ahead_has_dated_was_just_now() -> None:
    ahead = replace(PASS, ended_ms=NOW_MS + HOUR_MS)
    assert cleaner_metrics([judged("a-0")], {TopicPartition("a", 0): ahead}, {}, NOW_MS).time_since_last_run_ms == 0


def test_passes_over_next_to_nothing_have_percentages_too() -> None:
    least = replace(PASS, duration_ms=4000, bytes_read=1, bytes_written=1, map_keys=1, map_slots=1)
    metrics = cleaner_metrics([judged("a-0")], {TopicPartition("a", 0): least}, {}, NOW_MS)
    assert (metrics.cleaner_recopy_percent, metrics.max_buffer_utilization_percent) == (100, 100)
    assert metrics.max_clean_time_secs == 4
    nothing = replace(PASS, bytes_read=0, bytes_written=0, map_keys=0, map_slots=0)
    metrics = cleaner_metrics([judged("a-0")], {TopicPartition("a", 0): nothing}, {}, NOW_MS)
    assert (metrics.cleaner_recopy_percent, metrics.max_buffer_utilization_percent) == (0, 0)


def test_each_log_has_the_same_metrics_by_itself() -> None:
    logs = [judged("a-0", checkpoint=20), judged("b-0")]
    by_log = metrics_by_log(logs, {TopicPartition("a", 0): PASS}, {}, NOW_MS)
    assert by_log[TopicPartition("a", 0)].cleaner_recopy_percent == 29
    assert by_log[TopicPartition("b", 0)] == cleaner_metrics(logs[1:], {}, {}, NOW_MS)


def test_a_log_that_is_not_compacted_has_no_part_in_them() -> None:
    kept = log([segment(0, 9, time_ms=OLD_MS)], config(cleanup_policy="delete", segment_ms=1))
    assert cleaner_metrics([assess(kept, NOW_MS)], {}, {}, NOW_MS) == cleaner_metrics([], {}, {}, NOW_MS)


def of_topic(*deadlines_ms: int) -> OpenErasures:
    counts = tuple(DeadlineCount(each, 1) for each in sorted(deadlines_ms))
    return OpenErasures(len(deadlines_ms), min(deadlines_ms), None, (), counts)


def test_erasures_are_counted_once_for_a_topic_and_the_latest_of_them_is_the_delay() -> None:
    logs = [judged("a-0"), judged("a-1"), judged("b-0")]
    erasures = {
        "a": of_topic(NOW_MS - 90_999, NOW_MS - 1, NOW_MS + 1),
        "b": of_topic(NOW_MS - 20_000),
        "elsewhere": of_topic(0),
    }

    metrics = cleaner_metrics(logs, {}, erasures, NOW_MS)
    of_log = metrics_by_log(logs, {}, erasures, NOW_MS)[TopicPartition("a", 1)]

    assert (metrics.erasure_delay_secs, metrics.erasures_open_count, metrics.erasures_overdue_count) == (90, 4, 3)
    assert (of_log.erasure_delay_secs, of_log.erasures_open_count, of_log.erasures_overdue_count) == (90, 3, 2)
