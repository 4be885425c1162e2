"""One pass over a log's batches: which records count, and where the log ends.

Most logs have no transactions: then all records count, up to the log's end. A producer with transactions sends batches
that carry its id, and its transaction ends with a *marker*, a control batch of that id which says commit or abort:

    offset    0    1    2    3          4    5          6
    producer  7    8    7    8          7    9          8
              a    b    c    abort      d    e          ...
              `--- 8's b is aborted     `--- 7's transaction is open: the last stable offset is 0

Only the markers tell, and a marker may come segments later; so the whole log is looked at before any of it is read. A
producer has at most one transaction at a time. **Aborted** are the batches of a producer from the first of its
transaction to the marker. The **last stable offset** is the first offset of the first transaction that is still open,
else the log's end: nothing from there on enters, not even what others wrote, or a later marker would put records in
before those that are there.

A transaction whose first records are gone by retention is known from the rest of them; if it is open, nothing from the
log start on is stable (Kafka: ``maybeIncrementFirstUnstableOffset``). One whose records a clean has removed may have
left a marker, which then ends nothing.

Above the **high watermark** not all replicas have the records, no consumer sees them, and another leader may take them
back. So where it is known, a batch that reaches beyond it is not there yet, and a marker there decides nothing:

    offset    0    1    2    3          high watermark 3: 7's transaction is open, the last stable offset is 0
    producer  7    8    7    7
              a    b    c    commit

What is corrupt and skipped, or lies in a segment that is missing, may have held a marker. Then the next one of that
producer decides over two transactions, and may be wrong of the first:

    offset    0    1         2    3          7's a is taken for aborted: its transaction is **doubtful**
    producer  7    7         7    7
              a    corrupt   b    abort

Up to a **position** the log came in before, from a look that found it whole. What lies below it was decided then. So
what is lost there since is nothing to what comes in now: a transaction of before it is not open, and the next marker
decides nothing about it. An import that stops at a record which no table can hold leaves a position inside of a
transaction, and of a batch. If its marker is lost then, it is open again, from the position on.

A torn end is where the log ends, though segments without bytes follow: a broker's recovery truncates there and deletes
those, and then writes the same offsets anew. So nobody may go on behind them.

The checksums are looked at too, though they cost a second reading of the bytes: a marker or a producer's id with a
flipped bit would turn aborted records into committed ones, and damage has to be the same for this pass and the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from keptlog.sources.kafka_log.batches import Batch, Damage, LogSegment, batches
from keptlog.sources.kafka_log.compression import Undecodable, decompress
from keptlog.sources.kafka_log.record_batch import BrokenRecords, first_key
from keptlog.sources.kafka_log.segments import why_unreadable

_ABORT = 0
_COMMIT = 1


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """The batches of a producer with offsets in [first offset, marker offset) are aborted."""

    producer_id: int
    first_offset: int
    marker_offset: int


@dataclass(frozen=True, slots=True)
class DoubtfulTransaction:
    """The batches of a producer in [first offset, lost from): what is lost behind them may have held their marker."""

    first_offset: int
    lost_from: int
    marker_offset: int | None
    """The next marker of the producer, which decided; null if there is none yet."""
    is_aborted: bool
    """What it said."""


@dataclass(frozen=True, slots=True)
class LogScan:
    """What one pass over a log found. Pickles; ``for_segment`` makes it small."""

    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    aborted: tuple[AbortedTransaction, ...]
    """In the order of their markers."""
    torn: Damage | None
    """The end of the log that a crash left unfinished: the log ends where this begins."""
    corrupt: tuple[Damage, ...]
    """What was skipped; empty unless that was asked for."""
    uncommitted_from: int | None = None
    """Where the first batch begins that reaches beyond the high watermark; null if none does."""
    absent_from: int | None = None
    """Where the log begins, as the broker noted, if that lies before the first segment; null if nothing is absent."""
    between_segments: tuple[tuple[int, int], ...] = ()
    """Offsets [from, end) behind the last one of a segment and before the next segment."""
    doubtful: tuple[DoubtfulTransaction, ...] = ()
    """In the order of their markers, those without one last."""

    def for_segment(self, segment: LogSegment) -> LogScan:
        """What a reader of this segment needs to know."""
        return self._with_aborted(segment.base_offset, segment.end_offset)

    def between(self, from_offset: int, end_offset: int) -> LogScan:
        """What a reader needs to know of whom the offsets in [from, end) are wanted; the log begins and ends there."""
        bounded = self._with_aborted(from_offset, end_offset)
        return replace(
            bounded,
            log_start_offset=from_offset,
            last_stable_offset=end_offset,
            torn=None,
            corrupt=(),
            between_segments=(),
            doubtful=(),
        )

    def _with_aborted(self, from_offset: int, end_offset: int) -> LogScan:
        aborted = (each for each in self.aborted if each.first_offset < end_offset and each.marker_offset > from_offset)
        return replace(self, aborted=tuple(aborted))


class AbortedOffsets:
    """Tells for a batch whether its transaction was aborted."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for each in aborted:
            self._by_producer[each.producer_id].append((each.first_offset, each.marker_offset))

    def has(self, batch: Batch) -> bool:
        if not batch.is_transactional or batch.producer_id not in self._by_producer:
            return False
        ranges = self._by_producer[batch.producer_id]
        place = bisect_right(ranges, batch.base_offset, key=lambda each: each[0]) - 1
        return place >= 0 and batch.base_offset < ranges[place][1]


@dataclass
class _Producers:
    """The transactions that are open, by producer id, and those that were aborted."""

    first_offset: dict[int, int] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    _lost_from: dict[int, int] = field(default_factory=dict)
    """By producer id, where something is lost in the transaction that is open."""
    _doubtful: list[DoubtfulTransaction] = field(default_factory=list)

    @property
    def doubtful(self) -> tuple[DoubtfulTransaction, ...]:
        """What was decided, and then what is open, though its marker may be lost."""
        is_open = (
            DoubtfulTransaction(self.first_offset[producer_id], lost_from, marker_offset=None, is_aborted=False)
            for producer_id, lost_from in self._lost_from.items()
        )
        return (*self._doubtful, *is_open)

    def first_unstable(self, position: int, end_offset: int) -> int:
        """Where the first open transaction begins, else the end.

        Of one whose marker may be lost, what lies below this position came in, and so was decided.
        """
        starts = (
            max(first_offset, position) if producer_id in self._lost_from else first_offset
            for producer_id, first_offset in self.first_offset.items()
        )
        return min([*starts, end_offset])

    def lose(self, offset: int) -> None:
        """From this offset on something is lost, maybe with markers."""
        for producer_id in self.first_offset:
            self._lost_from.setdefault(producer_id, offset)

    def settle(self, position: int) -> None:
        """Forget what was decided before this position: all that begins below it, where a marker may be lost."""
        lost = [each for each, lost_from in self._lost_from.items() if lost_from < position]
        for producer_id in lost:
            if self.first_offset[producer_id] < position:
                del self.first_offset[producer_id], self._lost_from[producer_id]

    def see(self, batch: Batch) -> None:
        if batch.is_control:
            self._end(batch)
        # A clean leaves empty batches behind for their producer's sequence; they open no transaction.
        elif batch.is_transactional and batch.record_count:
            self.first_offset.setdefault(batch.producer_id, batch.base_offset)

    def _end(self, batch: Batch) -> None:
        kind = _control_type(batch)
        if kind not in {_ABORT, _COMMIT}:
            return
        first_offset = self.first_offset.pop(batch.producer_id, None)
        lost_from = self._lost_from.pop(batch.producer_id, None)
        if first_offset is not None and lost_from is not None:
            self._doubtful.append(DoubtfulTransaction(first_offset, lost_from, batch.base_offset, kind == _ABORT))
        if kind == _ABORT and first_offset is not None:
            self.aborted.append(AbortedTransaction(batch.producer_id, first_offset, batch.base_offset))


@dataclass
class _Walk:
    """What was seen of a log so far, from its first segment on."""

    high_watermark: int | None
    skip_corrupt: bool
    position: int
    reached: int
    """Behind the last offset that was seen, or was lost in what is corrupt."""
    end: int = 0
    """Behind the last good offset, or where the last segment begins."""
    producers: _Producers = field(default_factory=_Producers)
    corrupt: list[Damage] = field(default_factory=list)
    between_segments: list[tuple[int, int]] = field(default_factory=list)
    torn: Damage | None = None
    uncommitted_from: int | None = None

    def through(self, segments: Iterable[LogSegment]) -> None:
        """See all up to the torn end, if there is one: what lies behind that is not of the log any more."""
        for segment in segments:
            if self.torn:
                break
            if self.reached < segment.base_offset:
                self.between_segments.append((self.reached, segment.base_offset))
                self.producers.lose(self.reached)
            self.end = max(self.end, segment.base_offset)
            for each in batches(segment):
                if isinstance(each, Batch):
                    self._see(each)
                else:
                    self._see_damage(each, segment)
        self.producers.settle(self.position)

    def _see(self, batch: Batch) -> None:
        if batch.last_offset >= self.position:
            self.producers.settle(self.position)
        if self.high_watermark is None or batch.last_offset < self.high_watermark:
            self.producers.see(batch)
        elif self.uncommitted_from is None:
            self.uncommitted_from = batch.base_offset
        self.reached = self.end = batch.last_offset + 1

    def _see_damage(self, damage: Damage, segment: LogSegment) -> None:
        if damage.is_torn and segment.is_last:
            self.torn = damage
            return
        if not self.skip_corrupt:
            raise why_unreadable(segment, damage)
        self.corrupt.append(damage)
        if self.uncommitted_from is None:
            self.producers.lose(damage.next_offset)
        self.reached = max(self.reached, damage.end_offset)


def scan_log(
    segments: Sequence[LogSegment],
    log_start_offset: int | None = None,
    high_watermark: int | None = None,
    position: int = 0,
    *,
    skip_corrupt: bool = False,
) -> LogScan:
    """Look at all batches of a log; log start offset and high watermark are what the broker noted, if anything.

    The position is up to where it came in before.

    Raises:
        LogCorrupt: there is something broken before the end of the log, and it is not to be skipped.
        StorageUnavailable: a file can't be read, or was replaced meanwhile.
    """
    first_base = segments[0].base_offset if segments else 0
    start = max(log_start_offset or 0, first_base)
    walk = _Walk(high_watermark, skip_corrupt, position, first_base)
    walk.through(segments)
    end, uncommitted_from = max(start, walk.end), walk.uncommitted_from
    committed_end = end if uncommitted_from is None else max(start, uncommitted_from)
    last_stable = max(start, walk.producers.first_unstable(position, committed_end))
    absent_from = log_start_offset if log_start_offset is not None and log_start_offset < first_base else None
    return LogScan(
        start,
        last_stable,
        end,
        tuple(walk.producers.aborted),
        walk.torn,
        tuple(walk.corrupt),
        uncommitted_from,
        absent_from,
        tuple(walk.between_segments),
        walk.producers.doubtful,
    )


def _control_type(batch: Batch) -> int | None:
    """What a control batch says; null if a clean has emptied it, or it can't be read."""
    if not batch.record_count:
        return None
    try:
        key = first_key(decompress(batch.codec, bytes(batch.payload)))
    except (Undecodable, BrokenRecords):
        return None
    # Its version, then its type.
    return int.from_bytes(key[2:4], "big") if key and len(key) >= 4 else None
