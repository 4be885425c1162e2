"""What Kafka's log holds besides the records that keptlog has, batch by batch: Kafka's books of a case (ADR 67).

Markers of transactions, batches that were emptied, producers' sequences and the index of aborted transactions never
enter a log of keptlog (ADR 15). A case tells what Kafka leaves of them, and is held to it here, whatever keptlog does:
what keptlog leaves is compared with the case beside this.

    pass   map      where the pass ends: control batches and aborted ones are passed over, but not open transactions
           aborted  each batch whose transaction the index of aborted transactions has; its records go
           marker   it gets a horizon in the first pass that meets no batch of its transaction, and goes at it
           empty    the last batch of a producer stays for its sequence, and one by ``EmptyBatches``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from keptlog.log.record import Record
from tests.conformance.logs import Pass
from tests.conformance.transactions import Batch, Source, in_text, is_listed, text_of

_LAST_SEQUENCE = 2**31 - 1


class EmptyBatches(StrEnum):
    """Which last batch of a pass stays though it is empty: it changed twice. A case names the rule that it needs."""

    NONE = "none"
    UPPER_BOUND = "upper_bound"
    HIGH_WATERMARK = "high_watermark"


def books_of(source: Source, delete_retention_ms: int, rule: str | None) -> list[Books]:
    """Those under the rule that a case needs, or under every one.

    A case tells neither how large its batches are, so that any segments may have been joined by a pass, nor always the
    high watermark, which then is nowhere or at the end of the log.
    """
    rules = [EmptyBatches(rule)] if rule in set(EmptyBatches) else list(EmptyBatches)
    readings = [(each, False) for each in rules]
    if EmptyBatches.HIGH_WATERMARK in rules:
        readings.append((EmptyBatches.HIGH_WATERMARK, True))
    return [
        Books(source, each, delete_retention_ms, is_all_replicated=is_all, joins=joins)
        for each, is_all in readings
        for joins in (False, True)
    ]


def fitting(books: Sequence[Books], name: str, wanted: Any) -> list[Books]:
    """Those that agree with what a case expects under a name; also those that hang on the sizes of segments there."""
    kept: list[Books] = []
    for reading in {each.reading: each for each in books}:
        alike = [each for each in books if each.reading == reading]
        if any(each.agree(name, wanted) for each in alike) or any(
            each.told(name) != alike[0].told(name) for each in alike
        ):
            kept += alike
    return kept


@dataclass
class Entry:
    """A batch as it lies in Kafka's log now."""

    batch: Batch
    offsets: set[int]
    """Of its records; the marker's own for a control batch."""
    horizon_ms: int | None = None

    @property
    def last_sequence(self) -> int | None:
        first = self.batch.base_sequence
        if first is None or first < 0:
            return None
        last = first + self.batch.last_offset - self.batch.base_offset
        return last if last <= _LAST_SEQUENCE else last - _LAST_SEQUENCE - 1


@dataclass(frozen=True, order=True)
class Aborted:
    """One entry of the index of aborted transactions."""

    first_offset: int
    producer_id: int
    marker_offset: int


@dataclass
class Producer:
    """What a broker remembers of an active one."""

    epoch: int
    last_data_offset: int | None = None


@dataclass
class Met:
    """What a pass has met of transactions; Kafka's ``CleanedTransactionMetadata``."""

    waiting: list[Aborted]
    aborted: dict[int, Aborted] = field(default_factory=dict)
    """Those that it is within, by producer."""
    with_batch: set[Aborted] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    """Producers of which there was a batch that no marker of a commit came behind, yet."""
    index: list[Aborted] = field(default_factory=list)
    """Those that are still needed."""

    def is_discarded(self, entry: Entry) -> bool:
        """Whether nobody needs the batch: it was aborted, or is a marker without a batch of its transaction."""
        batch = entry.batch
        while self.waiting and self.waiting[0].first_offset <= batch.last_offset:
            each = self.waiting.pop(0)
            self.aborted.setdefault(each.producer_id, each)
        if batch.control:
            return self._is_marker_discarded(entry)
        producer = batch.producer_id
        if not batch.is_transactional or producer is None:
            return False
        if producer in self.aborted:
            self.with_batch.add(self.aborted[producer])
            return True
        self.committed.add(producer)
        return False

    def _is_marker_discarded(self, entry: Entry) -> bool:
        producer = -1 if entry.batch.producer_id is None else entry.batch.producer_id
        if not entry.offsets:
            return True
        if entry.batch.control == "COMMIT":
            was_met = producer in self.committed
            self.committed.discard(producer)
            return not was_met
        if entry.batch.control == "ABORT":
            ended = self.aborted.pop(producer, None)
            if ended in self.with_batch and ended:
                self.index.append(ended)
                return False
            return True
        return False


@dataclass
class Map:
    """The offset map of a pass."""

    end_offset: int
    latest: dict[bytes, int] = field(default_factory=dict)
    read: int = 0
    """Records that were read for it."""

    def told(self) -> dict[str, Any]:
        """Under the names of what a case expects."""
        latest = {key.decode(): offset for key, offset in self.latest.items()}
        return {"map": latest, "map_size": len(latest), "latest_offset": self.end_offset - 1}

    def reach(self, offset: int) -> None:
        self.end_offset = max(self.end_offset, offset)

    def take(self, entry: Entry, asked: Pass) -> bool:
        """Map a batch; false if there is no room for one of its records."""
        for record in (each for each in entry.batch.records if each.offset in entry.offsets):
            if record.key is not None and record.offset >= asked.first_dirty_offset:
                if asked.max_keys is not None and len(self.latest) >= asked.max_keys:
                    return False
                self.latest[record.key] = record.offset
                self.reach(record.offset + 1)
            self.read += 1
        return True


@dataclass
class Books:
    """Kafka's log of a case, under one rule of which empty batches stay."""

    source: Source
    rule: EmptyBatches
    delete_retention_ms: int
    is_all_replicated: bool = False
    """Whether the high watermark of a case that tells none is the log end."""
    joins: bool = False
    """Whether a pass makes one segment of all that it visits; else each stays. What is so hangs on their sizes."""
    joined: set[int] = field(default_factory=set)
    """Bases of segments that are gone into the one before."""
    mapped: Map = field(default_factory=lambda: Map(0))
    """Of the last pass."""
    entries: list[Entry] = field(default_factory=list)
    producers: dict[int, Producer] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    """Where the open transaction of a producer begins."""
    end_offset: int = 0
    """Where the last pass ended."""
    read: int = 0
    written: int = 0
    unkeyed: int = 0

    @property
    def reading(self) -> tuple[EmptyBatches, bool]:
        """How the case is read, but for the sizes of its segments."""
        return self.rule, self.is_all_replicated

    def append(self, batch: Batch) -> None:
        own = {batch.base_offset} if batch.control else batch.offsets
        self.entries.append(Entry(batch, set(own)))
        if batch.producer_id is None:
            return
        producer = self.producers.setdefault(batch.producer_id, Producer(batch.epoch))
        if producer.epoch != batch.epoch:
            producer.epoch, producer.last_data_offset = batch.epoch, None
        if not batch.control:
            producer.last_data_offset = batch.last_offset
            if batch.is_transactional:
                self.open.setdefault(batch.producer_id, batch.base_offset)
        elif (first := self.open.pop(batch.producer_id, None)) is not None and batch.control == "ABORT":
            self.aborted = sorted([*self.aborted, Aborted(first, batch.producer_id, batch.base_offset)])

    def expire(self, producer_ids: Sequence[int]) -> None:
        for each in producer_ids:
            self.producers.pop(each, None)

    def clean(self, asked: Pass, latest_offset: int | None) -> None:
        """One pass; where nothing is dirty, ``latest_offset`` is what the map has of the pass before."""
        self.mapped = self.map_of(asked)
        self.end_offset = self.mapped.end_offset
        if latest_offset is not None and asked.first_dirty_offset >= asked.end_offset:
            self.end_offset = latest_offset + 1
        self.read = self.written = self.unkeyed = 0
        met = self._met(0)
        kept: list[Entry] = []
        for entry in self.entries:
            if self._segment_base_at(entry.batch.base_offset) < self.end_offset:
                self._clean(entry, asked, self.mapped.latest, met)
                if not entry.offsets and not self._stays_empty(entry.batch, asked.end_offset):
                    continue
            kept.append(entry)
        beyond = [each for each in self.aborted if self._segment_base_at(each.marker_offset) >= self.end_offset]
        self.entries, self.aborted = kept, sorted(met.index + beyond)
        if self.joins:
            self.joined |= {base for base in self.source.segment_bases[1:] if base < self.end_offset}

    def _segment_base_at(self, offset: int) -> int:
        bases = [base for base in self.source.segment_bases if base not in self.joined]
        return max((base for base in bases if base <= offset), default=bases[0])

    def _clean(self, entry: Entry, asked: Pass, latest: Mapping[bytes, int], met: Met) -> None:
        """Take out of a batch what goes, as ``MemoryRecords.filterTo`` does, and count."""
        batch = entry.batch
        is_unneeded = met.is_discarded(entry)
        is_due = entry.horizon_ms is not None and entry.horizon_ms <= asked.now_ms
        goes = is_unneeded and (is_due or not batch.control)
        if goes and not self._stays_empty(batch, asked.end_offset):
            entry.offsets = set()
            return  # not even looked into
        self.read += len(entry.offsets)
        values = {record.offset: record for record in batch.records}
        if goes:
            entry.offsets = set()
        elif not batch.control:
            judged = [values[offset] for offset in entry.offsets if offset < self.end_offset]
            self.unkeyed += sum(record.key is None for record in judged)
            entry.offsets -= {each.offset for each in judged if not _is_retained(each, latest, is_due=is_due)}
        self.written += len(entry.offsets)
        stamps = is_unneeded if batch.control else any(values[offset].is_tombstone for offset in entry.offsets)
        if not entry.offsets:
            entry.horizon_ms = None
        elif stamps and entry.horizon_ms is None:
            entry.horizon_ms = asked.now_ms + self.delete_retention_ms

    def _stays_empty(self, batch: Batch, upper_offset: int) -> bool:
        high_watermark = self.source.high_watermark
        if high_watermark is None and self.is_all_replicated:
            high_watermark = self.source.batches[-1].last_offset + 1
        bounds = {EmptyBatches.UPPER_BOUND: upper_offset, EmptyBatches.HIGH_WATERMARK: high_watermark}
        if batch.last_offset + 1 == bounds.get(self.rule):
            return True
        producer = self.producers.get(-1 if batch.producer_id is None else batch.producer_id)
        if producer is None:
            return False
        if producer.last_data_offset is not None:
            return batch.last_offset == producer.last_data_offset
        return bool(batch.control) and batch.epoch == producer.epoch

    def _met(self, start_offset: int) -> Met:
        return Met([each for each in self.aborted if each.marker_offset >= start_offset])

    def mapped_messages(self, asked: Pass) -> range:
        """How many records Kafka reads for the map: its index may lead it past those before the dirty ones."""
        count = self.map_of(asked).read
        before = [each for each in self._dirty(asked) if each.batch.last_offset < asked.first_dirty_offset]
        return range(count - sum(len(each.offsets) for each in before), count + 1)

    def map_of(self, asked: Pass) -> Map:
        """``Cleaner.buildOffsetMap``."""
        met, mapped = self._met(asked.first_dirty_offset), Map(asked.first_dirty_offset)
        for entry in self._dirty(asked):
            # All before this segment was mapped, also the gap at the end of the one before.
            mapped.reach(self._segment_base_at(entry.batch.base_offset))
            if met.is_discarded(entry) or entry.batch.control:
                mapped.read += len(entry.offsets)
            elif not mapped.take(entry, asked):
                return mapped
            mapped.reach(entry.batch.last_offset + 1)
        mapped.reach(asked.end_offset)
        return mapped

    def _dirty(self, asked: Pass) -> Iterator[Entry]:
        first_base = self._segment_base_at(asked.first_dirty_offset)
        for entry in self.entries:
            if first_base <= entry.batch.base_offset < asked.end_offset:
                yield entry

    def agree(self, name: str, wanted: Any) -> bool:
        """Whether what a case expects under a name is what these books say; true where they say nothing."""
        told = self.told(name)
        if name == "delete_horizons":
            # A case may leave out those of markers, which are no records of its log.
            markers = {str(each.batch.last_offset) for each in self.entries if each.batch.control}
            wanted = {last_offset: told[last_offset] for last_offset in told.keys() & markers} | wanted
        elif name == "keys_with_value":
            wanted = list(map(in_text, wanted))
        elif name == "data":
            wanted = [[row[0], *map(in_text, row[1:])] for row in wanted]
        elif name == "aborted_txns":
            wanted = sorted(wanted)
        return told is None or bool(told == wanted)

    def told(self, name: str) -> Any:
        """What these books say of it; null if they say nothing."""
        numbers = {"messages_read": self.read, "messages_written": self.written, "invalid": self.unkeyed}
        numbers |= {"next_dirty": self.end_offset, "latest_offset": self.end_offset - 1}
        numbers |= {"map_size": len(self.mapped.latest)}
        tell: Callable[[], Any] | None = {
            "aborted_txns": self._aborted_transactions,
            "last_sequences": self._last_sequences,
            "batch_last_offsets": lambda: [each.batch.last_offset for each in self.entries],
            "batch_base_offsets": lambda: [each.batch.base_offset for each in self.entries],
            "first_batch_last_offset": lambda: next((each.batch.last_offset for each in self.entries), None),
            "value_and_marker_offsets": self._listed_offsets,
            "keys_with_value": self._listed_keys,
            "data": self._rows,
            "delete_horizons": self._horizons,
            "map": lambda: self.mapped.told()["map"],
        }.get(name)
        return tell() if tell else numbers.get(name)

    def _aborted_transactions(self) -> list[list[int]]:
        return sorted([each.producer_id, each.first_offset, each.marker_offset] for each in self.aborted)

    def _last_sequences(self) -> dict[str, int | None]:
        data = (each for each in self.entries if not each.batch.control and each.batch.producer_id is not None)
        return {str(each.batch.producer_id): each.last_sequence for each in data}

    def _listed_offsets(self) -> list[int]:
        offsets: list[int] = []
        for entry in self.entries:
            listed = {record.offset for record in entry.batch.records if is_listed(record)}
            offsets += sorted(entry.offsets if entry.batch.control else entry.offsets & listed)
        return offsets

    def _records(self) -> Iterator[Record]:
        for entry in self.entries:
            yield from (record for record in entry.batch.records if record.offset in entry.offsets)

    def _rows(self) -> list[list[object]]:
        return [[record.offset, text_of(record.key), text_of(record.value)] for record in self._records()]

    def _listed_keys(self) -> list[str | None]:
        return [text_of(record.key) for record in self._records() if is_listed(record)]

    def _horizons(self) -> dict[str, int]:
        """By the last offset of a batch."""
        return {str(each.batch.last_offset): each.horizon_ms for each in self.entries if each.horizon_ms is not None}


def _is_retained(record: Record, latest: Mapping[bytes, int], *, is_due: bool) -> bool:
    """``Cleaner.shouldRetainRecord``; ``is_due`` if the delete horizon of its batch has passed."""
    if record.key is None or record.offset < latest.get(record.key, -1):
        return False
    return not (record.is_tombstone and is_due)
