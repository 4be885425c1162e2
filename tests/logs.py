"""One log, twice: the specification and the real thing, behind one interface, so that a test can put both through the
same history and compare.

    ReferenceTwin    keptlog.log.reference, plain Python
    RealTwin         a partition of a table: SQLite catalog, Parquet files, the engine's kernels
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from keptlog.engine.engine import Engine
from keptlog.home import new_id
from keptlog.log.config import TopicConfig
from keptlog.log.plan import CleanPlan
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import ReferenceConfig, ReferenceLog
from keptlog.log.sections import sections_of
from keptlog.log.segment import Log
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.passes.clean import Cleaner, Pass
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.table.stores import staged


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the sections of a log begin and end."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    log_end_offset: int


class Twin(Protocol):
    """A log with one partition. ``clean`` is by request, so that neither sizes nor ratios matter."""

    def create(self, settings: Mapping[str, str]) -> None: ...

    def alter(self, settings: Mapping[str, str]) -> None: ...

    def append(self, records: Sequence[NewRecord], now_ms: int) -> None: ...

    def clean(self, now_ms: int) -> None:
        """Clean what may be cleaned; if that is nothing, remove the tombstones whose horizon has passed."""

    def expire(self, now_ms: int) -> None:
        """Only remove the tombstones whose horizon has passed."""

    def records(self) -> list[Record]: ...

    def positions(self, now_ms: int) -> Positions: ...


@dataclass
class ReferenceTwin:
    """The specification."""

    log: ReferenceLog = field(default_factory=ReferenceLog)
    settings: dict[str, str] = field(default_factory=dict)

    def create(self, settings: Mapping[str, str]) -> None:
        self.log = ReferenceLog()
        self.settings = {}
        self.alter(settings)

    def alter(self, settings: Mapping[str, str]) -> None:
        self.settings |= settings
        config = TopicConfig.of(self.settings)
        self.log.config = ReferenceConfig(
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            max_compaction_lag_ms=config.max_compaction_lag_ms,
            segment_ms=config.segment_ms,
            delete_retention_ms=config.delete_retention_ms,
            strategy=config.compaction_strategy,
            header=config.compaction_strategy_header,
            watermark_retention_ms=config.keptlog_watermark_retention_ms,
        )

    def append(self, records: Sequence[NewRecord], now_ms: int) -> None:  # noqa: ARG002  # one interface
        self.log.append([Record(0, new.key, new.value, new.timestamp_ms, headers=new.headers) for new in records])

    def clean(self, now_ms: int) -> None:
        if not self.log.clean(now_ms):
            self.log.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        self.log.expire(now_ms)

    def records(self) -> list[Record]:
        return self.log.records

    def positions(self, now_ms: int) -> Positions:
        count = self.log.cleanable_batches(now_ms)
        waiting = self.log.batches[count:]
        first_uncleanable_offset = waiting[0][0].offset if waiting else self.log.log_end_offset
        return Positions(self.log.first_dirty_offset, first_uncleanable_offset, self.log.log_end_offset)


@dataclass
class RealTwin:
    """One partition of a topic of a real store, cleaned by a real engine."""

    store: LogStore
    engine: Engine
    topic: str = "t"
    partition: int = 0

    @property
    def cleaner(self) -> Cleaner:
        return Cleaner(self.store, self.engine)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def create(self, settings: Mapping[str, str]) -> None:
        self.store.create_topic(self.topic, self.partition + 1, settings)

    def alter(self, settings: Mapping[str, str]) -> None:
        self.store.alter_topic(self.topic, settings)

    def append(self, records: Sequence[NewRecord], now_ms: int) -> None:
        here = [replace(record, partition=self.partition) for record in records]
        self.store.append(self.topic, here, new_id(), now_ms)

    def ingest(self, records: Sequence[Record], from_offset: int, end_offset: int) -> None:
        """What a source has in [from, end), as one segment."""
        position = self.store.source_of(self.topic).positions[self.partition]
        segments = tuple(staged(self.store, self.topic, self.partition, records))
        arrived = Arrival(OffsetRange(self.partition, position, from_offset, end_offset), segments)
        partitions = len(self.store.logs(self.topic))
        self.store.ingest(self.topic, [arrived], SourceIdentity("there"), partitions, new_id())

    def clean(self, now_ms: int) -> None:
        plan = self.cleaner.plan([self.name], now_ms=now_ms, requested=True)
        _require_committed(carry_out(self.cleaner, plan))

    def expire(self, now_ms: int) -> None:
        plan = self.cleaner.plan([self.name], now_ms=now_ms)
        _require_committed(carry_out(self.cleaner, plan, kinds=[Expire]))

    def records(self) -> list[Record]:
        return [record for _, record in self.store.read(self.topic, self.partition)]

    @property
    def log(self) -> Log:
        return self.store.logs(self.topic)[self.partition]

    def positions(self, now_ms: int) -> Positions:
        log = self.log
        sections = sections_of(log, now_ms)
        return Positions(sections.first_dirty_offset, sections.first_uncleanable_offset, log.log_end_offset)


def open_store(home: Path) -> LogStore:
    """The store of a home folder; opened again, it is what another process would see."""
    return LogStore(open_catalog(home), {}, sleep=time.sleep, new_id=new_id)


def carry_out(
    cleaner: Cleaner,
    plan: CleanPlan,
    run_id: str | None = None,
    kinds: Iterable[type[CleanStep]] = (Compact, Expire),
) -> Pass:
    """The stages of a pass after its plan, or after those of its steps that are of these kinds."""
    return cleaner.commit(cleaner.stage(Pass(run_id or new_id(), plan), kinds))


def _require_committed(result: Pass) -> None:
    for error in result.failed.values():
        raise error
