"""A source of a simulated world: logs that grow, with gaps between their offsets, as transactions leave them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from keptlog.engine.ingest_tasks import Skip
from keptlog.errors import KeptlogError
from keptlog.ingest.source import Survey, TopicSurvey
from keptlog.log.record import Record
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity, SourceLog, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.schema import to_arrow


@dataclass
class SourceLogs:
    """What a topic has there, by partition."""

    records: list[list[Record]]
    ends: list[int]


@dataclass(frozen=True)
class SimulatedPart:
    """Some offsets of one log, with what is there."""

    topic_partition: TopicPartition
    from_offset: int
    end_offset: int
    records: tuple[Record, ...]

    @property
    def weight(self) -> int:
        return self.end_offset - self.from_offset

    def read(self, _skip: Skip) -> Iterator[pa.Table]:
        if self.records:
            yield to_arrow(self.topic_partition.partition, self.records)


@dataclass(frozen=True)
class SimulatedSource:
    """One topic there, for one topic here."""

    topic: str
    there: SourceLogs
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_copy(self) -> bool:
        return False

    @property
    def topics(self) -> Collection[str]:
        return [self.topic]

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        logs = tuple(SourceLog(partition, 0, end) for partition, end in enumerate(self.there.ends))
        topic = SourceTopic(SourceIdentity(self.topic, f"id-of-{self.topic}"), logs)
        return Survey(tuple(TopicSurvey(name, topic, self.config) for name in stored), {})

    def ends_of_epochs(
        self, _plans: Sequence[IngestPlan]
    ) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, KeptlogError]]:
        """Nobody leads there."""
        return {}, {}

    def cut(self, plans: Sequence[IngestPlan], _cores: int) -> list[list[SimulatedPart]]:
        return [[part for each in plan.ranges for part in self._parts(plan.topic, each)] for plan in plans]

    def _parts(self, topic: str, each: OffsetRange) -> Iterator[SimulatedPart]:
        partition, start, end = each.partition, each.from_offset, each.end_offset
        middle = (start + end) // 2
        for low, high in ((start, middle), (middle, end)):
            if low < high:
                records = tuple(r for r in self.there.records[partition] if low <= r.offset < high)
                yield SimulatedPart(TopicPartition(topic, partition), low, high, records)

    def tombstones_kept_ms(self, _plan: IngestPlan, _partitions: Collection[int]) -> dict[int, int | None]:
        """Nothing is ever cleaned there."""
        return {}

    def confirm(self, plan: IngestPlan) -> None:
        """Nothing changes under an ingest."""
