"""Segments and logs in one line, so that a test shows only what it is about."""

from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
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
) -> Log:
    """A log that ends where its last segment does."""
    end = segments[-1].last_offset + 1 if segments else start
    return Log(TopicPartition.parse(name), settings or config(), tuple(segments), start, max(start, end), checkpoint)
