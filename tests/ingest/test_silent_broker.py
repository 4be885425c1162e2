"""A broker that is silent in a cluster that answers is waited for once in an ingest, and not behind each topic."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, SourceIdentity
from keptlog.sources.kafka_broker import topics as module
from tests.mock_broker import PARTITIONS, delay_answers, set_leader

TOPICS = {name: name for name in ("t", "u")}
WAIT_SECONDS, FEW_SECONDS = 2.0, 0.2
SILENT, HEALTHY = 2, 1


@dataclass(frozen=True)
class Cluster:
    """Two brokers; partition 1 of each topic is led by the one that says nothing."""

    owner: Producer
    source: KafkaBrokers

    def survey(self) -> tuple[float, list[str]]:
        """How long it took, and what could not be had."""
        since = time.monotonic()
        failed = self.source.survey(dict.fromkeys(TOPICS)).failed
        return time.monotonic() - since, sorted(failed)

    @property
    def silent(self) -> set[int]:
        """The brokers that are remembered as that."""
        return self.source._silence[self.source.settings.bootstrap].leaders


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(module, "AFTER_SILENCE_SECONDS", FEW_SECONDS)
    owner = Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "unused", "log_level": 0})
    broker = owner.list_topics(timeout=60).brokers[HEALTHY]
    settings = ClientSettings.load({"bootstrap.servers": f"{broker.host}:{broker.port}"}, {})
    producer = Producer({"bootstrap.servers": settings.bootstrap or "", "log_level": 0})
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            producer.produce(topic, key=b"k", value=b"v", partition=partition)
    assert not producer.flush(60)
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            set_leader(owner, topic, partition, SILENT if partition == 1 else HEALTHY)
    delay_answers(owner, SILENT, 600_000)
    return Cluster(owner, KafkaBrokers(settings, TOPICS, wait_seconds=WAIT_SECONDS))


def test_what_was_read_lands_without_a_wait_for_it(cluster: Cluster) -> None:
    since = time.monotonic()
    for topic in TOPICS:
        identity = SourceIdentity(topic, None, cluster.source.settings.bootstrap)
        cluster.source.confirm(IngestPlan(topic, identity, PARTITIONS, ()))
    assert time.monotonic() - since < WAIT_SECONDS


def test_a_later_look_waits_for_it_a_few_seconds_until_it_answers(cluster: Cluster) -> None:
    first_seconds, failed = cluster.survey()
    assert (failed, cluster.silent) == (["t-1", "u-1"], {SILENT})
    seconds, failed = cluster.survey()
    assert (failed, cluster.silent) == (["t-1", "u-1"], {SILENT})
    assert first_seconds >= WAIT_SECONDS > seconds
    delay_answers(cluster.owner, SILENT, 0)
    assert cluster.survey()[1] == []
    assert not cluster.silent


def test_it_is_named_and_not_those_that_answer(cluster: Cluster) -> None:
    why = cluster.source.survey(dict.fromkeys(TOPICS)).failed["t-1"]
    told = f"broker {SILENT} of the cluster at {cluster.source.settings.bootstrap} does not answer: .*; try again.*"
    assert re.fullmatch(f"topic t: its offsets can't be looked at: {told}", str(why)), why


def test_the_reason_is_its_own_and_not_that_of_another_broker(cluster: Cluster) -> None:
    """Nobody listens at an address of the list: that is no reason why a leader is silent."""
    closed = ClientSettings.load({"bootstrap.servers": f"127.0.0.1:1,{cluster.source.settings.bootstrap}"}, {})
    why = KafkaBrokers(closed, TOPICS, wait_seconds=WAIT_SECONDS).survey(dict.fromkeys(TOPICS)).failed["t-1"]
    assert f"broker {SILENT} of the cluster at " in str(why)
    assert "127.0.0.1:1/" not in str(why)
