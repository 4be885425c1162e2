"""What governs one topic: Kafka's topic settings with Kafka's names, defaults and ranges (Kafka 4.3).

``TopicConfig.of`` resolves them and checks them against each other; nothing else in keptlog parses a setting. Settings
that only mean something inside a broker are refused with the reason, never accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keptlog.errors import ContradictsBroker, InvalidConfig
from keptlog.log.setting import (
    BROKER_VARIABLES,
    Origin,
    Resolved,
    Setting,
    Synonym,
    Value,
    as_text,
    resolve,
    unknown_name,
)
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.words.units import LONG_MAX

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "cleanup.policy",
        ("delete",),
        "compact keeps the latest record of every key; delete drops old segments; both may be given",
        (Synonym("log.cleanup.policy"),),
        choices=("compact", "delete"),
    ),
    Setting(
        "compaction.strategy",
        "offset",
        "which record of a key is the latest (KIP-280)",
        (Synonym("log.cleaner.compaction.strategy"),),
        choices=tuple(StrategyKind),
        empty_is_default=True,
    ),
    Setting(
        "compaction.strategy.header",
        "",
        "with compaction.strategy=header: the header that holds a record's version, 8 bytes, big-endian",
        (Synonym("log.cleaner.compaction.strategy.header"),),
    ),
    Setting(
        "keptlog.watermark.retention.ms",
        7 * _DAY_MS,
        "with compaction.strategy=timestamp or header: how long after a tombstone has gone a late record of a lower "
        "version still can't bring its key back; choose it longer than records can be late and then wait for a clean",
        (Synonym("keptlog.watermark.retention.ms"),),
        minimum=0,
    ),
    Setting(
        "min.cleanable.dirty.ratio",
        0.5,
        "a log is cleaned when dirty bytes over all cleanable bytes are above this",
        (Synonym("log.cleaner.min.cleanable.ratio"),),
        minimum=0,
        maximum=1,
    ),
    Setting(
        "min.compaction.lag.ms",
        0,
        "a record younger than this is never touched",
        (Synonym("log.cleaner.min.compaction.lag.ms"),),
        minimum=0,
    ),
    Setting(
        "max.compaction.lag.ms",
        LONG_MAX,
        "a record older than this does not stay uncompacted",
        (Synonym("log.cleaner.max.compaction.lag.ms"),),
        minimum=1,
    ),
    Setting(
        "delete.retention.ms",
        _DAY_MS,
        "how long a tombstone stays readable after its first clean",
        (Synonym("log.cleaner.delete.retention.ms"),),
        minimum=0,
    ),
    Setting(
        "segment.ms",
        7 * _DAY_MS,
        "the active segment is closed when it spans or waits longer than this",
        (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
        minimum=1,
    ),
    Setting(
        "segment.bytes",
        2**30,
        "the active segment is closed, and a cleaned one is full, at this size",
        (Synonym("log.segment.bytes"),),
        minimum=2**20,
        maximum=2**31 - 1,
    ),
    Setting(
        "internal.segment.bytes",
        0,
        "segment.bytes without its lower limit of 1 MiB, for tests; 0 leaves segment.bytes in force",
        minimum=0,
        maximum=2**31 - 1,
    ),
    Setting(
        "retention.ms",
        7 * _DAY_MS,
        "with cleanup.policy=delete: segments older than this go; -1 keeps them",
        (
            Synonym("log.retention.ms", keeps_something=True),
            Synonym("log.retention.minutes", 60_000, keeps_something=True),
            Synonym("log.retention.hours", _HOUR_MS, keeps_something=True),
        ),
        minimum=-1,
    ),
    Setting(
        "retention.bytes",
        -1,
        "with cleanup.policy=delete: the oldest segments go while the log is larger than this; -1 keeps them",
        (Synonym("log.retention.bytes"),),
        minimum=-1,
        negative_is_unlimited=True,
    ),
    Setting(
        "file.delete.delay.ms",
        60_000,
        "how long a replaced file stays readable before a purge deletes it",
        (Synonym("log.segment.delete.delay.ms"),),
        minimum=0,
    ),
    Setting(
        "max.message.bytes",
        1_048_588,
        "a larger record is refused",
        (Synonym("message.max.bytes"),),
        minimum=0,
        maximum=2**31 - 1,
    ),
    Setting(
        "message.timestamp.type",
        "CreateTime",
        "CreateTime keeps the record's timestamp; LogAppendTime sets it when the record is appended",
        (Synonym("log.message.timestamp.type"),),
        choices=("CreateTime", "LogAppendTime"),
    ),
    Setting(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "with CreateTime: a record whose timestamp lies further before the clock than this is refused",
        (Synonym("log.message.timestamp.before.max.ms"),),
        minimum=0,
    ),
    Setting(
        "message.timestamp.after.max.ms",
        _HOUR_MS,
        "with CreateTime: a record whose timestamp lies further after the clock than this is refused",
        (Synonym("log.message.timestamp.after.max.ms"),),
        minimum=0,
    ),
)

_MORE_PARTITIONS = "keptlog topic create has --partitions, and keptlog topic apply makes more of them later"

NOT_APPLICABLE: Mapping[str, str] = {
    "compression.gzip.level": "segments are Parquet files, compressed with zstd",
    "compression.lz4.level": "segments are Parquet files, compressed with zstd",
    "compression.type": "segments are Parquet files, compressed with zstd",
    "compression.zstd.level": "segments are Parquet files, compressed with zstd",
    "flush.messages": "every append is durable before it is visible",
    "flush.ms": "every append is durable before it is visible",
    "follower.replication.throttled.replicas": "the storage replicates, not keptlog",
    "index.interval.bytes": "Parquet's own statistics take the place of Kafka's indexes",
    "leader.replication.throttled.replicas": "the storage replicates, not keptlog",
    "local.retention.bytes": "all storage is remote here",
    "local.retention.ms": "all storage is remote here",
    "message.downconversion.enable": "there is one format of records",
    "min.insync.replicas": "the storage replicates, not keptlog",
    "preallocate": "files are written once and never grow",
    "remote.log.copy.disable": "all storage is remote here",
    "remote.log.delete.on.disable": "all storage is remote here",
    "remote.storage.enable": "all storage is remote here",
    "segment.index.bytes": "Parquet's own statistics take the place of Kafka's indexes",
    "segment.jitter.ms": "closing a segment costs nothing here, so there is no storm to spread",
    "unclean.leader.election.enable": "there are no leaders here",
}
"""Kafka's topic settings that have no meaning on a lake, each with the reason."""

DECIDING = (
    "cleanup.policy",
    "compaction.strategy",
    "delete.retention.ms",
    "keptlog.watermark.retention.ms",
    "retention.bytes",
    "retention.ms",
)
"""What decides which records go, and which stay for ever. A topic that does not set one keeps what the broker settings
said when it was made: another machine's, in which a line is missing, would delete what nobody wanted to lose (ADR 30).
"""

_HEADER = "compaction.strategy.header"
_BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """All settings of one topic, resolved and checked. Fields carry Kafka's names; times are ms, sizes bytes."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compaction_strategy: str = "offset"
    compaction_strategy_header: str = ""
    keptlog_watermark_retention_ms: int = 7 * _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    delete_retention_ms: int = _DAY_MS
    segment_ms: int = 7 * _DAY_MS
    segment_bytes: int = 2**30
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = _HOUR_MS
    unsettled: tuple[str, ...] = ()
    """Those of ``DECIDING`` that an older keptlog has neither set nor stored: here they are this machine's."""
    resolved: tuple[Resolved, ...] = field(default=(), compare=False, repr=False)
    """Every setting with its origin, for ``describe``."""

    @classmethod
    def of(
        cls,
        topic: Mapping[str, str],
        broker: Mapping[str, str] | None = None,
        stored: Mapping[str, str] | None = None,
    ) -> TopicConfig:
        """Resolve a topic's settings over the broker's; ``stored`` is what it keeps of those, null if it is not made.

        Raises:
            InvalidConfig: an unknown name, a value out of range, or two values that contradict each other.
        """
        check_topic_names(topic)
        resolved = tuple(resolve(setting, topic, broker or {}, stored) for setting in SETTINGS)
        values: dict[str, Value] = {each.setting.name.replace(".", "_"): each.value for each in resolved}
        internal_segment_bytes = values.pop("internal_segment_bytes")
        if internal_segment_bytes:
            values["segment_bytes"] = internal_segment_bytes
        kept = {**topic, **(dict.fromkeys(DECIDING, "") if stored is None else stored)}
        unsettled = tuple(name for name in DECIDING if name not in kept)
        config = cls(**values, unsettled=unsettled, resolved=resolved)  # type: ignore[arg-type]  # SETTINGS gives each field its type
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise _lags_contradict(config)
        if config.strategy.kind.needs_header and not config.compaction_strategy_header:
            raise InvalidConfig(
                f"compaction.strategy={config.compaction_strategy} needs compaction.strategy.header: "
                "name the header that holds the version"
            )
        return config

    @property
    def of_the_topic(self) -> dict[str, str]:
        """As text, what it sets itself and what is stored with it: the same on every machine (ADR 30)."""
        own = {Origin.TOPIC, Origin.STORED}
        return {each.setting.name: as_text(each.value) for each in self.resolved if each.origin in own}

    @property
    def strategy(self) -> Strategy:
        """Which record of a key is the latest; a header that is set and not needed tells nothing of that."""
        kind = StrategyKind(self.compaction_strategy)
        return Strategy(kind, self.compaction_strategy_header if kind.needs_header else "")

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def policy_text(self) -> str:
        """For people: of an empty policy too."""
        return ",".join(self.cleanup_policy) or "empty"

    @property
    def has_retention(self) -> bool:
        """Whether old segments go by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How long a segment may stay active: Kafka's ``LogConfig.maxSegmentMs``."""
        # Asked for each segment of a home: neither min nor another property.
        is_shorter = self.max_compaction_lag_ms < self.segment_ms and "compact" in self.cleanup_policy
        return self.max_compaction_lag_ms if is_shorter else self.segment_ms

    @property
    def max_segment_setting(self) -> str:
        """Which setting says that, for people: to lower the other one changes nothing."""
        return "segment.ms" if self.max_segment_ms == self.segment_ms else "max.compaction.lag.ms"


def _lags_contradict(config: TopicConfig) -> InvalidConfig:
    """What is said of lags that can't both hold. One of the broker's is named by where it is set, to be mended."""
    lags = [each for each in config.resolved if each.setting.name in {"min.compaction.lag.ms", "max.compaction.lag.ms"}]
    said = (
        f"min.compaction.lag.ms={config.min_compaction_lag_ms} is above "
        f"max.compaction.lag.ms={config.max_compaction_lag_ms}: a record could not meet both"
    )
    of_broker = [each for each in lags if each.origin is Origin.BROKER]
    own = [each for each in lags if each.origin is not Origin.BROKER]
    if not (of_broker and own):
        return InvalidConfig(f"{said}; lower the minimum")
    line = of_broker[0].origin_name
    variable = f"{BROKER_VARIABLES}{line.upper().replace('.', '_')}"
    return ContradictsBroker(
        f"{said}. The topic sets {own[0].setting.name} itself. {of_broker[0].setting.name} comes from "
        f"the broker setting {line} (in server.properties, or {variable}). Change one of the two"
    )


def settled(topic: Mapping[str, str], broker: Mapping[str, str], names: Iterable[str] = DECIDING) -> dict[str, str]:
    """What a topic keeps of the broker settings: those of ``names`` that it does not set, as text.

    With a strategy that needs a header goes the header's name.

    Raises:
        InvalidConfig: one can't be resolved.
    """
    config = TopicConfig.of(topic, broker)
    names = set(names)
    if config.strategy.kind.needs_header and "compaction.strategy" in names:
        names.add(_HEADER)
    return {
        each.setting.name: as_text(each.value)
        for each in config.resolved
        if each.setting.name in names and each.setting.name not in topic
    }


def known_settings(topic: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic's settings that have a meaning here."""
    return {name: value for name, value in topic.items() if name in _BY_NAME}


def wrong_values(topic: Mapping[str, str]) -> list[str]:
    """The names of those of a topic's settings that have a meaning here, but not with the value that they have."""

    def is_wrong(name: str) -> bool:
        try:
            _BY_NAME[name].parse(topic[name])
        except InvalidConfig:
            return True
        return False

    return sorted(filter(is_wrong, known_settings(topic)))


def parse_setting(name: str, text: str) -> Value:
    """The value that a text means for one of a topic's settings.

    Raises:
        InvalidConfig: no topic has such a setting, or it can't have this value.
    """
    check_topic_names([name])
    return _BY_NAME[name].parse(text)


def check_topic_names(topic: Iterable[str]) -> None:
    """Refuse names that are no topic settings.

    Raises:
        InvalidConfig: with the nearest right name, the place of a home's setting, or the reason why a Kafka setting
            means nothing here.
    """
    for name in topic:
        if name in NOT_APPLICABLE:
            raise InvalidConfig(f"{name} has no meaning on a lake: {NOT_APPLICABLE[name]}; leave it out")
        if name == "partitions":
            raise InvalidConfig(f"{name} is no setting: {_MORE_PARTITIONS}")
        if name not in _BY_NAME:
            raise _of_the_home(name) or unknown_name(name, list(_BY_NAME))


def _of_the_home(name: str) -> InvalidConfig | None:
    """The error for a name that no topic has, but a home; null if it has none either."""
    from keptlog.log.broker import BROKER_SETTINGS  # noqa: PLC0415  # which imports this module

    own = next((each.name for each in SETTINGS if name in {synonym.name for synonym in each.broker}), None)
    if own is None and name not in {each.name for each in BROKER_SETTINGS}:
        return None
    instead = f", or give this topic {own}" if own else ""
    return InvalidConfig(
        f"{name} is a setting of the home, not of a topic: write it to server.properties in the home{instead}"
    )
