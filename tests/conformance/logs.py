"""The product's two ways to clean a log, behind one interface: the pure rules, and the real table with the kernels.

RuleLog    keptlog.log.clean on records in memory
TableLog   an Iceberg table on a local disk, the engine's kernels in this process, a commit for each pass
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from keptlog.engine.engine import Engine
from keptlog.log.clean import clean, latest_orders
from keptlog.log.config import TopicConfig
from keptlog.log.offset_map import UNBOUNDED, MapCapacity
from keptlog.log.record import Record
from keptlog.log.result import Counts, RewriteResult, verify
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import CleanStep, Compact
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.watermark import Watermark
from keptlog.storage.files import Files
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.state import first_dirty_offset, log_end_offset
from tests.building import Clean
from tests.in_process import in_process_engine
from tests.table.stores import new_id, staged, store_at

TOPIC = "t"
_ACTIVE = Record(2**40, b"active", b"", timestamp_ms=253_000_000_000_000)


@dataclass(frozen=True)
class Pass:
    """One pass as a case asks for it: the range that it cleans, the clock, and how many keys it may map."""

    first_dirty_offset: int
    end_offset: int
    now_ms: int
    max_keys: int | None = None

    def step(self, log: Log) -> CleanStep:
        """The step of this pass; with nothing dirty it is the expiry of tombstones."""
        is_expiry = self.first_dirty_offset >= self.end_offset
        below = tuple(s for s in log.segments if s.base_offset < max(self.end_offset, self.first_dirty_offset))
        asked = Clean(
            self.first_dirty_offset,
            self.end_offset,
            self.now_ms,
            log.config.delete_retention_ms,
            log.config.segment_bytes,
            log.config.strategy,
            UNBOUNDED if self.max_keys is None else MapCapacity(self.max_keys),
            log.log_start_offset,
            log.config.keptlog_watermark_retention_ms,
            topic=log.topic_partition.topic,
            partition=log.topic_partition.partition,
            checkpoint=log.checkpoint,
        )
        if is_expiry:
            return asked.expiry([segment for segment in below if segment.has_expired_tombstone(self.now_ms)])
        return asked.step(below)


@dataclass(frozen=True)
class PassResult:
    """What a pass did: where it ended, and the records it judged, by verdict."""

    end_offset: int
    counts: Counts
    map_keys: int = 0


class CaseLog(Protocol):
    """A log that a case appends to and cleans."""

    def append(self, records: Sequence[Record]) -> None:
        """Take records with the offsets that they have, as one segment."""

    def clean(self, asked: Pass) -> PassResult: ...

    def records(self) -> list[Record]: ...


@dataclass
class RuleLog:
    """The pure rules."""

    config: TopicConfig
    segments: list[list[Record]] = field(default_factory=list)
    watermarks: tuple[Watermark, ...] = ()

    def append(self, records: Sequence[Record]) -> None:
        self.segments.append(list(records))

    def clean(self, asked: Pass) -> PassResult:
        step, judged = self._step(asked)
        if not judged:
            return PassResult(step.end_offset, Counts())
        cleaned = clean(step, judged, self.watermarks)
        self.watermarks = cleaned.watermarks
        inputs = {segment.path for segment in cleaned.step.segments}
        others = [each for each in self.segments if _described(each).path not in inputs]
        kept = [list(cleaned.records)] if cleaned.records else []
        self.segments = sorted(kept + others, key=lambda each: each[0].offset)
        return PassResult(cleaned.step.end_offset, cleaned.counts, cleaned.map_keys)

    def records(self) -> list[Record]:
        return [record for segment in self.segments for record in segment]

    def latest(self, asked: Pass) -> tuple[int, dict[bytes, int]]:
        """Where the mapping of a pass ends, and of each key that it maps the offset of its latest record."""
        step, judged = self._step(asked)
        ended = clean(step, judged).step
        if not isinstance(ended, Compact):
            return ended.end_offset, {}
        dirty = [each for each in self.records() if asked.first_dirty_offset <= each.offset < ended.end_offset]
        orders = latest_orders(ended, self.records(), dirty, self.watermarks)
        return ended.end_offset, {key: order[-1] for key, order in orders.items()}

    def _step(self, asked: Pass) -> tuple[CleanStep, list[list[Record]]]:
        described = tuple(map(_described, self.segments))
        end_offset = self.segments[-1][-1].offset + 1 if self.segments else 0
        log = Log(TopicPartition(TOPIC, 0), self.config, described, 0, end_offset)
        step = asked.step(log)
        inputs = {segment.path for segment in step.segments}
        return step, [each for each in self.segments if _described(each).path in inputs]


def _described(records: Sequence[Record]) -> Segment:
    horizons = [record.delete_horizon_ms for record in records if record.delete_horizon_ms is not None]
    times = [record.timestamp_ms for record in records]
    return Segment(
        path=f"{records[0].offset}",
        base_offset=records[0].offset,
        last_offset=records[-1].offset,
        first_timestamp_ms=min(times),
        largest_timestamp_ms=max(times),
        record_count=len(records),
        size_bytes=1,
        tombstone_count=sum(record.is_tombstone for record in records),
        stamped_count=len(horizons),
        earliest_delete_horizon_ms=min(horizons, default=None),
    )


@dataclass
class TableLog:
    """The real table. Records come with the offsets that they have, so they are landed without an append.

    A case says which segments are closed. Here that is derived, so one record far ahead, in offsets and in time, stands
    for Kafka's active segment: it closes all that lies before it.
    """

    home: Path
    settings: dict[str, str]
    engine_over: Callable[[Files], Engine] = in_process_engine

    def __post_init__(self) -> None:
        self.store = store_at(self.home)
        self.store.create_topic(TOPIC, 1, self.settings)
        self.append([_ACTIVE])

    def append(self, records: Sequence[Record]) -> None:
        self.land([records])

    def land(self, segments: Iterable[Sequence[Record]]) -> None:
        """Take several segments in one commit."""
        files = [data_file_of(0, each) for records in segments for each in staged(self.store, TOPIC, 0, records)]
        summary, ends = {COMMIT_ID: new_id()}, {log_end_offset(0): str(_ACTIVE.offset + 1)}
        FileChange(summary, ends, files).land(self.store.load_table(TOPIC))

    def step(self, asked: Pass) -> CleanStep:
        """Set the checkpoint to where the case says that the dirty section begins, and plan the pass."""
        (log,) = self.store.logs(TOPIC)
        if log.checkpoint != asked.first_dirty_offset:
            transaction = self.store.load_table(TOPIC).transaction()
            transaction.set_properties({first_dirty_offset(0): str(asked.first_dirty_offset)})
            transaction.commit_transaction()
            log = replace(log, checkpoint=asked.first_dirty_offset)
        return asked.step(log)

    def clean(self, asked: Pass) -> PassResult:
        step = self.step(asked)
        if not step.segments:
            return PassResult(step.end_offset, Counts())
        outcome = self.rewrite(step)
        self.commit(outcome)
        return PassResult(outcome.step.end_offset, outcome.counts, outcome.map_keys)

    def rewrite(self, step: CleanStep) -> RewriteResult:
        """Stage the step's outcome with the real kernels."""
        engine = self.engine_over(self.store.files)
        (outcome,) = engine.rewrite([step], {TOPIC: self.store.data_location(TOPIC)}, new_id())
        verify(outcome)
        return outcome

    def commit(self, outcome: RewriteResult) -> None:
        """Make it live, if there is anything to commit."""
        if not outcome.is_empty:
            self.store.swap(TOPIC, [outcome], new_id())

    def records(self) -> list[Record]:
        return [record for _, record in self.store.read(TOPIC, 0) if record.offset < _ACTIVE.offset]
