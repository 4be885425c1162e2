"""Kafka's cleaner metrics, under Kafka's names, over all logs and for each one; and ours of erasures beside them.

Kafka keeps them in the memory of its threads, and updates the delay only when a log was selected: it is stale exactly
when nothing can be cleaned. Here they are computed from the logs as they were judged, at any time, and from the numbers
of each log's last pass; so they are true also when nothing was selected, or nothing runs.

Erasures are asked for topic by topic. The metrics of one log have those of its topic, and over many logs each topic
counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keptlog.log.assessment import Assessment
from keptlog.log.erasures.open_erasures import OpenErasures
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
    run_id: str | None = None
    """Of whom it was; null of one by an older keptlog."""
    is_expiry: bool = False
    """Whether it only expired tombstones; an older keptlog did not say."""


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


class Tally(NamedTuple):
    """What the metrics of some logs are made of. It holds for as long as their judgements do, and tallies add up."""

    largest_ratio: float = 0.0
    """Of those that are not uncleanable."""
    late_from_ms: int | None = None
    """Since when the latest is late; null if none is."""
    uncleanable: int = 0
    uncleanable_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    largest_utilization_percent: int = 0
    longest_ms: int = 0
    last_ended_ms: int | None = None


def tally_of(assessment: Assessment, last: LastPass | None) -> Tally:
    """Of one log, whose last pass cost ``last``."""
    if not assessment.log.config.is_compacted:
        return Tally()
    failed = assessment.log.uncleanable is not None
    judged = Tally(
        largest_ratio=0.0 if failed else assessment.cleanable_ratio,
        late_from_ms=assessment.late_from_ms,
        uncleanable=int(failed),
        uncleanable_bytes=total_bytes(assessment.sections.cleanable) if failed else 0,
    )
    if last is None:
        return judged
    return judged._replace(
        read_bytes=last.bytes_read,
        written_bytes=last.bytes_written,
        largest_utilization_percent=100 * last.map_keys // max(last.map_slots, 1),
        longest_ms=last.duration_ms,
        last_ended_ms=last.ended_ms,
    )


def added_up(tallies: Iterable[Tally]) -> Tally:
    """The tally of all their logs together."""
    columns = list(zip(*tallies, strict=True))
    if not columns:
        return Tally()
    ratios, late, uncleanable, uncleanable_bytes, read, written, utilization, durations, ended = columns
    return Tally(
        max(ratios),
        min((ms for ms in late if ms is not None), default=None),
        sum(uncleanable),
        sum(uncleanable_bytes),
        sum(read),
        sum(written),
        max(utilization),
        max(durations),
        max((ms for ms in ended if ms is not None), default=None),
    )


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
    tallies = (tally_of(each, passes.get(each.log.topic_partition)) for each in assessments)
    return metrics_of(added_up(tallies), still_open, now_ms)


def metrics_of(tally: Tally, still_open: Collection[OpenErasures], now_ms: int) -> CleanerMetrics:
    """The metrics at this time; ``still_open`` is of each topic whose logs were tallied."""
    delay_ms = 0 if tally.late_from_ms is None else max(now_ms - tally.late_from_ms, 0)
    return CleanerMetrics(
        max_dirty_percent=int(100 * tally.largest_ratio),
        max_compaction_delay_secs=delay_ms // 1000,
        uncleanable_partitions_count=tally.uncleanable,
        uncleanable_bytes=tally.uncleanable_bytes,
        cleaner_recopy_percent=100 * tally.written_bytes // max(tally.read_bytes, 1),
        max_buffer_utilization_percent=tally.largest_utilization_percent,
        max_clean_time_secs=tally.longest_ms // 1000,
        # One that a clock ahead has dated has ended by now.
        time_since_last_run_ms=None if tally.last_ended_ms is None else max(now_ms - tally.last_ended_ms, 0),
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
