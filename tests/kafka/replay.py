"""What keptlog does with a script: its own rules, on records that lie as Kafka would lay them out.

    operation   who decides
    append      keptlog.log.roll          whether the active segment is closed first
    clean       keptlog.log.assessment     whether, and keptlog.log.sections: from where to where
                keptlog.log.clean         where a pass ends whose map is full, and what becomes of each record
    retain      keptlog.log.retention     which segments go

Transactions are resolved before keptlog sees a record: what was aborted, markers, and what Kafka keeps of producers
only take up room here, as they do in Kafka.

The states have the form of the oracle's, so that a difference is a difference. keptlog differs from Kafka on purpose in
some things; where such a thing would show, it is taken out of the comparison here, at a line that names its ADR. Not
visible here at all: the order of several logs (ADR 4), and that what does not change is not copied (ADR 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from keptlog.log.assessment import Assessment, assess
from keptlog.log.clean import CleanedLog, clean
from keptlog.log.config import TopicConfig
from keptlog.log.offset_map import UNBOUNDED, MapCapacity
from keptlog.log.plan import plan_step
from keptlog.log.record import Record
from keptlog.log.retention import log_start_after_deletion, retention_of
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import Compact
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.units import LONG_MAX
from tests.kafka.layout import Batch, KafkaSegment, Layout, Round
from tests.kafka.oracle import Operation, Script, State
from tests.kafka.producers import Producers

_LOG = TopicPartition("t", 0)
_KEYS_FOR_ALL = 2**63 - 1


def states(script: Script) -> list[State]:
    """Replay a script; one state for each operation with ``"observe": true``."""
    replay = Replay(script[0])
    observed = []
    for index, operation in enumerate(script):
        outcome = replay.apply(operation) if index else {}
        if operation.get("observe"):
            observed.append(outcome | replay.observe())
    return observed


@dataclass
class Replay:
    """One log in the middle of a script. Times are ms."""

    create: Operation
    settings: dict[str, str] = field(init=False)
    now_ms: int = field(init=False)
    layout: Layout = field(init=False)
    log_start_offset: int = 0
    high_watermark: int = 0
    checkpoint: int | None = None
    producers: Producers = field(default_factory=Producers)

    def __post_init__(self) -> None:
        self.settings = dict(self.create["config"])
        self.now_ms = self.create["now_ms"]
        self.layout = Layout([KafkaSegment(0, self.now_ms, self.now_ms)])

    def apply(self, operation: Operation) -> State:
        """Carry out one operation and say what it did, as the oracle does."""
        outcome: State = {}
        match operation["op"]:
            case "append":
                self._append(operation)
            case "end_transaction":
                self._end_transaction(operation)
            case "roll":
                self.layout.roll(self.now_ms)
            case "clock":
                self.now_ms = operation["now_ms"]
            case "clean":
                outcome["cleaned"] = self._clean(operation.get("max_keys", _KEYS_FOR_ALL))
            case "retain":
                outcome["deleted"] = self._retain()
            case "delete_records":
                self._delete_records(operation["offset"])
            case "alter":
                self.settings |= operation["config"]
            case "checkpoint":
                self.checkpoint = operation["offset"]
            case unknown:
                raise ValueError(f"no such operation: {unknown}")
        self.layout.active.modified_ms = self.now_ms
        return outcome

    def observe(self) -> State:
        assessment = self._assess()
        sections = assessment.sections
        uncommitted = self.producers.undecided | self.producers.aborted
        # Kafka could tell the delay of a log that is not compacted too, but never asks; keptlog has none.
        delay = {"max_compaction_delay_ms": assessment.max_compaction_delay_ms} if self._config.is_compacted else {}
        return delay | {
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.layout.log_end_offset,
            "last_stable_offset": self._last_stable_offset,
            "active_base_offset": self.layout.active.base_offset,
            "checkpoint": self.checkpoint,
            "first_dirty_offset": sections.first_dirty_offset,
            "first_uncleanable_dirty_offset": sections.first_uncleanable_dirty_offset,
            "first_uncleanable_offset": max(sections.first_dirty_offset, sections.first_uncleanable_offset),
            "cleanable_ratio": assessment.cleanable_ratio,
            "segments": [[s.base_offset, s.size_bytes, s.largest_timestamp_ms] for s in self.layout.segments],
            "records": [
                row_of(record)
                for segment in self.layout.segments
                for record in segment.records
                if record.offset not in uncommitted
            ],
            "uncommitted": uncommitted,
        }

    @property
    def _last_stable_offset(self) -> int:
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        if unstable is not None and unstable < self.log_start_offset:
            unstable = self.layout.batch_base_from(self.log_start_offset)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def _config(self) -> TopicConfig:
        return TopicConfig.of(self.settings)

    def _log(self) -> Log:
        """The log as keptlog would see it, if its files were Kafka's segments."""
        segments = tuple(self._segment(index) for index in range(len(self.layout.segments)))
        return Log(
            _LOG,
            self._config,
            segments,
            self.log_start_offset,
            self.layout.log_end_offset,
            self.checkpoint,
            last_stable_offset=self._last_stable_offset,
        )

    def _segment(self, index: int) -> Segment:
        segment = self.layout.segments[index]
        # ADR 9: keptlog measures a lag from the smallest timestamp of a segment, Kafka from the largest one of its
        # first batch; and where that is missing from nothing, keptlog from the largest.
        times = [batch.max_timestamp_ms for batch in segment.batches[:1] if batch.max_timestamp_ms > 0]
        first_timestamp_ms = times[0] if times else LONG_MAX
        return Segment(
            path=f"segment-{segment.base_offset}",
            base_offset=segment.base_offset,
            last_offset=self.layout.last_offset(index),
            first_timestamp_ms=first_timestamp_ms,
            # Kafka counts the timestamp of an emptied batch, and the file's where a segment has none; keptlog counts
            # what is there. It is given what Kafka counts.
            largest_timestamp_ms=segment.largest_timestamp_ms,
            record_count=len(segment.records),
            size_bytes=segment.size_bytes,
            # ADR 6: keptlog expires tombstones without new data. A segment that tells no horizon never is due for it.
            earliest_delete_horizon_ms=None,
        )

    def _assess(self) -> Assessment:
        # ADR 5: keptlog derives the active segment from what was appended, and the clock closes it. Kafka's is given.
        log = self._log()
        return assess(log, self.now_ms, log.segments[-1:])

    def _clean(self, max_keys: int) -> bool:
        assessment = self._assess()
        if self._config.is_compacted and assessment.sections.checkpoint_reset:
            # ADR 1: Kafka writes a reset at once; keptlog's state only moves together with files, and it comes to the
            # same reset each time it looks.
            self.checkpoint = assessment.sections.first_dirty_offset
        step = plan_step(assessment)
        if step is None:
            return False
        assert isinstance(step, Compact), "no script waits until only tombstones are due"
        for transaction in self.producers.decided:
            if transaction.is_forgotten(self.log_start_offset):
                self.layout.show(transaction)
        cleaned = self._carried_out(replace(step, map_capacity=MapCapacity(max_keys)))
        survivors = {record.offset: record for record in cleaned.records}
        self.checkpoint = cleaned.step.end_offset

        def survivor(record: Record) -> Record | None:
            if record.offset >= cleaned.step.end_offset and record.is_tombstone and record.delete_horizon_ms is None:
                # Kafka visits the whole of the last segment, and stamps its tombstones also behind the end of the
                # pass, before older records of their keys are gone. keptlog stamps them when it cleans them.
                return replace(record, delete_horizon_ms=step.bounds.new_delete_horizon_ms)
            return survivors.get(record.offset)

        round_ = Round(
            cleaned.step.end_offset,
            step.end_offset,
            self.log_start_offset,
            self.now_ms,
            step.bounds.new_delete_horizon_ms,
            self.producers.last_data_offsets,
            survivor,
        )
        self.layout.rewrite(round_, step.segment_bytes)
        return True

    def _carried_out(self, step: Compact) -> CleanedLog:
        inputs = [_with_ends_of_batches(segment) for segment in self.layout.segments[: len(step.segments)]]
        cleaned = clean(step, inputs)
        ended = cleaned.step
        assert isinstance(ended, Compact)
        kafkas_end_offset = self._end_in_batch(step.first_dirty_offset, ended.end_offset)
        if kafkas_end_offset == ended.end_offset:
            return cleaned
        whole = replace(step, map_capacity=UNBOUNDED).ended_at(kafkas_end_offset)
        return clean(whole, inputs[: len(whole.segments)])

    def _end_in_batch(self, first_dirty_offset: int, end_offset: int) -> int:
        """Where Kafka ends a pass that keptlog ends here: records without a key go along with their whole batch only.

        ADR 12: keptlog has no batches, and takes along what lies before the record that found the map full.
        """
        end = first_dirty_offset
        for segment in self.layout.segments:
            end = max(end, min(segment.base_offset, end_offset))
            for batch in segment.batches:
                if batch.last_offset < end_offset:
                    end = max(end, batch.last_offset + 1)
                else:
                    mapped = [r.offset + 1 for r in batch.records if r.key is not None and r.offset < end_offset]
                    return max([end, *mapped])
        return end_offset

    def _retain(self) -> int:
        count = self._old_segments()
        if count:
            self.layout.delete_first(count, self.now_ms)
            self.log_start_offset = max(self.log_start_offset, self.layout.segments[0].base_offset)
        return count

    def _old_segments(self) -> int:
        """How many of Kafka's segments go now."""
        log = self._log()
        if self.layout.active.batches:
            # Kafka keeps the active segment when all of it lies below the log start, until time or size take it.
            # On the lake it is a file like the others, and what was deleted goes.
            log = replace(log, log_start_offset=min(log.log_start_offset, log.log_end_offset - 1))
        retention = retention_of(log, self.now_ms, high_watermark=self.high_watermark)
        count = len(retention.old)
        if count == len(self.layout.segments) and not self.layout.active.batches:
            count -= 1  # Kafka never deletes an empty active segment; keptlog has no such file
        return count

    def _append(self, operation: Operation) -> None:
        records = [_record(each) for each in operation["records"]]
        if "base_offset" in operation:
            batches = list(_replicated(operation, records))
            if "segment_base" in operation and self.layout.active.batches:
                self.layout.roll(self.now_ms, operation["segment_base"])
        else:
            batches = [self.layout.numbered(records)]
            if self.settings.get("message.timestamp.type") == "LogAppendTime":
                batches = [batches[0].appended_at(self.now_ms)]
        if "producer" in operation:
            offsets = [range(each.base_offset, each.last_offset + 1) for each in batches]
            is_transactional = not operation.get("idempotent", False)
            transaction = self.producers.append(operation["producer"], offsets, is_transactional=is_transactional)
            batches = [replace(each, transaction=transaction) for each in batches]
        self.layout.append(batches, self._config, self.now_ms)
        self._move_high_watermark(operation)

    def _end_transaction(self, operation: Operation) -> None:
        """keptlog's sources bring in neither markers nor what was aborted; only their bytes lie here, as in Kafka."""
        producer, marker_offset = operation["producer"], self.layout.log_end_offset
        transaction = self.producers.end(producer, marker_offset, commit=operation["commit"])
        self.layout.append([self.layout.marker(self.now_ms, transaction)], self._config, self.now_ms)
        if transaction.is_aborted:
            self.layout.hide(transaction)
        self._move_high_watermark(operation)

    def _move_high_watermark(self, operation: Operation) -> None:
        if operation.get("high_watermark", True):
            self.high_watermark = self.layout.log_end_offset

    def _delete_records(self, offset: int) -> None:
        if offset > self.log_start_offset:  # below it Kafka does nothing, keptlog says so
            self.log_start_offset = log_start_after_deletion(self._log(), offset)


def _with_ends_of_batches(segment: KafkaSegment) -> list[Record]:
    """The segment's records. Where the end of a batch was cleaned away, a record without a key stands in its place.

    In Kafka a mapped batch carries the end of the pass across such a gap, as a mapped segment does; keptlog has no
    batches. It only matters for what is cleaned again after its checkpoint was reset.
    """
    records: list[Record] = []
    for batch in segment.batches:
        records += batch.records
        if not batch.records or batch.records[-1].offset < batch.last_offset:
            records.append(Record(batch.last_offset, None, b"", batch.max_timestamp_ms))
    return records


def _replicated(operation: Operation, records: Sequence[Record]) -> Iterator[Batch]:
    """The batches that came from a leader in one go."""
    base_offset, taken = operation["base_offset"], list[Record]()
    for given, record in zip(operation["records"], records, strict=True):
        if "batch_base" in given and taken:
            yield Batch.of(base_offset, given["previous_last"], taken)
            base_offset, taken = given["batch_base"], []
        taken.append(record)
    yield Batch.of(base_offset, operation["last_offset"], taken)


def _record(given: Operation) -> Record:
    """A record as a script has it: of keys and values each character is a byte."""
    headers = tuple((name, _bytes(value)) for name, value in given.get("headers", []))
    key, value = (_bytes(given[name]) for name in ("key", "value"))
    return Record(given.get("offset", -1), key, value, given["timestamp"], headers=headers)


def row_of(record: Record) -> list[object]:
    """As the oracle writes it."""
    headers = [[name, _text(value)] for name, value in record.headers]
    key, value = _text(record.key), _text(record.value)
    return [record.offset, key, value, record.timestamp_ms, headers, record.delete_horizon_ms]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
