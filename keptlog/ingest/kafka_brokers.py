"""Topics of Kafka brokers into topics here, and onwards from where they are.

    topics --look, one connection a cluster--> what is there --plan--> ranges --cut--> parts --ingest--> live

Looking changes nothing and needs no Spark: it also tells how far the topics here are behind. A topic here remembers its
source, the brokers' address with it, so that it can be ingested again by its name alone.

A topic that does not exist yet is created with the settings that are asked for, over those of its broker or over
``cleanup.policy=compact``: what is ingested is meant to be cleaned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from keptlog.errors import KeptlogError, StalePlan
from keptlog.ingest.ingest_pass import Ingest, IngestResult, TopicIngest
from keptlog.kafka_client.errors import WAIT_SECONDS
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan
from keptlog.log.topic_partition import TopicPartition
from keptlog.progress import Progress
from keptlog.sources.kafka_broker.ranges import broker_parts
from keptlog.sources.kafka_broker.topics import BrokerConfig, Found, look_at_topics, topic_configs
from keptlog.table.store import LogStore

DEFAULT_CONFIG: Mapping[str, str] = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class WantedTopics:
    """What to ingest, and how."""

    topics: Mapping[str, str]
    """The topic here, which need not exist, to its name there."""
    bootstrap: str | None = None
    """The brokers; null for those that each topic remembers, or that the client settings name."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings of topics that don't exist yet."""
    with_broker_config: bool = False
    """Let new topics have the settings that they have at their broker."""
    skip_lost: bool = False
    """Go on where a log begins now, although records before that were never read."""


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """What is to be read of one topic, and from where."""

    plan: IngestPlan
    settings: ClientSettings
    config: Mapping[str, str]
    """The topic's settings, if it does not exist yet."""
    left_out: Mapping[str, str]
    """Settings that it has at its broker and that mean nothing here, with the reason."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What there is to do."""

    topics: tuple[PlannedTopic, ...]
    failed: dict[str, KeptlogError]
    """Topics that can't be looked at, or that can't take records from there."""

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets of each topic-partition are yet to be read, those that are stopped left out.

        Some of them may hold no record.
        """
        lag: dict[TopicPartition, int] = {}
        for topic in self.topics:
            ranges = {each.partition: each.end_offset - each.from_offset for each in topic.plan.ranges}
            for partition in set(range(topic.plan.partitions)) - set(topic.plan.stopped):
                lag[TopicPartition(topic.plan.topic, partition)] = ranges.get(partition, 0)
        return dict(sorted(lag.items()))

    def only(self, names: Collection[TopicPartition]) -> Looked:
        """What there is to do for some topic-partitions alone; the others keep their positions."""
        return replace(self, topics=tuple(replace(each, plan=_only(each.plan, names)) for each in self.topics))


def topics_from_brokers(store: LogStore) -> dict[str, str]:
    """The topics here that remember brokers, and their names there."""
    sources = {topic: store.source_of(topic).source for topic in store.topics()}
    return {topic: source.topic for topic, source in sources.items() if source and source.bootstrap}


@dataclass(frozen=True, slots=True)
class BrokerIngest:
    """Ingests topics of brokers into one store. Brokers are given ``wait_seconds`` for each of their few answers."""

    ingest: Ingest
    settings: ClientSettings
    wait_seconds: float = WAIT_SECONDS

    def look(self, wanted: WantedTopics) -> Looked:
        """Plan what is to be read; changes nothing, and starts no Spark.

        Raises:
            InvalidConfig: nobody has named a broker.
        """
        failed: dict[str, KeptlogError] = {}
        planned: list[PlannedTopic] = []
        existing = set(self.ingest.store.topics())
        for there, topics in self._by_cluster(wanted, existing).items():
            settings = self.settings.at(there)
            try:
                found = look_at_topics(settings, sorted(set(topics.values())), self.wait_seconds)
                new = sorted({name for here, name in topics.items() if here not in existing and name in found.topics})
                configs = topic_configs(settings, new, self.wait_seconds) if wanted.with_broker_config and new else {}
            except KeptlogError as error:
                failed |= dict.fromkeys(topics, error)
                continue
            for here, name in topics.items():
                try:
                    plan = self._plan(here, name, found, skip_lost=wanted.skip_lost)
                except KeptlogError as error:
                    failed[here] = error
                    continue
                broker_config = configs.get(name, BrokerConfig(dict(DEFAULT_CONFIG), {}))
                config = {**broker_config.settings, **wanted.config}
                planned.append(PlannedTopic(plan, settings, config, broker_config.left_out))
        return Looked(tuple(planned), failed)

    def run(self, looked: Looked, run_id: str, progress: Progress) -> IngestResult:
        """Read and commit what was planned; a topic or topic-partition that fails stops no other.

        Raises:
            StorageUnavailable: Spark can't be started, or fails; nothing was committed.
        """
        cores = self.ingest.engine.start_jobs(run_id, progress).cores if any(looked.lag.values()) else 1
        parts = broker_parts([(each.plan, each.settings) for each in looked.topics], cores)
        ingests = [
            TopicIngest(each.plan, own, each.config, partial(self._require_same_topic, each))
            for each, own in zip(looked.topics, parts, strict=True)
        ]
        result = self.ingest.run(ingests, run_id, progress)
        return replace(result, failed=looked.failed | result.failed)

    def _require_same_topic(self, planned: PlannedTopic) -> None:
        """Parts know a topic by its name; a later one of that name may have had all the offsets that were planned.

        Raises:
            StalePlan: it was created anew since it was looked at.
        """
        name = planned.plan.source.topic
        found = look_at_topics(planned.settings, [name], self.wait_seconds).topics.get(name)
        if found and not planned.plan.source.may_be(found.source):
            raise StalePlan(
                f"topic {name} was deleted and created again while it was read; nothing of it was committed, ingest "
                "again to see what is there now"
            )

    def _by_cluster(self, wanted: WantedTopics, existing: set[str]) -> dict[str | None, dict[str, str]]:
        """The topics by the brokers that have them; null for those that the client settings name."""
        clusters: dict[str | None, dict[str, str]] = defaultdict(dict)
        for here, name in wanted.topics.items():
            stored = self.ingest.store.source_of(here).source if here in existing else None
            clusters[wanted.bootstrap or (stored.bootstrap if stored else None)][here] = name
        return clusters

    def _plan(self, here: str, name: str, found: Found, *, skip_lost: bool) -> IngestPlan:
        if name in found.missing:
            raise found.missing[name]
        return self.ingest.plan(here, found.topics[name], skip_lost=skip_lost)


def _only(plan: IngestPlan, names: Collection[TopicPartition]) -> IngestPlan:
    wanted = {name.partition for name in names if name.topic == plan.topic}
    ranges = tuple(each for each in plan.ranges if each.partition in wanted)
    stopped = {partition: reason for partition, reason in plan.stopped.items() if partition in wanted}
    return replace(plan, ranges=ranges, stopped=stopped)
