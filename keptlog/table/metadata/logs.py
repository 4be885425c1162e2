"""A topic's logs, put together from what its table says: the properties and the segments.

Nothing here needs a catalog or Iceberg. What a table says at one metadata location never changes, so it can be put
aside as a ``StoredTopic`` and be judged later, with the broker settings of then (``cache``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from keptlog.errors import ContradictsBroker, InvalidConfig, LogCorrupt
from keptlog.log.broker import purge_interval_ms
from keptlog.log.config import TopicConfig, known_settings, wrong_values
from keptlog.log.declared import About
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Held, Holdings, Terms
from keptlog.log.segment import Log, Segment
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.contradiction import contradiction
from keptlog.log.words.counted import counted
from keptlog.table.metadata.adoption_doubt import may_have_gaps
from keptlog.table.metadata.format import format_of
from keptlog.table.metadata.metadata_files import MetadataFiles
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, DEFAULT_PREFIX, READER_PREFIX
from keptlog.table.metadata.state import (
    SOURCE,
    UNDONE,
    LogState,
    last_pass,
    read_about,
    read_last_pass,
    read_open_erasures,
    read_positions,
)


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """What a topic's table says at one metadata location, as far as judging its logs needs it."""

    topic: str
    location: str
    """Of the metadata: another one with every commit."""
    properties: Mapping[str, str]
    segments: Mapping[int, Sequence[Segment]]
    """By partition, in offset order."""
    held: tuple[Held, ...] = ()
    """What the table alone tells of bytes that are not live (``superseded``)."""
    metadata_files: MetadataFiles = ()
    """Those that say all this."""
    topic_id: str | None = None
    """Tells it from another topic of the same name; null if an older keptlog has put it aside."""

    @property
    def has_readers(self) -> bool:
        """Whether tombstones may wait for somebody: then where he stands is to be looked at too (``readers``)."""
        return has_readers(self.properties)

    def observed(self, broker_settings: Mapping[str, str]) -> ObservedTopic:
        """The logs under these broker settings.

        Raises:
            UnsupportedFormat: a newer keptlog has written the topic.
            LogCorrupt: what is stored contradicts itself.
            InvalidConfig: the topic's configuration can't be resolved over this broker's.
        """
        config = config_of(self.topic, self.properties, broker_settings)
        logs = logs_from(self.topic, self.properties, self.segments, config, self.topic_id)
        terms = Terms(config.file_delete_delay_ms, purge_interval_ms(broker_settings))
        return ObservedTopic(
            self.location,
            tuple(logs),
            last_passes_of(self.topic, self.properties),
            Holdings(self.topic, terms, self.held),
            read_open_erasures(self.topic, self.properties),
            self.properties.get(SOURCE),
            read_about(self.properties),
            read_positions(self.topic, self.properties) if SOURCE in self.properties else (),
            self.metadata_files,
        )


@dataclass(frozen=True, slots=True)
class ObservedTopic:
    """What is to be seen of a topic without reading a record."""

    location: str
    """Of the metadata."""
    logs: tuple[Log, ...]
    """One for each partition."""
    last_passes: Mapping[TopicPartition, LastPass]
    """What the last clean of each log cost; logs that were never cleaned are not in it."""
    holdings: Holdings
    """What the table alone tells of bytes that are not live."""
    erasures: OpenErasures = field(default_factory=OpenErasures)
    """What is open of those that were asked for."""
    source_json: str | None = None
    """Where the records come from, as it is stored; who cleans need not understand it (``read_source_identity``)."""
    about: About = field(default_factory=About)
    positions: tuple[int | None, ...] = ()
    """Of an ingested topic, by partition; null where nothing was ever read."""
    metadata_files: MetadataFiles = ()
    """Those that say all this."""
    is_remembered: bool = False
    """Whether no table was asked: all of it follows from the metadata location and the broker settings."""


def table_location(metadata_location: str) -> str:
    """The folder of the table that a metadata file belongs to."""
    return metadata_location.rpartition("/metadata/")[0]


class Locations(dict[str, str]):
    """Topic to where its metadata lies; empty for a topic of which that can't be had."""

    to_be_asked: int = 0
    """Topics that are not among them, because there was no time yet to ask for them."""
    asked_ago_ms: int = 0
    """How long ago the catalog was asked for the one that waits longest."""


def has_readers(properties: Mapping[str, str]) -> bool:
    """Whether somebody is registered as a reader."""
    return any(name.startswith(READER_PREFIX) for name in properties)


def raw_config(properties: Mapping[str, str]) -> dict[str, str]:
    """What the topic sets itself, under Kafka's names."""
    stored = stored_config(properties)
    return {name: value for name, value in _all_config(properties).items() if name not in stored}


def stored_config(properties: Mapping[str, str]) -> dict[str, str]:
    """What the topic keeps of the broker settings, under Kafka's names: of then, whatever they say now (ADR 30)."""
    return {
        name: value
        for name, value in _all_config(properties).items()
        if properties.get(DEFAULT_PREFIX + name) == value  # an older keptlog may have altered it since
    }


def _all_config(properties: Mapping[str, str]) -> dict[str, str]:
    # Most properties are the state of logs, of which a topic may have hundreds.
    found = [(name, value) for name, value in properties.items() if name.startswith(CONFIG_PREFIX)]
    return {name.removeprefix(CONFIG_PREFIX): value for name, value in sorted(found)}


def known_config(topic: str, properties: Mapping[str, str]) -> dict[str, str]:
    """What the topic sets itself, without settings that only a newer keptlog knows.

    Raises:
        UnsupportedFormat, LogCorrupt: as ``format_of`` does.
    """
    config = raw_config(properties)
    return known_settings(config) if format_of(topic, properties).is_newer else config


def config_of(topic: str, properties: Mapping[str, str], broker_settings: Mapping[str, str]) -> TopicConfig:
    """A topic's configuration, resolved over the broker's.

    Raises:
        InvalidConfig: it can't be.
        UnsupportedFormat, LogCorrupt: as ``format_of`` does.
    """
    config = known_config(topic, properties)
    try:
        stored = known_settings(stored_config(properties))
        return _resolved(tuple(config.items()), tuple(broker_settings.items()), tuple(stored.items()))
    except InvalidConfig as error:
        foreign = sorted(config.keys() - known_settings(config).keys())
        told = f"topic {topic}: {error}"
        if isinstance(error, ContradictsBroker):
            raise ContradictsBroker(told) from error
        if foreign:
            command = f"keptlog topic alter {topic}" + "".join(f" --delete-config {name}" for name in foreign)
            raise InvalidConfig(f"{told}; another program has set it: {command}").mended_by(command) from error
        if wrong := wrong_values(config):
            command = f"keptlog topic alter {topic}" + "".join(f" --config {name}=VALUE" for name in wrong)
            told += f"; another program has set it, or a newer keptlog: give it a value ({command}), or upgrade"
        raise InvalidConfig(told) from error


@lru_cache(maxsize=64)
def _resolved(
    topic: tuple[tuple[str, str], ...],
    broker_settings: tuple[tuple[str, str], ...],
    stored: tuple[tuple[str, str], ...],
) -> TopicConfig:
    """A thousand topics have few configurations."""
    return TopicConfig.of(dict(topic), dict(broker_settings), dict(stored))


def last_passes_of(topic: str, properties: Mapping[str, str]) -> dict[TopicPartition, LastPass]:
    """What the last clean of each log cost; logs that were never cleaned are not in it.

    Raises:
        LogCorrupt: what is stored contradicts itself.
    """
    numbers = range(partition_count(topic, properties))
    found = ((number, read_last_pass(topic, number, properties)) for number in numbers)
    return {TopicPartition(topic, number): last for number, last in found if last}


def logs_from(
    topic: str,
    properties: Mapping[str, str],
    segments: Mapping[int, Sequence[Segment]],
    config: TopicConfig,
    topic_id: str | None = None,
) -> list[Log]:
    """Put segments and state together; ``topic_id`` tells them from those of another topic of the same name.

    Raises:
        LogCorrupt: they contradict each other.
    """
    partitions = partition_count(topic, properties)
    for partition, of_partition in segments.items():
        if not 0 <= partition < partitions:
            raise contradiction(
                f"topic {topic} has {counted(partitions, 'partition')}, but file {of_partition[0].path} is in "
                f"partition {partition}"
            )
    names = (TopicPartition(topic, number) for number in range(partitions))
    return [_log(name, properties, segments.get(name.partition, ()), config, topic_id) for name in names]


def _log(
    topic_partition: TopicPartition,
    properties: Mapping[str, str],
    segments: Sequence[Segment],
    config: TopicConfig,
    topic_id: str | None,
) -> Log:
    state = LogState.read(topic_partition.topic, topic_partition.partition, properties)
    if segments and segments[-1].last_offset >= state.log_end_offset:
        raise contradiction(
            f"{topic_partition}: segment {segments[-1].path} reaches offset {segments[-1].last_offset}, but the log "
            f"ends at {state.log_end_offset}"
        )
    is_doubtful = may_have_gaps(topic_partition.partition, properties)
    return Log(
        topic_partition=topic_partition,
        config=config,
        segments=tuple(segments),
        log_start_offset=state.log_start_offset,
        log_end_offset=state.log_end_offset,
        checkpoint=state.checkpoint,
        uncleanable=state.uncleanable,
        watermarks_path=state.watermarks_path,
        cleaning_to=state.cleaning_to,
        truncations=state.truncations,
        was_cleaned=bool(properties.get(last_pass(topic_partition.partition))),
        last_was_expiry=config.strategy.has_versions and _last_was_expiry(topic_partition, properties),
        is_ingested=SOURCE in properties,
        # What else adoptions note stays for good, and an older keptlog noted nothing else.
        was_adopted=is_doubtful and UNDONE in properties,
        may_be_adopted=is_doubtful and UNDONE not in properties,
        topic_id=topic_id,
    )


def _last_was_expiry(topic_partition: TopicPartition, properties: Mapping[str, str]) -> bool:
    """Whose turn it is, is a note: one that can't be read lets an expiry go first once more."""
    try:
        last = read_last_pass(topic_partition.topic, topic_partition.partition, properties)
    except LogCorrupt:
        return False
    return last is not None and last.is_expiry
