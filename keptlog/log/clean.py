"""One clean of one log, on records in memory: the rules put together, one record at a time.

    map      the keys of the dirty section, until the offset map is full: where does the pass end
    order    of those keys, the latest record and its place; by version the clean section and the watermarks have a say
    judge    every record of the step's segments
    leave    a watermark for every tombstone that goes by its horizon

This is what the kernels on Spark do by columns and in parts. Histories by the thousand are put through it, beside
Kafka's own cleaner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from keptlog.log.offset_map import MapOverflow, MapRange, end_of_mapping
from keptlog.log.record import Record
from keptlog.log.result import Counts, Overrun
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact, Expire, due_horizon_ms, overruns_readers
from keptlog.log.strategy import Order
from keptlog.log.verdict import Verdict, is_expired, verdict
from keptlog.log.watermark import Watermark, watermark_of, watermarks_after


@dataclass(frozen=True, slots=True)
class CleanedLog:
    """What a clean leaves of the segments that it judged."""

    step: CleanStep
    """As it was carried out: where the offset map was full it ends earlier than it was planned."""
    records: tuple[Record, ...]
    counts: Counts
    map_keys: int
    """Distinct keys of the dirty section, up to the end of the pass."""
    malformed: int
    """Dirty records whose version header holds no version."""
    watermarks: tuple[Watermark, ...]
    overrun: tuple[Overrun, ...] = ()
    """Tombstones that went by their horizon although a reader had not met them, a segment each."""


def clean(step: CleanStep, segments: Sequence[Sequence[Record]], watermarks: Iterable[Watermark] = ()) -> CleanedLog:
    """Carry a compact or expire step out; ``segments`` has the records of each of the step's segments.

    ``watermarks`` are those that the log's strategy made so far.
    """
    watermarks = tuple(watermarks)
    if isinstance(step, Compact):
        step = step.ended_at(_end_of(step, segments))
        segments = segments[: len(step.segments)]
    everything = [record for segment in segments for record in segment]
    place = [part for part, records in zip(step.segments, segments, strict=True) for _ in records]
    dirty = [each for each in everything if step.first_dirty_offset <= each.offset < step.end_offset]
    latest = latest_orders(step, everything, dirty, watermarks) if isinstance(step, Compact) else {}
    verdicts = [_judge(step, part, record, latest) for part, record in zip(place, everything, strict=True)]
    expired = [record for record, each in zip(everything, verdicts, strict=True) if each is Verdict.EXPIRED]
    left = (watermark_of(tombstone, step.strategy, step.watermark_retention_ms, step.now_ms) for tombstone in expired)
    tally = Counter(verdicts)
    return CleanedLog(
        step=step,
        records=tuple(
            _stamped(step, record) if isinstance(step, Compact) and each is Verdict.STAMPED else record
            for record, each in zip(everything, verdicts, strict=True)
            if each.is_retained
        ),
        counts=Counts(**{str(each): tally[each] for each in Verdict}),
        map_keys=len(latest),
        malformed=sum(step.strategy.is_malformed(record) for record in dirty),
        watermarks=tuple(
            watermarks_after(
                watermarks, (mark for mark in left if mark), latest, step.now_ms, is_expiry=isinstance(step, Expire)
            )
        ),
        overrun=tuple(_overrun(step, expired)),
    )


def latest_orders(
    step: Compact, everything: Iterable[Record], dirty: Iterable[Record], watermarks: Iterable[Watermark]
) -> dict[bytes, Order]:
    """Of every dirty key the order of its latest record; its offset is ``NO_OFFSET`` where a watermark wins."""
    strategy = step.strategy
    latest: dict[bytes, Order] = {}
    for record in dirty:
        if record.key is not None:
            latest[record.key] = max(latest.get(record.key, strategy.order_of(record)), strategy.order_of(record))
    if not strategy.has_versions:
        return latest
    for record in everything:
        if record.key in latest and step.log_start_offset <= record.offset < step.first_dirty_offset:
            latest[record.key] = max(latest[record.key], strategy.order_of(record))
    for mark in watermarks:
        if mark.key in latest:
            latest[mark.key] = max(latest[mark.key], mark.order)
    return latest


def _end_of(step: Compact, segments: Sequence[Sequence[Record]]) -> int:
    if step.map_capacity.overflow is MapOverflow.SHUFFLE:
        return step.end_offset
    planned = MapRange(step.first_dirty_offset, step.end_offset, step.map_capacity.max_keys)
    records = (record for segment in segments for record in segment)
    return end_of_mapping(planned, records, [segment.base_offset for segment in step.segments])


def _judge(step: CleanStep, segment: Segment, record: Record, latest: Mapping[bytes, Order]) -> Verdict:
    if isinstance(step, Compact):
        order = latest.get(record.key) if record.key is not None else None
        return verdict(record, order[-1] if order else None, step.bounds_in(segment))
    is_due = is_expired(record, due_horizon_ms(step, segment))
    goes = record.offset < step.end_offset and record.key is not None and is_due
    return Verdict.EXPIRED if goes else Verdict.KEPT


def _stamped(step: Compact, tombstone: Record) -> Record:
    return replace(tombstone, delete_horizon_ms=step.bounds.new_delete_horizon_ms)


def _overrun(step: CleanStep, expired: Sequence[Record]) -> Iterator[Overrun]:
    for segment in step.segments:
        offsets = [each.offset for each in expired if segment.base_offset <= each.offset <= segment.last_offset]
        if offsets and overruns_readers(step, segment):
            yield Overrun(offsets[0], offsets[-1], len(offsets))
