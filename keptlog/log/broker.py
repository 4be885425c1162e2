"""What governs the cleaner itself: Kafka's broker settings, with Kafka's names, defaults and ranges (Kafka 4.3).

A broker's settings are of two kinds. Those that give topics their defaults (``log.retention.ms`` …) belong to
``config``, which resolves them for each topic. The others, ``log.cleaner.threads`` and its like, are here. Names that
mean something only inside of a broker are refused with the reason, never accepted and ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from keptlog.errors import InvalidConfig
from keptlog.log.config import SETTINGS, TopicConfig
from keptlog.log.holder import PURGE_INTERVAL_MS
from keptlog.log.offset_map import MapCapacity, MapOverflow, keys_in, slot_bytes_for, slots_in
from keptlog.log.setting import Origin, Resolved, Setting, Value, unknown_name
from keptlog.log.strategy import Strategy

CLEANER_ENABLED = "log.cleaner.enable=true is in the broker settings"
CLEANER_DISABLED = "log.cleaner.enable=false in the broker settings: this machine cleans and retains no compacted log"
SWITCH_CLEANER_ON = "take log.cleaner.enable=false out of the broker settings"

PURGE_INTERVAL = "keptlog.purge.interval.ms"
COMMIT_MAX_BYTES = 100 * 2**30
"""As many as Iceberg rewrites in one file group (``max-file-group-size-bytes``)."""
HISTORY_RETENTION_MS = 90 * 24 * 3_600_000
_INT_MAX = 2**31 - 1
_LEAST_MAP_BYTES = 2**20

BROKER_SETTINGS: tuple[Setting, ...] = (
    Setting("log.cleaner.enable", default=True, doc="false stops all cleaning, and retention of compacted topics too"),
    Setting("log.cleaner.threads", 1, "how many cleans run at once", minimum=1, maximum=_INT_MAX),
    Setting(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        "bytes for the offset maps of all cleaner threads together; above 1 MiB for each",
        minimum=0,
    ),
    Setting("log.cleaner.io.buffer.load.factor", 0.9, "how full an offset map may get", minimum=0, maximum=1),
    Setting(
        "log.cleaner.io.buffer.size",
        524_288,
        "bytes that all cleaner threads together hold on their way from segment to segment",
        minimum=0,
        maximum=_INT_MAX,
    ),
    Setting(
        "log.cleaner.io.max.bytes.per.second",
        sys.float_info.max,
        "how fast all cleaner threads together read and write",
        minimum=0,
    ),
    Setting("log.cleaner.backoff.ms", 15_000, "how long a log that failed is left alone at first", minimum=0),
    Setting("log.retention.check.interval.ms", 300_000, "how often retention is checked", minimum=1),
    Setting(
        "producer.id.expiration.ms",
        86_400_000,
        "how long the run id of a commit is remembered after a purge expired its snapshot",
        minimum=1,
        maximum=_INT_MAX,
    ),
    Setting(
        "keptlog.offset.map.overflow",
        str(MapOverflow.STOP),
        "beyond the offset map: stop ends the pass where the map is full, as Kafka does; shuffle maps all keys on disk",
        choices=tuple(MapOverflow),
    ),
    Setting(
        "keptlog.cleaner.commit.max.bytes",
        COMMIT_MAX_BYTES,
        "bytes of segments that a clean reads for one commit at most: a larger log is cleaned in several",
        minimum=1,
    ),
    Setting(
        "keptlog.cleaner.backoff.max.ms",
        3_600_000,
        "the longest that a log which fails again and again is left alone",
        minimum=0,
    ),
    Setting(
        "keptlog.clock.max.jump.ms",
        365 * 24 * 3_600_000,
        "how long after the newest commit of all topics a clock is still believed that would have something deleted",
        minimum=0,
    ),
    Setting(
        "keptlog.history.retention.ms",
        HISTORY_RETENTION_MS,
        "how long it is remembered what each commit to a topic did (keptlog history)",
        minimum=0,
    ),
    Setting(
        PURGE_INTERVAL,
        PURGE_INTERVAL_MS,
        "within what time a purge comes: what may be deleted is gone by then, or it is told what holds it",
        minimum=0,
    ),
)

BROKER_NOT_APPLICABLE: Mapping[str, str] = {
    "compression.gzip.level": "segments are Parquet files, compressed with zstd",
    "compression.lz4.level": "segments are Parquet files, compressed with zstd",
    "compression.type": "segments are Parquet files, compressed with zstd",
    "compression.zstd.level": "segments are Parquet files, compressed with zstd",
    "log.dir": "topics live in the catalog",
    "log.dir.failure.timeout.ms": "topics live in the catalog",
    "log.dirs": "topics live in the catalog",
    "log.flush.interval.messages": "every append is durable before it is visible",
    "log.flush.interval.ms": "every append is durable before it is visible",
    "log.flush.offset.checkpoint.interval.ms": "every append is durable before it is visible",
    "log.flush.scheduler.interval.ms": "every append is durable before it is visible",
    "log.flush.start.offset.checkpoint.interval.ms": "every append is durable before it is visible",
    "log.index.interval.bytes": "Parquet's own statistics take the place of Kafka's indexes",
    "log.index.size.max.bytes": "Parquet's own statistics take the place of Kafka's indexes",
    "log.initial.task.delay.ms": "a scheduler says when passes run",
    "log.local.retention.bytes": "all storage is remote here",
    "log.local.retention.ms": "all storage is remote here",
    "log.preallocate": "files are written once and never grow",
    "log.roll.jitter.hours": "closing a segment costs nothing here, so there is no storm to spread",
    "log.roll.jitter.ms": "closing a segment costs nothing here, so there is no storm to spread",
    "min.insync.replicas": "the storage replicates, not keptlog",
    "producer.id.expiration.check.interval.ms": "a scheduler says when passes run",
    "remote.log.storage.system.enable": "all storage is remote here",
    "unclean.leader.election.enable": "there are no leaders here",
}
"""Kafka's broker settings around the log that have no meaning on a lake, each with the reason."""

_BY_NAME = {setting.name: setting for setting in BROKER_SETTINGS}
_OF_TOPICS = {synonym.name for setting in SETTINGS for synonym in setting.broker}


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The broker's own settings, resolved and checked. Fields carry Kafka's names; times are ms, sizes bytes."""

    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_buffer_size: int = 524_288
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    log_cleaner_backoff_ms: int = 15_000
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    keptlog_offset_map_overflow: str = MapOverflow.STOP
    keptlog_cleaner_commit_max_bytes: int = COMMIT_MAX_BYTES
    keptlog_cleaner_backoff_max_ms: int = 3_600_000
    keptlog_clock_max_jump_ms: int = 365 * 24 * 3_600_000
    keptlog_history_retention_ms: int = HISTORY_RETENTION_MS
    keptlog_purge_interval_ms: int = PURGE_INTERVAL_MS
    resolved: tuple[Resolved, ...] = field(default=(), compare=False, repr=False)
    """Every setting of the broker's own with its origin."""

    @classmethod
    def of(cls, settings: Mapping[str, str] | None = None) -> BrokerConfig:
        """Check all settings of a broker, those that topics inherit too, and resolve its own.

        Raises:
            InvalidConfig: an unknown name, a value out of range, or two values that contradict each other.
        """
        settings = settings or {}
        _check_names(settings)
        TopicConfig.of({}, settings)
        resolved = tuple(_resolved(setting, settings) for setting in BROKER_SETTINGS)
        values: dict[str, Value] = {each.setting.name.replace(".", "_"): each.value for each in resolved}
        config = cls(**values, resolved=resolved)  # type: ignore[arg-type]  # BROKER_SETTINGS gives each its type
        if config.map_bytes <= _LEAST_MAP_BYTES:
            raise InvalidConfig(
                f"log.cleaner.dedupe.buffer.size={config.log_cleaner_dedupe_buffer_size} is too small for "
                f"log.cleaner.threads={config.log_cleaner_threads}: each needs more than {_LEAST_MAP_BYTES} bytes"
            )
        if config.max_keys(Strategy()) < 1:
            raise InvalidConfig(
                f"log.cleaner.io.buffer.load.factor={config.log_cleaner_io_buffer_load_factor} leaves no room for a "
                "key in the offset map; raise it"
            )
        return config

    @property
    def map_bytes(self) -> int:
        """Memory of one thread's offset map."""
        return self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads

    def max_keys(self, strategy: Strategy) -> int:
        """How many keys one pass may map."""
        slots = slots_in(self.map_bytes, slot_bytes_for(strategy))
        return keys_in(slots, self.log_cleaner_io_buffer_load_factor)

    def map_capacity(self, strategy: Strategy) -> MapCapacity:
        """How many keys one pass maps, and what happens beyond."""
        return MapCapacity(self.max_keys(strategy), MapOverflow(self.keptlog_offset_map_overflow))


def purge_interval_ms(settings: Mapping[str, str]) -> int:
    """Within what time a purge comes, of settings that were checked; resolving all takes too long at each topic."""
    text = settings.get(PURGE_INTERVAL)
    return PURGE_INTERVAL_MS if text is None else int(text)


def _resolved(setting: Setting, settings: Mapping[str, str]) -> Resolved:
    if setting.name in settings:
        return Resolved(setting, setting.parse(settings[setting.name]), Origin.BROKER, setting.name)
    return Resolved(setting, setting.default, Origin.DEFAULT, setting.name)


def _check_names(settings: Mapping[str, str]) -> None:
    for name in settings:
        if name in BROKER_NOT_APPLICABLE:
            raise InvalidConfig(f"{name} has no meaning on a lake: {BROKER_NOT_APPLICABLE[name]}; leave it out")
        if name not in _BY_NAME and name not in _OF_TOPICS:
            raise unknown_name(name, sorted(_OF_TOPICS | _BY_NAME.keys()))
