"""Where the records of a log lie in Kafka: segments of batches, their sizes and timestamps, without Kafka.

keptlog judges a log by the sizes and timestamps of its segments, and its segments are not Kafka's. To ask both the same
question, a script's records are laid out here as Kafka lays them out, and keptlog's rules are given that:

    append   a batch at the end of the active segment, which keptlog's own roll rule closes first if it must;
             one that is replicated has its offsets already, with gaps before, between and behind its records
    roll     the active segment is closed
    clean    neighbouring segments go into groups of at most ``segment.bytes``, each into one segment

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

NO_TIMESTAMP = -1
_HEADER_BYTES = 61
_MARKER_BYTES = 78


@dataclass(frozen=True)
class Batch:
    """Records that were appended together. ``horizon_ms`` is Kafka's delete horizon, which a batch has as a whole."""

    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    max_timestamp_ms: int
    size_bytes: int
    horizon_ms: int | None = None

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

    def cleaned(self, retained: Sequence[Record], upper_offset: int) -> Batch | None:
        """The batch with what the clean left of its records; ``MemoryRecords.filterTo``.

        An empty one stays when it ends where the round ends, with the timestamp that it had: reference to the log's
        end for Kafka's replicas.
        """
        if not retained:
            is_last = self.last_offset + 1 == upper_offset
            return replace(self, records=(), size_bytes=_HEADER_BYTES, horizon_ms=None) if is_last else None
        if tuple(retained) == self.records:
            return self
        horizon_ms = self.horizon_ms
        if horizon_ms is None:
            horizon_ms = next((r.delete_horizon_ms for r in retained if r.delete_horizon_ms is not None), None)
        return Batch.of(self.base_offset, self.last_offset, retained, horizon_ms)


@dataclass
class KafkaSegment:
    """One of Kafka's log segments; ``modified_ms`` is the modification time of its file."""

    base_offset: int
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

    def append(self, records: Sequence[Record], config: TopicConfig, now_ms: int) -> None:
        """Append one batch; offsets are assigned."""
        numbered = [replace(record, offset=self.log_end_offset + index) for index, record in enumerate(records)]
        self._append(Batch.of(numbered[0].offset, numbered[-1].offset, numbered), config, now_ms)

    def replicate(self, batch: Batch, config: TopicConfig, now_ms: int) -> None:
        """Append one batch at the offsets that it has."""
        self._append(batch, config, now_ms)

    def append_marker(self, config: TopicConfig, now_ms: int) -> None:
        """Append the batch that ends a transaction; its record is nobody's."""
        self._append(Batch(self.log_end_offset, self.log_end_offset, (), now_ms, _MARKER_BYTES), config, now_ms)

    def _append(self, batch: Batch, config: TopicConfig, now_ms: int) -> None:
        run = [_as_appended_file(each) for each in self.active.batches]
        if run and is_rolled_before(run, _as_appended_file(batch), config):
            self.roll(now_ms, batch.base_offset)
        self.active.batches.append(batch)
        self.log_end_offset = batch.last_offset + 1

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Close the active segment; an empty one is replaced. The next one begins at the log end, or at what comes."""
        if not self.active.batches:
            self.segments.pop()
        self.segments.append(KafkaSegment(self.log_end_offset if base_offset is None else base_offset, now_ms))

    def hide(self, base_offsets: Collection[int]) -> None:
        """Take the records out of batches that were aborted; the batches stay where and as large as they are."""
        for segment in self.segments:
            segment.batches = [
                replace(batch, records=()) if batch.base_offset in base_offsets else batch for batch in segment.batches
            ]

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

    def rewrite(
        self, end_offset: int, upper_offset: int, segment_bytes: int, clean: Callable[[Record], Record | None]
    ) -> None:
        """Put every segment that begins before ``end_offset`` through ``clean``, in groups as Kafka forms them."""
        count = sum(segment.base_offset < end_offset for segment in self.segments)
        cleaned: list[KafkaSegment] = []
        for group in _groups(self.segments[:count], segment_bytes):
            batches: list[Batch] = []
            for batch in (batch for segment in group for batch in segment.batches):
                retained = [kept for record in batch.records if (kept := clean(record)) is not None]
                rewritten = batch.cleaned(retained, upper_offset)
                batches += [rewritten] if rewritten else []
            cleaned.append(KafkaSegment(group[0].base_offset, group[-1].modified_ms, batches))
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


def _as_appended_file(batch: Batch) -> Segment:
    """The file that keptlog would have for this append.

    ADR 9 takes the smallest timestamp for the first one; Kafka the largest of the first batch, which is given here.
    """
    return Segment(
        path=f"appended-{batch.base_offset}",
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        first_timestamp_ms=batch.max_timestamp_ms,
        largest_timestamp_ms=batch.max_timestamp_ms,
        record_count=len(batch.records),
        size_bytes=batch.size_bytes,
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
