"""Segments, logs and steps in one line, so that a test shows only what it is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from keptlog.log import roll
from keptlog.log.assessment import Trigger
from keptlog.log.config import TopicConfig
from keptlog.log.holds import NO_HOLDS, Holds
from keptlog.log.offset_map import UNBOUNDED, MapCapacity
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.steps import ANY_BYTES, Compact, Expire
from keptlog.log.strategy import Strategy
from keptlog.log.topic_partition import TopicPartition

MIB = 2**20
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000
"""The clock of tests to which only differences matter."""


def segment(
    base: int,
    last: int,
    *,
    size: int = 100,
    time_ms: int = NOW_MS,
    until_ms: int | None = None,
    horizon_ms: int | None = None,
    name: str = "",
) -> Segment:
    """A segment without gaps in its offsets; all records of ``time_ms`` unless ``until_ms`` says when they end."""
    stamped = horizon_ms is not None
    return Segment(
        path=f"{base}-{last}{name}.parquet",
        base_offset=base,
        last_offset=last,
        first_timestamp_ms=time_ms,
        largest_timestamp_ms=time_ms if until_ms is None else until_ms,
        record_count=last - base + 1,
        size_bytes=size,
        tombstone_count=int(stamped),
        stamped_count=int(stamped),
        earliest_delete_horizon_ms=horizon_ms,
    )


def config(**settings: object) -> TopicConfig:
    """A compacted topic's configuration; settings with ``_`` for Kafka's dots, sizes as small as one likes."""
    named = {name.replace("_", "."): str(value) for name, value in settings.items()}
    if "segment.bytes" in named:
        named["internal.segment.bytes"] = named.pop("segment.bytes")
    return TopicConfig.of({"cleanup.policy": "compact"} | named)


def log(
    segments: list[Segment],
    settings: TopicConfig | None = None,
    *,
    name: str = "t-0",
    start: int = 0,
    checkpoint: int | None = None,
    holds: Holds = NO_HOLDS,
) -> Log:
    """A log that ends where its last segment does."""
    end = segments[-1].last_offset + 1 if segments else start
    settings, name_of_log = settings or config(), TopicPartition.parse(name)
    return Log(name_of_log, settings, tuple(segments), start, max(start, end), checkpoint, holds=holds)


def is_rolled_before(run: Sequence[Segment], appended: Segment, settings: TopicConfig) -> bool:
    """Whether Kafka would close ``run``, active under whatever settings it was made with, before it takes a segment."""
    return roll._is_rolled(run[0], total_bytes(run), appended, settings)


@dataclass(frozen=True)
class Clean:
    """What makes a step out of segments; times are ms."""

    first_dirty_offset: int
    end_offset: int
    now_ms: int = 10_000
    delete_retention_ms: int = 1_000
    segment_bytes: int = 2**30
    strategy: Strategy = Strategy()  # noqa: RUF009  # it is frozen
    map_capacity: MapCapacity = UNBOUNDED
    log_start_offset: int = 0
    watermark_retention_ms: int = 2
    watermarks_path: str | None = None
    topic: str = "server.schema.table"
    partition: int = 0
    holds: Holds = NO_HOLDS
    commit_max_bytes: int = ANY_BYTES
    checkpoint: int | None = -1
    """-1 for ``first_dirty_offset``."""

    def step(self, segments: Sequence[Segment]) -> Compact:
        """The clean of these segments."""
        return Compact(
            topic_partition=TopicPartition(self.topic, self.partition),
            trigger=Trigger.REQUESTED,
            segments=tuple(segments),
            first_dirty_offset=self.first_dirty_offset,
            end_offset=self.end_offset,
            checkpoint=self._checkpoint,
            log_start_offset=self.log_start_offset,
            now_ms=self.now_ms,
            delete_retention_ms=self.delete_retention_ms,
            segment_bytes=self.segment_bytes,
            strategy=self.strategy,
            cleanable_ratio=0.5,
            earliest_uncompacted_ms=None,
            map_capacity=self.map_capacity,
            watermark_retention_ms=self.watermark_retention_ms,
            watermarks_path=self.watermarks_path,
            holds=self.holds,
            commit_max_bytes=self.commit_max_bytes,
            leaves_tombstones=self.strategy.has_versions and total_bytes(segments) > self.commit_max_bytes,
        )

    def expiry(self, segments: Sequence[Segment]) -> Expire:
        """The expiry of the tombstones in these segments; all that is clean lies before ``first_dirty_offset``."""
        return Expire(
            topic_partition=TopicPartition(self.topic, self.partition),
            segments=tuple(segments),
            first_dirty_offset=self.first_dirty_offset,
            checkpoint=self._checkpoint,
            log_start_offset=self.log_start_offset,
            now_ms=self.now_ms,
            segment_bytes=self.segment_bytes,
            strategy=self.strategy,
            cleanable_ratio=0.5,
            watermark_retention_ms=self.watermark_retention_ms,
            watermarks_path=self.watermarks_path,
            holds=self.holds,
        )

    @property
    def _checkpoint(self) -> int | None:
        return self.first_dirty_offset if self.checkpoint == -1 else self.checkpoint
