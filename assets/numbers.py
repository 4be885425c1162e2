"""A pass in numbers: what Dagster keeps of it, plots, and shows beside a topic-partition.

All that is a number is a plain number under a name with its unit, so that it is plotted over time. A clean of a
topic-partition is one event, with a table of its new segments. Kafka's metrics keep Kafka's names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from keptlog.dagster.assets.names import AssetKeys
from keptlog.log.assessment import Assessment
from keptlog.log.holder import Holdings
from keptlog.log.result import RewriteResult
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.steps import Retain
from keptlog.log.told.metrics import CleanerMetrics
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.passes.observer import Overview, record_count

if TYPE_CHECKING:
    from keptlog.log.told.early_end import EarlyEnd
    from keptlog.passes.clean import Pass

_SEGMENTS_TOLD = 100
"""Of a clean: Dagster keeps each of them for good."""
DATA_VERSION_TAG = "dagster/data_version"
"""Dagster's name for the tag of an event by which it tells whether what is downstream is out of date."""
DIRTY_VERSION = "dirty_version"
UNCLEANABLE = "uncleanable"
"""In the metadata of a dirty section: by what a later tick knows whether it has changed, and why its log is marked."""
Metadata = dict[str, dg.MetadataValue[Any] | int | float | str]


def materializations(
    keys: AssetKeys,
    cleaned: Pass,
    after: Overview,
    metrics: Mapping[TopicPartition, CleanerMetrics],
    of_topics: Mapping[str, Metadata],
) -> Iterator[dg.AssetMaterialization]:
    """One for each topic-partition, with its new segments as a table; ``after`` holds the logs as they are now.

    ``of_topics`` is what is told of whole topics.
    """
    assessments = {each.log.topic_partition: each for each in after.assessments}
    early_ends = cleaned.early_ends
    for outcome in cleaned.committed:
        name = outcome.step.topic_partition
        assessment, early = assessments.get(name), early_ends.get(name)
        yield dg.AssetMaterialization(
            keys.clean(name.topic),
            description=_sentence(outcome, early),
            partition=str(name),
            metadata=of_topics.get(name.topic, {})
            | _clean_numbers(outcome, assessment, cleaned.duration_ms)
            | _offsets_left(early)
            | _new_segments(outcome.added)
            | kafka_metrics(metrics.get(name))
            | _row_counts(assessment, after),
            tags=clean_version_tags(assessment),
        )


def unchanged_materialization(
    keys: AssetKeys, assessment: Assessment, why: str, of_topic: Metadata
) -> dg.AssetMaterialization:
    """A clean section as it is, in which nothing was to be cleaned; ``of_topic`` is what is told of the whole topic."""
    log = assessment.log
    return dg.AssetMaterialization(
        keys.clean(log.topic_partition.topic),
        description=f"looked at, and left as it is: {why}",
        partition=str(log.topic_partition),
        metadata={
            **of_topic,
            **row_count_of(of_topic),
            "dagster/partition_row_count": record_count([log]),
            **_lag(assessment),
        },
        tags=clean_version_tags(assessment),
    )


def row_count_of(of_topic: Metadata) -> Metadata:
    """How many records a whole topic has, under Dagster's name; nothing if that is not known."""
    return {"dagster/row_count": of_topic["topic_records"]} if "topic_records" in of_topic else {}


def clean_version(assessment: Assessment) -> str:
    """The data version of a clean section: the same for as long as readers find the same in it.

    So what is downstream is out of date after a clean, an erasure or retention, and not after a look. It is the log's
    start, its first dirty offset, and a checksum over the names of the segments, for passes that move neither.
    """
    sections = assessment.sections
    names = "\n".join(segment.path for segment in sections.clean)
    return f"{assessment.log.log_start_offset}-{sections.first_dirty_offset}-{zlib.crc32(names.encode()):08x}"


def version_of_all(versions: Sequence[str]) -> str:
    """One for several topic-partitions, of one that of its own; a run of several has one for all in Dagster."""
    return versions[0] if len(versions) == 1 else f"{zlib.crc32(' '.join(sorted(versions)).encode()):08x}"


def clean_version_tags(assessment: Assessment | None) -> dict[str, str]:
    """The data version of a clean section, for its event; nothing of a log that can't be had."""
    return {DATA_VERSION_TAG: clean_version(assessment)} if assessment else {}


def retention_observation(keys: AssetKeys, step: Retain) -> dg.AssetObservation:
    """What retention removed from a log."""
    numbers: Metadata = {
        "segments_removed": len(step.segments),
        "records_removed": sum(segment.record_count for segment in step.segments),
        "bytes_removed": total_bytes(step.segments),
        "log_start_offset": step.new_log_start_offset,
    }
    name = str(step.topic_partition)
    description = f"retention removed {counted(len(step.segments), 'old segment')}"
    return dg.AssetObservation(
        keys.clean(step.topic_partition.topic), partition=name, description=description, metadata=numbers
    )


def kafka_metrics(metrics: CleanerMetrics | None) -> Metadata:
    """The cleaner's metrics of one log; what was never measured is left out."""
    named = metrics.to_dict() if metrics else {}
    return {name: value for name, value in named.items() if value is not None}


def dirty_materialization(
    keys: AssetKeys,
    assessment: Assessment,
    metrics: CleanerMetrics | None = None,
    more: Metadata | None = None,
) -> dg.AssetMaterialization:
    """The dirty section of a log as it is now; ``more`` is told first.

    It is a materialization because the section has changed, by whom ever; Dagster would call it never materialized.
    Its data version is the log end: a clean makes the section shorter, and brings nothing new.
    """
    log, sections = assessment.log, assessment.sections
    numbers: Metadata = {
        **(more or {}),
        "dirty_ratio": round(assessment.cleanable_ratio, 4),
        "cleanable_bytes": total_bytes(sections.cleanable),
        "waiting_bytes": total_bytes(sections.uncleanable + sections.active),
        "dirty_records": sum(segment.record_count for segment in sections.dirty),
        "first_dirty_offset": sections.first_dirty_offset,
        "log_end_offset": log.log_end_offset,
        **_lag(assessment),
        **kafka_metrics(metrics),
        DIRTY_VERSION: assessment.dirty_version,
    }
    return dg.AssetMaterialization(
        keys.dirty(log.topic_partition.topic),
        partition=str(log.topic_partition),
        metadata=numbers,
        tags={DATA_VERSION_TAG: str(log.log_end_offset)},
    )


def held_numbers(holdings: Holdings, now_ms: int) -> Metadata:
    """What holds superseded bytes of a topic, as far as its table tells, and until when."""
    holders = holdings.holders(now_ms)
    files, sizes = [each.files for each in holders], [each.bytes for each in holders]
    numbers: Metadata = {"held_files_late": sum(each.late_files for each in holders)}
    # What is not known is left out: it is no zero.
    if None not in files:
        numbers["held_files"] = sum(filter(None, files))
    if None not in sizes:
        numbers["held_bytes"] = sum(filter(None, sizes))
    if holders:
        numbers["holders"] = "\n".join(map(str, holders))
        deadlines_ms = [each.deadline_ms for each in holders if each.deadline_ms is not None]
        if deadlines_ms:
            numbers["held_deadline"] = dg.MetadataValue.timestamp(min(deadlines_ms) / 1000)
    return numbers


def _sentence(outcome: RewriteResult, early: EarlyEnd | None) -> str:
    counts, step = outcome.counts, outcome.step
    told = (
        f"{step.kind} because of {step.trigger}: {counted(counts.total, 'record')} in, {counts.retained} out; "
        f"{counts.superseded} superseded, {counted(counts.stamped, 'tombstone')} stamped, {counts.expired} expired"
    )
    return f"{told}; {early}" if early else told


def _clean_numbers(outcome: RewriteResult, after: Assessment | None, duration_ms: int) -> Metadata:
    step, counts = outcome.step, outcome.counts
    bytes_in = total_bytes(step.segments)
    numbers: Metadata = {
        "trigger": step.trigger.value,
        "dirty_ratio_before": round(step.cleanable_ratio, 4),
        "records_in": counts.total,
        "records_out": counts.retained,
        "records_superseded": counts.superseded,
        "tombstones_stamped": counts.stamped,
        "tombstones_expired": counts.expired,
        "malformed_versions": outcome.malformed,
        "bytes_in": bytes_in,
        "bytes_out": bytes_in - outcome.bytes_rewritten + outcome.bytes_written,
        "bytes_written": outcome.bytes_written,
        "files_kept": outcome.segments_kept,
        "files_rewritten": len(outcome.removed),
        "files_new": len(outcome.added),
        "run_duration_ms": duration_ms,
    }
    # Where the catalog is away since the commit, nothing is known of the log as it is now: that is no zero.
    return numbers | ({"dirty_ratio_after": round(after.cleanable_ratio, 4), **_lag(after)} if after else {})


def _offsets_left(early: EarlyEnd | None) -> Metadata:
    """How far the end is that a full offset map kept the clean from: 0 where it has reached it."""
    return {"offsets_left": early.planned_end_offset - early.end_offset if early else 0}


def _row_counts(assessment: Assessment | None, after: Overview) -> Metadata:
    """Under Dagster's own names: rows of the whole table and of this topic-partition, of all sections."""
    if assessment is None:
        return {}
    rows, of_partition = after.record_counts[assessment.log.topic_partition.topic], record_count([assessment.log])
    return {"dagster/row_count": rows, "dagster/partition_row_count": of_partition}


def _new_segments(segments: Sequence[Segment]) -> Metadata:
    """The first of them; ``files_new`` is how many there are."""
    rows = [
        dg.TableRecord(
            {
                "base_offset": each.base_offset,
                "last_offset": each.last_offset,
                "records": each.record_count,
                "tombstones": each.tombstone_count,
                "bytes": each.size_bytes,
                "path": each.path,
            }
        )
        for each in segments[:_SEGMENTS_TOLD]
    ]
    return {"segments_new": dg.MetadataValue.table(rows)} if rows else {}


def _lag(assessment: Assessment) -> Metadata:
    oldest_ms = assessment.earliest_uncompacted_ms
    numbers: Metadata = {
        "oldest_uncompacted_age_ms": 0 if oldest_ms is None else max(assessment.now_ms - oldest_ms, 0),
        "late_ms": assessment.max_compaction_delay_ms,
    }
    if oldest_ms is not None:
        numbers["oldest_uncompacted"] = dg.MetadataValue.timestamp(oldest_ms / 1000)
    return numbers
