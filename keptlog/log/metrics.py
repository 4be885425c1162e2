"""Kafka's cleaner metrics, under Kafka's names, over all logs and for each one; and ours of erasures beside them.

Kafka keeps them in the memory of its threads, and updates the delay only when a log was selected: it is stale exactly
when nothing can be cleaned. Here they are computed from the logs as they were judged, at any time, and from the numbers
of each log's last pass; so they are true also when nothing was selected, or nothing runs.

Erasures are asked for topic by topic. The metrics of one log have those of its topic, and over many logs each topic
counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keptlog.log.assessment import Assessment
from keptlog.log.open_erasures import OpenErasures
from keptlog.log.segment import total_bytes
from keptlog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class LastPass:
    """What the last pass over one log cost."""

    ended_ms: int
    duration_ms: int
    bytes_read: int
    """Size of the segments it judged."""
    bytes_written: int
    map_keys: int
    map_slots: int
    """How many keys there was memory for."""


@dataclass(frozen=True, slots=True)
class CleanerMetrics:
    """The metrics of one log, or of several together. Fields carry Kafka's names; those of erasures are named alike."""

    max_dirty_percent: int
    max_compaction_delay_secs: int
    uncleanable_partitions_count: int
    uncleanable_bytes: int
    cleaner_recopy_percent: int
    max_buffer_utilization_percent: int
    max_clean_time_secs: int
    time_since_last_run_ms: int | None
    """Null if nothing ever ran."""
    erasure_delay_secs: int
    """By how much the latest open erasure is later than its deadline."""
    erasures_open_count: int
    erasures_overdue_count: int

    def to_dict(self) -> dict[str, int | None]:
        """Kafka's names, with their hyphens."""
        return {name.replace("_", "-"): getattr(self, name) for name in self.__slots__}


def cleaner_metrics(
    assessments: Iterable[Assessment],
    passes: Mapping[TopicPartition, LastPass],
    erasures: Mapping[str, OpenErasures],
    now_ms: int,
) -> CleanerMetrics:
    """The metrics over these logs; ``passes`` has the last pass of those that were ever cleaned.

    ``erasures`` has what is open, by topic.
    ``now_ms`` may be later than a log was judged: what the clock alone changes is to be compared with it.
    """
    assessments = list(assessments)
    topics = {each.log.topic_partition.topic for each in assessments}
    still_open = [erasures[topic] for topic in topics if topic in erasures]
    judged = [each for each in assessments if each.log.config.is_compacted]
    last = [passes[each.log.topic_partition] for each in judged if each.log.topic_partition in passes]
    uncleanable = [each for each in judged if each.log.uncleanable]
    cleanable = [each for each in judged if not each.log.uncleanable]
    read_bytes = sum(each.bytes_read for each in last)
    written_bytes = sum(each.bytes_written for each in last)
    return CleanerMetrics(
        max_dirty_percent=int(100 * max((each.cleanable_ratio for each in cleanable), default=0)),
        max_compaction_delay_secs=max((each.max_compaction_delay_ms for each in judged), default=0) // 1000,
        uncleanable_partitions_count=len(uncleanable),
        uncleanable_bytes=sum(total_bytes(each.sections.cleanable) for each in uncleanable),
        cleaner_recopy_percent=100 * written_bytes // max(read_bytes, 1),
        max_buffer_utilization_percent=max((100 * each.map_keys // max(each.map_slots, 1) for each in last), default=0),
        max_clean_time_secs=max((each.duration_ms for each in last), default=0) // 1000,
        time_since_last_run_ms=now_ms - max(each.ended_ms for each in last) if last else None,
        erasure_delay_secs=max((each.delay_ms(now_ms) for each in still_open), default=0) // 1000,
        erasures_open_count=sum(each.count for each in still_open),
        erasures_overdue_count=sum(each.overdue_count(now_ms) for each in still_open),
    )


def metrics_by_log(
    assessments: Iterable[Assessment],
    passes: Mapping[TopicPartition, LastPass],
    erasures: Mapping[str, OpenErasures],
    now_ms: int,
) -> dict[TopicPartition, CleanerMetrics]:
    """The same for each log by itself."""
    return {each.log.topic_partition: cleaner_metrics([each], passes, erasures, now_ms) for each in assessments}
