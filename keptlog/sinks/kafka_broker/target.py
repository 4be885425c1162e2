"""The topic that a log is restored to, as it is at its broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, OffsetSpec, ResourceType
from confluent_kafka.cimpl import NewTopic

from keptlog.kafka_client.errors import WAIT_SECONDS, Trouble, ask, asked_alone, broker_errors
from keptlog.kafka_client.leaders import ask_leaders, controller_of, leaders_of
from keptlog.kafka_client.one_cluster import is_of_cluster, require_one_cluster
from keptlog.kafka_client.settings import ClientSettings
from keptlog.kafka_client.told_offsets import told_offset
from keptlog.kafka_client.topic_ids import NO_ID, topic_id_of
from keptlog.log.broker_addresses import addresses
from keptlog.log.words.units import LONG_MAX

_NOT_KAFKAS = ("compaction.strategy", "internal.", "keptlog.")
"""Settings of a topic here that brokers do not know begin like this."""
_BROKERS_DEFAULT = -1
BEFORE = "message.timestamp.before.max.ms"
AFTER = "message.timestamp.after.max.ms"
DIFFERENCE = "message.timestamp.difference.max.ms"
"""One for both until Kafka 3.6 had these two. Up to 3.9 it still counts where they are not made."""
_BATCH_LIMITS = ("max.message.bytes", "segment.bytes")
"""A batch that is larger than a segment is taken by none. Before Kafka 4 segments may be small."""
_DEFAULTS = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    BEFORE: f"log.{BEFORE}",
    AFTER: f"log.{AFTER}",
    DIFFERENCE: f"log.{DIFFERENCE}",
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
    def timestamp_limits(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """How far a timestamp may lie before the clock, and after it, in ms, each with the setting that says it."""
        both = (_limit(self.config.get(DIFFERENCE)), DIFFERENCE)
        before, after = ((_limit(self.config.get(name)), name) for name in (BEFORE, AFTER))
        return both if before[0] == LONG_MAX > both[0] else before, both if after[0] == LONG_MAX > both[0] else after

    @property
    def batch_limit(self) -> tuple[int, str] | None:
        """The largest record batch that it takes, and the setting that says it; null where nobody may see it."""
        return min(((int(self.config[name]), name) for name in _BATCH_LIMITS if name in self.config), default=None)


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
            with asked_alone(admin, trouble, controller_of(told)):
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
        with broker_errors(self.settings, f"topic {name} can't be looked at") as trouble:
            brokers = _defaults(*self._reached(trouble))
        return Target(name, "", partitions, brokers | _settings_there(config, brokers))

    def create(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic with the settings of one here, as far as its brokers know them, that keeps timestamps."""
        with broker_errors(self.settings, f"topic {name} can't be created") as trouble:
            admin, told = self._reached(trouble)
            known = _settings_there(config, _defaults(admin, told))
            new = NewTopic(name, num_partitions=partitions, replication_factor=_BROKERS_DEFAULT, config=known)
            with asked_alone(admin, trouble, controller_of(told)):
                admin.create_topics([new], operation_timeout=WAIT_SECONDS)[name].result()

    def with_records(self, target: Target, *, ever: bool = False) -> list[int]:
        """The partitions that have offsets between log start and end, committed or not; ``ever``: or had some."""
        with broker_errors(self.settings, f"topic {target.name} can't be looked at") as trouble:
            admin, told = self._reached(trouble)
            leaders = leaders_of(told, target.name, range(target.partitions))
            starts = dict.fromkeys(leaders, 0) if ever else _offsets(admin, trouble, leaders, _EARLIEST)
            ends = _offsets(admin, trouble, leaders, _LATEST)
        return [each.partition for each in leaders if starts[each] < ends[each]]

    def are_at(self, bootstrap: str) -> bool:
        """Whether another list of addresses leads to them, by another listener, say; false if no address says so."""
        with broker_errors(self.settings, "what cluster it is can't be asked") as trouble:
            return is_of_cluster(self.settings, self._reached(trouble)[1], bootstrap)

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


def _limit(text: str | None) -> int:
    return LONG_MAX if text is None else int(text)


def _defaults(admin: AdminClient, told: ClusterMetadata) -> dict[str, str]:
    """The defaults of brokers, under the names of a topic's settings; none where nobody may see them."""
    # That of all brokers is asked without which no topic is looked at or created: others may be away.
    controller = controller_of(told)
    if controller is None:
        return {}
    try:
        settings = _config_of(admin, ResourceType.BROKER, str(controller))
    except KafkaException:
        return {}  # then the broker has the last word
    return {ours: settings[theirs] for ours, theirs in _DEFAULTS.items() if theirs in settings}


def _settings_there(config: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic that is created for one with these settings here, at brokers with these defaults."""
    known = {key: value for key, value in config.items() if not key.startswith(_NOT_KAFKAS)}
    if DIFFERENCE in defaults and BEFORE not in defaults:
        # Before Kafka 3.6 a topic is refused for them. What one takes later is for its broker to say.
        known = {key: value for key, value in known.items() if key not in {BEFORE, AFTER}}
    return known | {"message.timestamp.type": "CreateTime"}
