"""One topic as the specification sees it, and what each kind of commit makes of it.

A run says what it is about to do (``Intent``) before it does it; the commit that lands names its run. Then the book is
moved by the specification, and the ledger compares it with what was stored.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import override

from keptlog.log.config import TopicConfig
from keptlog.log.plan import CleanPlan
from keptlog.log.record import Record
from keptlog.log.reference import ReferenceConfig, ReferenceLog
from keptlog.log.steps import CleanStep, Compact
from keptlog.storage.schema import from_arrow
from keptlog.table.metadata.state import LogState


@dataclass
class Appending:
    """What a run appends, by partition; records without offsets."""

    topic: str
    batch: Mapping[int, Sequence[Record]]
    begun_ms: int


@dataclass
class Cleaning:
    """What a run cleans."""

    topic: str
    plan: CleanPlan


@dataclass
class Ingesting:
    """What a run reads from: the source's log of each partition."""

    topic: str
    there: Sequence[Sequence[Record]]


@dataclass
class Deleting:
    """What an operator deletes: all below an offset."""

    topic: str
    partition: int
    before_offset: int


@dataclass
class Retaining:
    """A retention at a time."""

    topic: str
    now_ms: int


@dataclass
class Erasing:
    """A request to erase keys. ``ends`` are its bounds, by partition, once it has landed."""

    topic: str
    keys: frozenset[bytes]
    ends: dict[int, int] = field(default_factory=dict)


@dataclass
class Standing:
    """A commit after which every log is as it was: a purge's fence, an alteration, a repair, news of an erasure."""

    topic: str


Intent = Standing | Appending | Cleaning | Ingesting | Deleting | Retaining | Erasing


Marks = Mapping[bytes, int]
"""Until when each deleted key is remembered, ms."""


class SpecifiedLog(ReferenceLog):
    """The specification, told where a clean ends: what may be cleaned is judged by ``tests/model``."""

    told: int = 0

    @override
    def cleanable_batches(self, now_ms: int) -> int:
        return self.told

    def forget(self, before: Marks, after: Marks, now_ms: int) -> None:
        """What a purge leaves of what is remembered of deleted keys."""
        assert after.items() <= before.items(), f"{after} is remembered, it was {before}"
        early = {key: ends_ms for key, ends_ms in before.items() if key not in after and now_ms < ends_ms}
        assert not early, f"forgotten before its time: {early}, it is {now_ms}"
        self.remembered = [record for record in self.remembered if record.key in after]


@dataclass
class Book:
    """One topic, from its creation on."""

    name: str
    logs: list[SpecifiedLog]
    starts: list[int]
    configs: list[TopicConfig]
    landed: dict[str, int] = field(default_factory=dict)
    """Run and operation to the snapshot that it made."""
    landed_by: dict[str, str] = field(default_factory=dict)
    """Run to the actor whose call landed it: two may send the same run."""
    ever_live: dict[str, None] = field(default_factory=dict)
    """Every segment that was ever live."""
    files: list[dict[str, tuple[int, ...]]] = field(default_factory=list)
    """Of the current snapshot, by partition: path to offsets."""
    values: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    """The values of each of them."""
    marks: dict[int, tuple[str | None, Marks]] = field(default_factory=dict)
    """By partition, the file of watermarks and what is in it."""
    seen: dict[int, tuple[tuple[Record, ...], ...]] = field(default_factory=dict)
    """By snapshot: what a reader of it gets, by partition."""
    receipts: dict[str, None] = field(default_factory=dict)
    """Every segment whose deletion has a receipt."""
    location: str = ""
    damaged: dict[str, str] = field(default_factory=dict)
    """Files that something else than keptlog has broken, and how."""
    recorded_id: int | None = None
    """The snapshot that was judged last."""
    is_moved: bool = False
    """Whether another program has made another snapshot the current one."""
    was_moved: bool = False
    is_gone: bool = False
    asked: dict[str, Erasing] = field(default_factory=dict)
    """Erasures by id, whatever became of them."""
    verified: dict[str, None] = field(default_factory=dict)
    """The ids of those that are told as verified."""

    @property
    def config(self) -> TopicConfig:
        return self.configs[-1]

    def has_landed(self, run_id: str) -> bool:
        return any(key.startswith(f"{run_id}/") for key in self.landed)

    def visible(self, partition: int) -> list[Record]:
        """What a reader must get."""
        start = self.starts[partition]
        return [record for record in self.logs[partition].records if record.offset >= start]


Range = tuple[int, int]
"""The first and the last offset of the files that a commit took away."""


def apply(book: Book, intent: Intent, run_id: str, changed: Sequence[Range | None], states: Sequence[LogState]) -> None:
    """What a commit makes of the logs; ``changed`` is null for those partitions of which it took no file."""
    match intent:
        case Appending():
            assert not book.has_landed(run_id), f"run {run_id} is appended twice"
            for partition, records in intent.batch.items():
                book.logs[partition].append(records)
        case Ingesting():
            _ingest(book, intent, states)
        case Cleaning():
            for step in intent.plan.steps:
                name = step.topic_partition
                taken = changed[name.partition]
                if name.topic == book.name and taken:
                    _clean(book, step, taken, states[name.partition])
        case Deleting():
            _begin_at(book, intent.partition, intent.before_offset)
        case Retaining():
            _retain(book, intent, states)


def erase(book: Book, intent: Erasing, operation: str, changed: Sequence[bool], new: Sequence[list[Record]]) -> None:
    """What the commits of an erasure make of the logs; ``new`` are the records behind their ends, by partition."""
    for partition, (log, records) in enumerate(zip(book.logs, new, strict=True)):
        keys = [record.key for record in records]
        assert all(record.is_tombstone and record.key in intent.keys for record in records), f"{records} is appended"
        assert len(set(keys)) == len(keys), f"two tombstones of a key: {records}"
        if records:
            log.append(records)
        if operation == "drop" and changed[partition]:
            log.drop(dict.fromkeys(intent.keys, intent.ends[partition]))
    if operation == "append":
        told = {record.key for records in new for record in records}
        assert told == intent.keys, f"keys without a tombstone: {sorted(intent.keys - told)}"
    if operation in {"append", "erase"}:
        assert not intent.ends, "one request landed twice"
        intent.ends = {partition: log.log_end_offset for partition, log in enumerate(book.logs)}


def _ingest(book: Book, intent: Ingesting, states: Sequence[LogState]) -> None:
    for log, there, state in zip(book.logs, intent.there, states, strict=True):
        end_offset = state.log_end_offset
        if end_offset > log.log_end_offset:
            new = [record for record in there if log.log_end_offset <= record.offset < end_offset]
            log.ingest(new, end_offset)


def _clean(book: Book, step: CleanStep, taken: Range, state: LogState) -> None:
    log, strategy = book.logs[step.topic_partition.partition], step.strategy
    log.config = ReferenceConfig(
        delete_retention_ms=step.delete_retention_ms if isinstance(step, Compact) else 0,
        strategy=str(strategy.kind),
        header=strategy.header,
        watermark_retention_ms=step.watermark_retention_ms,
    )
    if not isinstance(step, Compact):
        log.expire(step.now_ms, step.segments[-1].last_offset)
        return
    retentions = {config.delete_retention_ms for config in book.configs}
    assert step.delete_retention_ms in retentions, f"{step.topic_partition}: nobody set {step.delete_retention_ms} ms"
    _split(log, step.end_offset)
    log.told = sum(batch[-1].offset < step.end_offset for batch in log.batches)
    lag_ms = book.config.min_compaction_lag_ms
    for batch in log.batches[: log.told]:
        newest_ms = max(record.timestamp_ms for record in batch)
        assert lag_ms == 0 or step.now_ms - newest_ms >= lag_ms, f"{step.topic_partition}: too young to be cleaned"
    is_last = state.checkpoint == step.end_offset
    assert is_last or len(step.legs) > 1, f"{step.topic_partition}: cleaned, the checkpoint stays {state.checkpoint}"
    expires_from = None if step.leaves_tombstones else 0 if len(step.legs) == 1 else taken[0]
    if is_last:
        log.clean(step.now_ms, expires_from)
        log.first_dirty_offset = step.end_offset
    else:
        log.clean_up_to(taken[1], step.now_ms, expires_from)


def _split(log: SpecifiedLog, end_offset: int) -> None:
    """A batch that became several segments may be cleaned in part."""
    parts = [
        [record for record in batch if (record.offset < end_offset) is is_first]
        for batch in log.batches
        for is_first in (True, False)
    ]
    log.batches = [part for part in parts if part]


def _begin_at(book: Book, partition: int, start: int) -> None:
    log = book.logs[partition]
    log.clean_records = [record for record in log.clean_records if record.offset >= start]
    kept = [[record for record in batch if record.offset >= start] for batch in log.batches]
    log.batches = [batch for batch in kept if batch]
    log.first_dirty_offset = max(log.first_dirty_offset, start)
    book.starts[partition] = max(book.starts[partition], start)


def _retain(book: Book, intent: Retaining, states: Sequence[LogState]) -> None:
    for partition, state in enumerate(states):
        gone = [record for record in book.visible(partition) if record.offset < state.log_start_offset]
        if gone:
            assert "delete" in book.config.cleanup_policy, f"{book.name}-{partition}: retention without the policy"
        for record in gone:
            age_ms = intent.now_ms - record.timestamp_ms
            assert age_ms > book.config.retention_ms, f"{book.name}-{partition}: {record} is not old"
        _begin_at(book, partition, max(state.log_start_offset, book.starts[partition]))


@lru_cache(maxsize=4096)
def decoded(content: bytes) -> tuple[Record, ...]:
    """The records of a segment's bytes."""
    table = pq.read_table(io.BytesIO(content), use_threads=False, partitioning=None)
    return tuple(from_arrow(table.to_batches()))


def difference(expected: Sequence[Record], found: Sequence[Record]) -> str:
    """What lacks, and what is too much, in one line."""
    lacks = [_told(record) for record in expected if record not in found]
    extra = [_told(record) for record in found if record not in expected]
    return f"lacks {lacks[:4]} and has {extra[:4]} (of {len(expected)}, found {len(found)})"


def _told(record: Record) -> str:
    horizon = "" if record.delete_horizon_ms is None else f" until {record.delete_horizon_ms}"
    return f"{record.offset}: {record.key!r}={record.value!r} at {record.timestamp_ms}{horizon}"


@lru_cache(maxsize=256)
def decoded_marks(content: bytes) -> Marks:
    """The content of a file of watermarks."""
    rows = pa.ipc.open_file(pa.BufferReader(content)).read_all().to_pylist()
    return {row["key"]: row["expires_ms"] for row in rows}
