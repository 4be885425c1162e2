"""The topic that a log is restored to, as it is at its broker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, OffsetSpec, ResourceType
from confluent_kafka.cimpl import NewTopic

from keptlog.kafka_client.errors import WAIT_SECONDS, Trouble, ask, asked_alone, broker_errors
from keptlog.kafka_client.leaders import ask_leaders, leaders_of
from keptlog.kafka_client.one_cluster import require_one_cluster
from keptlog.kafka_client.settings import ClientSettings
from keptlog.kafka_client.told_offsets import told_offset
from keptlog.kafka_client.topic_ids import NO_ID, topic_id_of
from keptlog.log.broker_addresses import addresses

_NOT_KAFKAS = ("compaction.strategy", "internal.", "keptlog.")
"""Settings of a topic here that brokers do not know begin like this."""
_BROKERS_DEFAULT = -1
_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
}
"""Settings that decide which records a topic takes, and where a broker has their defaults."""
_EARLIEST: OffsetSpec = OffsetSpec.earliest()
_LATEST: OffsetSpec = OffsetSpec.latest()


@dataclass(frozen=True, slots=True)
class Target:
    """A topic at its broker."""

    name: str
    id: str
    """Kafka's UUID in base64, which tells a topic from a later one of the same name; empty before it is created."""
    partitions: int
    config: Mapping[str, str] = field(hash=False)
    """All of its settings, and its broker's defaults as far as they may be seen."""

    @property
    def is_there(self) -> bool:
        """Whether it was created already."""
        return bool(self.id)

    @property
    def has_id(self) -> bool:
        """Whether its brokers give topics ids at all."""
        return self.id not in {"", NO_ID}

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.config.get("cleanup.policy", "")

    @property
    def replaces_timestamps(self) -> bool:
        return self.config.get("message.timestamp.type") == "LogAppendTime"

    @property
    def max_message_bytes(self) -> int | None:
        """The largest record batch that it takes; null where nobody may see it."""
        limit = self.config.get("max.message.bytes")
        return None if limit is None else int(limit)


@dataclass(frozen=True, slots=True)
class Targets:
    """The topics of a broker.

    All methods raise InvalidConfig if a setting, a password or a permission is wrong, and StorageUnavailable if no
    broker can be reached.
    """

    settings: ClientSettings

    def find(self, name: str) -> Target | None:
        """The topic of this name; null if there is none."""
        with broker_errors(self.settings, f"topic {name} can't be looked at") as trouble:
            admin, told = self._reached(trouble)
            with asked_alone(admin, trouble, _controller(told)):
                described = admin.describe_topics(TopicCollection([name]), request_timeout=WAIT_SECONDS)[name]
                try:
                    topic = described.result()
                except KafkaException as error:
                    if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        return None
                    raise
                config = _config_of(admin, ResourceType.TOPIC, name)
            return Target(name, topic_id_of(topic.topic_id), len(topic.partitions), config)

    def as_created(self, name: str, partitions: int, config: Mapping[str, str]) -> Target:
        """What ``create`` would make, but for its id; without the brokers' defaults, where they are not to be had."""
        brokers: dict[str, str] = {}
        with broker_errors(self.settings, f"topic {name} can't be looked at") as trouble:
            admin, metadata = self._reached(trouble)
            number = min(metadata.brokers)
            with suppress(KafkaException):  # not everybody may see them; then the broker has the last word
                told = _config_of(admin, ResourceType.BROKER, str(number))
                brokers = {ours: told[theirs] for ours, theirs in _DEFAULTS.items() if theirs in told}
        return Target(name, "", partitions, brokers | _settings_there(config))

    def create(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic with the settings of one here, as far as brokers know them, that keeps timestamps."""
        known = _settings_there(config)
        with broker_errors(self.settings, f"topic {name} can't be created") as trouble:
            new = NewTopic(name, num_partitions=partitions, replication_factor=_BROKERS_DEFAULT, config=known)
            admin, told = self._reached(trouble)
            with asked_alone(admin, trouble, _controller(told)):
                admin.create_topics([new], operation_timeout=WAIT_SECONDS)[name].result()

    def with_records(self, target: Target) -> list[int]:
        """The partitions that have offsets between log start and end, committed or not."""
        with broker_errors(self.settings, f"topic {target.name} can't be looked at") as trouble:
            admin, told = self._reached(trouble)
            leaders = leaders_of(told, target.name, range(target.partitions))
            starts = _offsets(admin, trouble, leaders, _EARLIEST)
            ends = _offsets(admin, trouble, leaders, _LATEST)
        return [each.partition for each in leaders if starts[each] < ends[each]]

    def _reached(self, trouble: Trouble) -> tuple[AdminClient, ClusterMetadata]:
        """A client that has reached a broker, of a list without another cluster's, and what that broker told."""
        admin, told, _ = _asked(self.settings, trouble)
        return admin, told


def of_one_cluster(settings: ClientSettings) -> ClientSettings:
    """The settings with which all clients reach the same cluster; raises as ``Targets`` does."""
    if len(addresses(settings.bootstrap or "")) < 2:
        return settings
    with broker_errors(settings, "nothing can be restored") as trouble:
        return _asked(settings, trouble)[2]


def _asked(settings: ClientSettings, trouble: Trouble) -> tuple[AdminClient, ClusterMetadata, ClientSettings]:
    """A client that has reached a broker, what it told, and the settings with which others reach no other cluster."""
    admin = AdminClient(settings.for_admin(trouble))
    told = ask(admin, trouble, lambda seconds: admin.list_topics(timeout=seconds))
    return admin, told, require_one_cluster(settings, told)


def _controller(told: ClusterMetadata) -> int | None:
    """The broker that alone is asked for topics and their settings; null where the cluster has none for a moment."""
    return told.controller_id if told.controller_id >= 0 else None


def _offsets(
    admin: AdminClient, trouble: Trouble, leaders: Mapping[TopicPartition, int], which: OffsetSpec
) -> dict[TopicPartition, int]:
    asked = ask_leaders(admin, leaders, which, IsolationLevel.READ_UNCOMMITTED, lambda _: WAIT_SECONDS)
    found: dict[TopicPartition, int] = {}
    for futures in asked.values():
        for each, future in futures.items():
            with asked_alone(admin, trouble, leaders[each]):
                found[each] = told_offset(future).offset
    return found


def _config_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    """The settings of a topic, or of a broker by its number, that have a value."""
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource], request_timeout=WAIT_SECONDS)[resource].result()
    return {entry.name: entry.value for entry in entries.values() if entry.value is not None}


def _settings_there(config: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic that is created for one with these settings here."""
    known = {key: value for key, value in config.items() if not key.startswith(_NOT_KAFKAS)}
    return known | {"message.timestamp.type": "CreateTime"}
