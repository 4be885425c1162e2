"""Reads one segment: its committed records as tables, in offset order, in bounded memory.

    batches -> leave out what does not count -> decompress -> some MiB together -> decode -> table

What does not count: control batches, the batches of aborted transactions, what lies before the log start or at and
behind the last stable offset. A batch may lie on both sides of these. Offsets stay as they are, gaps and all.

A batch whose checksum is right may still not hold what it promises. It is as corrupt as one with a wrong checksum, and
is treated alike: the reader stops, or skips it and tells. A record that is as its producer made it, and that no table
can hold, is no damage: it is skipped alone, or the reader stops at it, and what lies before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from keptlog.errors import InvalidRecord
from keptlog.log.words.counted import counted
from keptlog.sources.kafka_log import message_set, record_batch
from keptlog.sources.kafka_log.batches import Batch, Damage, LogSegment, batches
from keptlog.sources.kafka_log.columns import Columns, Flags
from keptlog.sources.kafka_log.compression import LARGEST_BYTES, Undecodable, decompress
from keptlog.sources.kafka_log.record_batch import BrokenRecords
from keptlog.sources.kafka_log.segments import why_unreadable
from keptlog.sources.kafka_log.transactions import AbortedOffsets, LogScan

TABLE_BYTES = 8 * 2**20
TABLE_RECORDS = 131_072
"""Whichever comes first; a single batch may have more."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Records that are whole, and that no table can hold."""

    path: str
    next_offset: int
    """The first one's."""
    end_offset: int
    """Behind the last one."""
    count: int
    reason: str
    """Of the first one."""
    keyed: pa.Table = field(compare=False, repr=False)
    """The offsets and keys of these, and whether they are tombstones."""

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.path}: the record at offset {self.next_offset} {self.reason}"
        span = f"from offset {self.next_offset} to {self.end_offset - 1}"
        return f"{self.path}: {counted(self.count, 'record')} {span} can't be stored; the first {self.reason}"

    def as_error(self) -> InvalidRecord:
        """What stops a reader who may not skip them."""
        told = f"{self}: mend its producer, and skip what can't be stored (--skip-corrupt)"
        return InvalidRecord(told).from_offset(self.next_offset)


Skipped = Callable[[Damage | Unfit], None]
Payload = bytes | memoryview
Waiting = tuple[list[Batch], list[Payload]]


def read_segment(
    segment: LogSegment, partition: int, scan: LogScan, skipped: Skipped | None = None
) -> Iterator[pa.Table]:
    """The records of a segment that count, as tables of ``SCHEMA``, none of them empty.

    ``skipped`` takes what is corrupt, or unfit, and left out; without it the first such place ends the reading. The
    torn end of the log, which ``scan`` has found, is no such place.

    Raises:
        LogCorrupt: something in the segment is broken; names file, position, offset and reason.
        InvalidRecord: no table can hold a record; those before it were given.
        StorageUnavailable: the file can't be read, or was replaced meanwhile.
    """
    reading = _Reading(segment, partition, scan, skipped)
    aborted = AbortedOffsets(scan.aborted)
    for each in batches(segment):
        if isinstance(each, Damage):
            if not (each.is_torn and segment.is_last):
                reading.skip(each)
        elif each.base_offset >= scan.last_stable_offset:
            break
        elif not (each.is_control or each.last_offset < scan.log_start_offset or aborted.has(each)):
            if reading.is_full or not reading.is_like(each):
                yield from reading.flush()
            reading.add(each)
    yield from reading.flush()


@dataclass
class _Reading:
    """The batches that wait until they are enough for a table; all of v2, or all older."""

    segment: LogSegment
    partition: int
    scan: LogScan
    skipped: Skipped | None
    waiting: list[Batch] = field(default_factory=list)
    payloads: list[Payload] = field(default_factory=list)
    waiting_bytes: int = 0
    waiting_records: int = 0

    def skip(self, damage: Damage) -> None:
        if self.skipped is None:
            raise why_unreadable(self.segment, damage)
        self.skipped(damage)

    @property
    def is_full(self) -> bool:
        return self.waiting_bytes >= TABLE_BYTES or self.waiting_records >= TABLE_RECORDS

    def is_like(self, batch: Batch) -> bool:
        """Whether a batch can be decoded together with those that wait."""
        return not self.waiting or (self.waiting[0].magic == 2) == (batch.magic == 2)

    def add(self, batch: Batch) -> None:
        """Add a batch, decompressed: what waits is counted as it is in memory."""
        if not batch.record_count:
            return
        payload: Payload = batch.payload
        if batch.codec != "none":
            try:
                payload = decompress(batch.codec, bytes(payload)) if batch.magic == 2 else message_set.unwrapped(batch)
            except Undecodable as undecodable:
                self.skip(self._damage(batch, str(undecodable)))
                return
        elif len(payload) > LARGEST_BYTES:
            self.skip(self._damage(batch, f"it has {len(payload)} bytes, more than {LARGEST_BYTES}"))
            return
        self.waiting.append(batch)
        self.payloads.append(payload)
        self.waiting_bytes += len(payload)
        self.waiting_records += batch.record_count

    def flush(self) -> Iterator[pa.Table]:
        """The records of what waits, without the batches that turn out to be broken."""
        waiting, payloads = self.waiting, self.payloads
        self.waiting, self.payloads, self.waiting_bytes, self.waiting_records = [], [], 0, 0
        if not waiting:
            return
        try:
            columns = self._decode(waiting, payloads)
        except BrokenRecords as broken:
            waiting, payloads = self._beside(broken, waiting, payloads)
            if not waiting:
                return
            # All at once again: whoever takes them would have a table for every few records.
            columns = self._decode(waiting, payloads)
        yield from self._tables(columns)

    def _beside(self, broken: BrokenRecords, waiting: list[Batch], payloads: list[Payload]) -> Waiting:
        """What can be decoded of batches of which one is broken.

        What is left beside it is tried again in halves: thousands of broken ones would else have all the others decoded
        thousands of times.
        """
        self.skip(self._damage(waiting[broken.batch], str(broken)))
        del waiting[broken.batch], payloads[broken.batch]
        half = len(waiting) // 2
        halves = [self._sound(waiting[part], payloads[part]) for part in (slice(half), slice(half, None))]
        (first, first_payloads), (second, second_payloads) = halves
        return first + second, first_payloads + second_payloads

    def _sound(self, waiting: list[Batch], payloads: list[Payload]) -> Waiting:
        """The same of batches of which nothing is known yet."""
        try:
            if waiting:
                self._decode(waiting, payloads)
        except BrokenRecords as broken:
            return self._beside(broken, waiting, payloads)
        return waiting, payloads

    def _decode(self, waiting: list[Batch], payloads: list[Payload]) -> Columns:
        is_v2 = waiting[0].magic == 2
        columns = record_batch.decode(waiting, payloads) if is_v2 else message_set.decode(waiting, payloads)
        start, end = self.scan.log_start_offset, self.scan.last_stable_offset
        if waiting[0].base_offset < start or waiting[-1].last_offset >= end:
            columns = columns.of((columns.offset >= start) & (columns.offset < end))
        return columns

    def _tables(self, columns: Columns) -> Iterator[pa.Table]:
        """The records as a table, if there are any, without those that no table can hold."""
        if not (is_storable := columns.have_storable_times()).all():
            ms = columns.timestamp_ms[np.argmin(is_storable)]
            yield from self._without(columns, is_storable, f"has the timestamp {ms} ms, which no table can hold")
            return
        try:
            table = columns.table(self.partition)
        except pa.ArrowInvalid:
            reason = "has a header whose name is not UTF-8, as Kafka demands"
            yield from self._without(columns, columns.have_text_names(), reason)
            return
        if table.num_rows:
            yield table

    def _without(self, columns: Columns, is_fit: Flags, reason: str) -> Iterator[pa.Table]:
        left_out = columns.of(~is_fit)
        first, last = int(left_out.offset[0]), int(left_out.offset[-1])
        path, count = str(self.segment.path), len(left_out.offset)
        unfit = Unfit(path, first, last + 1, count, reason, left_out.keyed())
        if self.skipped is None:
            yield from self._tables(columns.of(columns.offset < unfit.next_offset))
            raise unfit.as_error()
        self.skipped(unfit)
        yield from self._tables(columns.of(is_fit))

    def _damage(self, batch: Batch, reason: str) -> Damage:
        path, end_offset = str(self.segment.path), batch.last_offset + 1
        return Damage(path, batch.position, batch.size_bytes, batch.base_offset, reason, end_offset)
