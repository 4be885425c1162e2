"""Where a pass ends in Kafka when the offset map was full, and what its counts differ by (ADR 12).

Kafka's end moves with each key that it maps, and with each batch that it has mapped whole; keptlog's moves with each
record. So records without a key, in the batch that was cut and behind the last key that was mapped, go a pass earlier
here. If they are the first of a segment, only keptlog has visited that segment. Kafka reads them, and drops them, in
its next pass.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from keptlog.log.record import Record
from tests.conformance.logs import Pass
from tests.conformance.transactions import Source


@dataclass(frozen=True)
class Shift:
    """By how much Kafka's counts of one pass differ from ours."""

    read: int = 0
    written: int = 0
    unkeyed: int = 0


def kafkas_end(source: Source, asked: Pass, end_offset: int) -> int:
    """Where Kafka's pass ends if ours ends at ``end_offset``.

    Nothing else differs than a gap, where no record is, unless a batch was cut: the pass ended before its last record.
    """
    if not asked.first_dirty_offset < end_offset < asked.end_offset:
        return end_offset
    for before, batch in zip([None, *source.batches], source.batches, strict=False):
        if not batch.base_offset < end_offset <= max(batch.offsets, default=-1):
            continue
        mapped = [r.offset for r in batch.records if r.key is not None and r.offset < end_offset]
        # Kafka has mapped all before this batch, also the gap at the end of a segment.
        ends = [asked.first_dirty_offset, source.segment_base_at(batch.base_offset)]
        ends += [before.last_offset + 1] if before else []
        return max(ends + [offset + 1 for offset in mapped])
    return end_offset


def unkeyed_between(source: Source, low: int, high: int) -> set[int]:
    """The records without a key that entered there."""
    return {record.offset for record in source.entered() if record.key is None and low <= record.offset < high}


def shift_of(
    source: Source, kafkas_end_offset: int, early: Collection[int], before: Collection[int], left: list[Record]
) -> Shift:
    """The counts of Kafka's pass against ours.

    ``early`` are the records that only our pass has dropped, ``before`` those that Kafka still had from passes before,
    ``left`` is what our pass has left.
    """
    bases = {source.segment_base_at(offset) for offset in early}
    only_here = {base for base in bases if base >= kafkas_end_offset}
    kept_only_here = sum(source.segment_base_at(record.offset) in only_here for record in left)
    dropped_only_here = sum(source.segment_base_at(offset) in only_here for offset in early)
    read = [offset for offset in before if source.segment_base_at(offset) < kafkas_end_offset]
    dropped = [offset for offset in read if offset < kafkas_end_offset]
    return Shift(
        read=len(read) - kept_only_here - dropped_only_here,
        written=len(read) - len(dropped) + len(early) - dropped_only_here - kept_only_here,
        unkeyed=len(dropped) - len(early),
    )
