"""Where the records of a log lie in Kafka: segments of batches, their sizes and timestamps, without Kafka.

keptlog judges a log by the sizes and timestamps of its segments, and its segments are not Kafka's. To ask both the same
question, a script's records are laid out here as Kafka lays them out, and keptlog's rules are given that:

    append   a batch at the end of the active segment, which keptlog's own roll rule closes first if it must;
             those that are replicated have their offsets already, with gaps before, between and behind the records
    roll     the active segment is closed
    clean    neighbouring segments go into groups of at most ``segment.bytes``, each into one segment; of a producer
             the last batch stays, of a transaction the marker, for as long as Kafka needs them (``Round``)

Which record survives is not decided here. All of it is uncompressed format v2 (KIP-98), so that sizes are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from keptlog.log.config import TopicConfig
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from tests.building import is_rolled_before
from tests.kafka.producers import Transaction

NO_TIMESTAMP = -1
_HEADER_BYTES = 61
_MARKER_BYTES = 78
_MARKER = Record(0, b"0123", b"012345", 0)
"""As large as the record that ends a transaction."""


@dataclass(frozen=True)
class Batch:
    """Records that were appended together. ``horizon_ms`` is Kafka's delete horizon, which a batch has as a whole.

    ``transaction`` is the one that it is part of, or that it ends: then ``is_marker``, and it has no record of ours.
    """

    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    max_timestamp_ms: int
    size_bytes: int
    horizon_ms: int | None = None
    transaction: Transaction | None = field(default=None, compare=False)
    is_marker: bool = False
    hidden: tuple[Record, ...] = ()
    """Records that were aborted."""

    @classmethod
    def of(cls, base_offset: int, last_offset: int, records: Sequence[Record], horizon_ms: int | None = None) -> Batch:
        """A batch as Kafka's producer or cleaner writes it: timestamps relative to the horizon or the first record."""
        base_timestamp_ms = records[0].timestamp_ms if horizon_ms is None else horizon_ms
        return cls(
            base_offset,
            last_offset,
            tuple(records),
            max(record.timestamp_ms for record in records),
            _HEADER_BYTES + sum(_record_bytes(record, base_offset, base_timestamp_ms) for record in records),
            horizon_ms,
        )

    def appended_at(self, now_ms: int) -> Batch:
        """The batch as a broker takes it that goes by its own clock; what the producer wrote keeps its size."""
        records = tuple(replace(record, timestamp_ms=now_ms) for record in self.records)
        return replace(self, records=records, max_timestamp_ms=now_ms)

    def with_records(self, retained: Sequence[Record]) -> Batch:
        """The batch with what a clean left of its records; ``MemoryRecords.filterTo``."""
        if tuple(retained) == self.records:
            return self
        horizon_ms = self.horizon_ms
        if horizon_ms is None:
            horizon_ms = next((r.delete_horizon_ms for r in retained if r.delete_horizon_ms is not None), None)
        written = Batch.of(self.base_offset, self.last_offset, retained, horizon_ms)
        return replace(written, transaction=self.transaction)

    @property
    def emptied(self) -> Batch:
        """Nothing but its header, with the timestamp that it had."""
        return replace(self, records=(), hidden=(), size_bytes=_HEADER_BYTES, horizon_ms=None)

    @property
    def is_emptied(self) -> bool:
        return self.size_bytes == _HEADER_BYTES

    def stamped(self, horizon_ms: int) -> Batch:
        """A marker with its delete horizon."""
        moved = replace(_MARKER, timestamp_ms=self.max_timestamp_ms)
        return replace(self, horizon_ms=horizon_ms, size_bytes=_HEADER_BYTES + _record_bytes(moved, 0, horizon_ms))


@dataclass
class Round:
    """One round of Kafka's cleaner, batch by batch: what becomes of each once it is known which records stay.

    A batch without records goes, unless it ends where the round ends (followers learn the log end from it), or is the
    last of its producer. A marker gets a horizon in the first round that meets no batch of its transaction, and goes
    like a tombstone.
    """

    end_offset: int
    """Segments that begin before it are cleaned."""
    upper_offset: int
    log_start_offset: int
    now_ms: int
    new_horizon_ms: int
    last_data_offsets: Collection[int]
    clean: Callable[[Record], Record | None]
    _aborted: list[Transaction] = field(default_factory=list)
    """Those of which there was a batch."""
    _committing: set[int] = field(default_factory=set)
    """Producers of which there was a batch that no marker of a commit came behind, yet."""

    def rewritten(self, batch: Batch) -> Batch | None:
        if batch.is_marker and batch.transaction:
            return self._marker(batch, batch.transaction)
        if batch.transaction:
            self._note(batch.transaction)
        retained = [kept for record in batch.records if (kept := self.clean(record)) is not None]
        return batch.with_records(retained) if retained else self._empty(batch)

    def _note(self, transaction: Transaction) -> None:
        if transaction.is_aborted and not transaction.is_forgotten(self.log_start_offset):
            self._aborted.append(transaction)
        else:
            self._committing.add(transaction.producer)

    def _marker(self, batch: Batch, transaction: Transaction) -> Batch | None:
        if batch.is_emptied:
            return self._empty(batch)
        if transaction.is_aborted:
            is_needed = any(each is transaction for each in self._aborted)
        else:
            is_needed = transaction.producer in self._committing
            self._committing.discard(transaction.producer)
        if is_needed:
            return batch
        if batch.horizon_ms is None:
            return batch.stamped(self.new_horizon_ms)
        return self._empty(batch) if batch.horizon_ms <= self.now_ms else batch

    def _empty(self, batch: Batch) -> Batch | None:
        is_last_of_producer = not batch.is_marker and batch.last_offset in self.last_data_offsets
        return batch.emptied if is_last_of_producer or batch.last_offset + 1 == self.upper_offset else None


@dataclass
class KafkaSegment:
    """One of Kafka's log segments; ``modified_ms`` is the modification time of its file."""

    base_offset: int
    created_ms: int
    modified_ms: int
    batches: list[Batch] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return sum(batch.size_bytes for batch in self.batches)

    @property
    def largest_timestamp_ms(self) -> int:
        """A segment without batches or timestamps goes by its file."""
        largest = max((batch.max_timestamp_ms for batch in self.batches), default=NO_TIMESTAMP)
        return largest if largest >= 0 else self.modified_ms

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records]


@dataclass
class Layout:
    """The segments of one log, the last of them active."""

    segments: list[KafkaSegment]
    log_end_offset: int = 0

    @property
    def active(self) -> KafkaSegment:
        return self.segments[-1]

    def append(self, batches: Sequence[Batch], config: TopicConfig, now_ms: int) -> None:
        """Append batches at the offsets that they have, all into one segment."""
        if self.active.batches and self._is_rolled(batches, config, now_ms):
            self.roll(now_ms, batches[0].base_offset)
        self.active.batches += batches
        self.log_end_offset = batches[-1].last_offset + 1

    def _is_rolled(self, batches: Sequence[Batch], config: TopicConfig, now_ms: int) -> bool:
        run = [_as_appended_file([each]) for each in self.active.batches]
        appended = _as_appended_file(batches)
        if run[0].first_timestamp_ms < 0:
            # ADR 17: Kafka goes by the age of a segment whose first batch has no timestamp; a file tells no age.
            run[0] = replace(run[0], first_timestamp_ms=self.active.created_ms)
            appended = replace(appended, largest_timestamp_ms=now_ms)
        return is_rolled_before(run, appended, config)

    def numbered(self, records: Sequence[Record]) -> Batch:
        """A batch that a leader gives the next offsets."""
        own = [replace(record, offset=self.log_end_offset + index) for index, record in enumerate(records)]
        return Batch.of(own[0].offset, own[-1].offset, own)

    def marker(self, now_ms: int, transaction: Transaction) -> Batch:
        """The batch that ends a transaction; its record is nobody's."""
        end = self.log_end_offset
        return Batch(end, end, (), now_ms, _MARKER_BYTES, transaction=transaction, is_marker=True)

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Close the active segment; an empty one is replaced. The next one begins at the log end, or at what comes."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        if not self.active.batches:
            self.segments.pop()
        self.segments.append(KafkaSegment(base_offset, now_ms, now_ms))

    def hide(self, transaction: Transaction) -> None:
        """Take the records out of batches that were aborted; the batches stay where and as large as they are."""
        self._change(transaction, lambda batch: replace(batch, records=(), hidden=batch.records))

    def show(self, transaction: Transaction) -> None:
        """Put them in again."""
        self._change(transaction, lambda batch: replace(batch, records=batch.hidden or batch.records, hidden=()))

    def _change(self, transaction: Transaction, change: Callable[[Batch], Batch]) -> None:
        for segment in self.segments:
            segment.batches = [
                change(batch) if batch.transaction is transaction else batch for batch in segment.batches
            ]

    def batch_base_from(self, offset: int) -> int:
        """Where the first batch begins that does not end before an offset; the log end if there is none."""
        batches = (batch for segment in self.segments for batch in segment.batches)
        return next((batch.base_offset for batch in batches if batch.last_offset >= offset), self.log_end_offset)

    def delete_first(self, count: int, now_ms: int) -> None:
        """Delete the oldest segments; if that is all of them, the log goes on in a new one."""
        if count == len(self.segments):
            self.roll(now_ms)
        del self.segments[:count]

    def last_offset(self, index: int) -> int:
        """Where a segment ends, inclusive, as Kafka sees it: just before the next one begins."""
        if index + 1 < len(self.segments):
            return self.segments[index + 1].base_offset - 1
        return max(self.log_end_offset - 1, self.segments[index].base_offset)

    def rewrite(self, round_: Round, segment_bytes: int) -> None:
        """Put every segment that begins before its end through a round, in groups as Kafka forms them."""
        count = sum(segment.base_offset < round_.end_offset for segment in self.segments)
        cleaned: list[KafkaSegment] = []
        for group in _groups(self.segments[:count], segment_bytes):
            rewritten = [round_.rewritten(batch) for segment in group for batch in segment.batches]
            batches = [batch for batch in rewritten if batch]
            cleaned.append(KafkaSegment(group[0].base_offset, group[0].created_ms, group[-1].modified_ms, batches))
        self.segments[:count] = cleaned
        assert all(earlier.base_offset < later.base_offset for earlier, later in pairwise(self.segments))


def _groups(segments: Sequence[KafkaSegment], segment_bytes: int) -> list[list[KafkaSegment]]:
    """``Cleaner.groupSegmentsBySize``, by the sizes before the clean."""
    groups: list[list[KafkaSegment]] = []
    filled_bytes = 0
    for segment in segments:
        if groups and filled_bytes + segment.size_bytes <= segment_bytes:
            groups[-1].append(segment)
            filled_bytes += segment.size_bytes
        else:
            groups.append([segment])
            filled_bytes = segment.size_bytes
    return groups


def _as_appended_file(batches: Sequence[Batch]) -> Segment:
    """The file that keptlog would have for an append of these.

    ADR 9 takes the smallest timestamp for the first one; Kafka the largest of the first batch, which is given here.
    """
    return Segment(
        path=f"appended-{batches[0].base_offset}",
        base_offset=batches[0].base_offset,
        last_offset=batches[-1].last_offset,
        first_timestamp_ms=batches[0].max_timestamp_ms,
        largest_timestamp_ms=max(batch.max_timestamp_ms for batch in batches),
        record_count=sum(len(batch.records) for batch in batches),
        size_bytes=sum(batch.size_bytes for batch in batches),
    )


def _record_bytes(record: Record, base_offset: int, base_timestamp_ms: int) -> int:
    body_bytes = 1 + _varint_bytes(record.timestamp_ms - base_timestamp_ms) + _varint_bytes(record.offset - base_offset)
    body_bytes += _nullable_bytes(record.key) + _nullable_bytes(record.value) + _varint_bytes(len(record.headers))
    for name, value in record.headers:
        body_bytes += _nullable_bytes(name.encode()) + _nullable_bytes(value)
    return _varint_bytes(body_bytes) + body_bytes


def _nullable_bytes(value: bytes | None) -> int:
    return _varint_bytes(-1) if value is None else _varint_bytes(len(value)) + len(value)


def _varint_bytes(value: int) -> int:
    """Length of a zigzag-encoded variable-length integer."""
    zigzag = 2 * value if value >= 0 else -2 * value - 1
    return max(1, (zigzag.bit_length() + 6) // 7)
