"""A cluster that falls silent is waited for once, and not behind each of its topics: others wait behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.ingest import kafka_brokers
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, SourceIdentity, SourceTopic
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import BrokerTopics

TOPICS = {f"t-{number}": f"t-{number}" for number in range(4)}


@dataclass
class Clusters:
    """All of them have all topics; some say nothing."""

    silent: set[str | None] = field(default_factory=lambda: {"silent:1"})
    waited: list[tuple[str | None, float]] = field(default_factory=list)
    """Which cluster was asked, and how long its answer was waited for."""

    def look(self, settings: ClientSettings, topics: list[str], seconds: float, _silence: Silence) -> BrokerTopics:
        self._ask(settings, seconds)
        return BrokerTopics({topic: SourceTopic(SourceIdentity(topic), ()) for topic in topics}, {})

    def kept(self, settings: ClientSettings, _topic: str, _partitions: list[int], seconds: float) -> dict[int, int]:
        self._ask(settings, seconds)
        return {}

    def _ask(self, settings: ClientSettings, seconds: float) -> None:
        self.waited.append((settings.bootstrap, seconds))
        if settings.bootstrap in self.silent:
            raise StorageUnavailable("no broker answers")


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    made = Clusters()
    monkeypatch.setattr(kafka_brokers, "look_at_topics", made.look)
    monkeypatch.setattr(kafka_brokers, "look_at_ids", made.look)
    monkeypatch.setattr(kafka_brokers, "tombstones_kept_ms", made.kept)
    return made


@pytest.fixture
def source() -> KafkaBrokers:
    return KafkaBrokers(ClientSettings.load({}, {}), TOPICS, wait_seconds=15)


def plan(topic: str, bootstrap: str) -> IngestPlan:
    return IngestPlan(topic, SourceIdentity(topic, None, bootstrap), 1, ())


def test_after_the_first_answer_that_did_not_come_the_others_are_waited_for_a_few_seconds(
    clusters: Clusters, source: KafkaBrokers
) -> None:
    for topic in ("t-0", "t-1"):
        with pytest.raises(StorageUnavailable):
            source.tombstones_kept_ms(plan(topic, "silent:1"), [0])
        with pytest.raises(StorageUnavailable):
            source.confirm(plan(topic, "silent:1"))
        source.confirm(plan(topic, "answers:1"))
    assert [seconds for where, seconds in clusters.waited if where == "silent:1"] == [15, 3, 3, 3]
    assert [seconds for where, seconds in clusters.waited if where == "answers:1"] == [15, 15]


def test_one_that_answers_again_is_waited_for_as_ever(clusters: Clusters, source: KafkaBrokers) -> None:
    with pytest.raises(StorageUnavailable):
        source.confirm(plan("t-0", "silent:1"))
    clusters.silent.clear()
    for topic in ("t-1", "t-2"):
        source.confirm(plan(topic, "silent:1"))
    assert [seconds for _, seconds in clusters.waited] == [15, 3, 15]


def test_nobody_waits_longer_behind_a_silent_cluster_than_he_wants(clusters: Clusters) -> None:
    hasty = KafkaBrokers(ClientSettings.load({}, {}), TOPICS, wait_seconds=1)
    for topic in ("t-0", "t-1"):
        with pytest.raises(StorageUnavailable):
            hasty.confirm(plan(topic, "silent:1"))
    assert [seconds for _, seconds in clusters.waited] == [1, 1]
