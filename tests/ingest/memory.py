"""The smallest source: topics in memory, whose every offset has a record or had one. A new source has to be no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from keptlog.engine.ingest_tasks import Skip
from keptlog.errors import KeptlogError, LogCorrupt, StalePlan
from keptlog.ingest.source import Survey, TopicSurvey
from keptlog.log.record import Record
from keptlog.log.source import IngestPlan, SourceIdentity, SourceLog, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.schema import to_arrow
from tests.ingest.directories import COMPACT, some_records


@dataclass(frozen=True)
class MemoryPart:
    """Some of the offsets of one log."""

    topic_partition: TopicPartition
    from_offset: int
    end_offset: int
    is_broken: bool = False
    gone: Collection[int] = ()

    @property
    def weight(self) -> int:
        return self.end_offset - self.from_offset

    @property
    def records(self) -> list[Record]:
        return [each for each in some_records(self.from_offset, self.weight) if each.offset not in self.gone]

    def read(self, skip: Skip) -> Iterator[pa.Table]:
        skip(f"something before {self.end_offset}")
        yield to_arrow(self.topic_partition.partition, self.records[: self.weight // 2])
        if self.is_broken:
            raise LogCorrupt(f"{self.topic_partition} breaks off")
        yield to_arrow(self.topic_partition.partition, self.records[self.weight // 2 :])


@dataclass(frozen=True)
class MemorySource:
    """Topics with the ends of their logs, which begin at 0."""

    ends: Mapping[str, Sequence[int]]
    part_offsets: int = 1000
    broken_at: Mapping[str, int] = field(default_factory=dict)
    """Topic to the offset of partition 0 that can't be read."""
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    others: Collection[str] = ()
    """Topics that are others by the time they were read."""
    gone: Collection[int] = ()
    """Offsets whose records a cleaner has removed, in all partitions."""
    kept_ms: int | None = None
    """The delete.retention.ms of all topics; null for none, because they are not compacted."""
    is_compacted: bool | None = None
    """Whether they say that they are now; null if they say nothing."""

    @property
    def is_copy(self) -> bool:
        return False

    @property
    def topics(self) -> Collection[str]:
        return self.ends.keys()

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        return Survey(
            tuple(
                TopicSurvey(topic, _topic(topic, self.ends[topic]), self.configs.get(topic, COMPACT))
                for topic in stored
            ),
            {},
        )

    def ends_of_epochs(
        self, _plans: Sequence[IngestPlan]
    ) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, KeptlogError]]:
        """Nobody leads there."""
        return {}, {}

    def cut(self, plans: Sequence[IngestPlan], _cores: int) -> list[list[MemoryPart]]:
        return [
            [
                self._part(TopicPartition(plan.topic, each.partition), start, each.end_offset)
                for each in plan.ranges
                for start in range(each.from_offset, each.end_offset, self.part_offsets)
            ]
            for plan in plans
        ]

    def tombstones_kept_ms(self, plan: IngestPlan, partitions: Collection[int]) -> dict[int, int | None]:
        were_compacted = {each.partition for each in plan.ranges if each.was_compacted}
        asked = set(partitions) & were_compacted if self.is_compacted is False else partitions
        return {} if self.kept_ms is None else dict.fromkeys(asked, self.kept_ms)

    def confirm(self, plan: IngestPlan) -> bool | None:
        if plan.topic in self.others:
            raise StalePlan(f"{plan.topic} is another topic now")
        return self.is_compacted

    def _part(self, name: TopicPartition, start: int, range_end: int) -> MemoryPart:
        end = min(start + self.part_offsets, range_end)
        is_broken = name.partition == 0 and start <= self.broken_at.get(name.topic, -1) < end
        return MemoryPart(name, start, end, is_broken, self.gone)


def _topic(topic: str, ends: Sequence[int]) -> SourceTopic:
    identity = SourceIdentity(topic, f"id-of-{topic}")
    return SourceTopic(identity, tuple(SourceLog(partition, 0, end) for partition, end in enumerate(ends)))
