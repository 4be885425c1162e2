"""A broker that is silent in a cluster that answers is waited for once in an ingest, and not behind each topic."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from keptlog.errors import StorageUnavailable
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.leaders import LEADERLESS
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import IngestPlan, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker import topics as module
from keptlog.sources.kafka_broker.part import BrokerPart
from tests.mock_broker import PARTITIONS, delay_answers, set_leader
from tests.mock_cluster import MockCluster, mock_cluster, seen_elsewhere

TOPICS = {name: name for name in ("t", "u")}
WAIT_SECONDS, FEW_SECONDS = 2.0, 0.2
SILENT, HEALTHY = 2, 1


@dataclass(frozen=True)
class Cluster:
    """Two brokers; partition 1 of each topic is led by the one that says nothing."""

    owner: Producer
    source: KafkaBrokers
    mock: MockCluster

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
    mock = mock_cluster(HEALTHY, SILENT)
    for topic in TOPICS:
        mock.create(topic, {1: SILENT})
    delay_answers(mock.owner, SILENT, 600_000)
    settings = ClientSettings.load({"bootstrap.servers": mock.bootstrap}, {})
    return Cluster(mock.owner, KafkaBrokers(settings, TOPICS, wait_seconds=WAIT_SECONDS), mock)


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


@pytest.mark.parametrize(
    ("advertised", "told"),
    [
        (("127.0.0.1", 1), "does not answer: 127.0.0.1:1/2: .*Connection refused.*; try again when it does"),
        (("x.invalid", 9092), "is not found: x.invalid:9092/2: Failed to resolve .*advertised.listeners.*"),
    ],
)
@pytest.mark.parametrize("others", ["", "127.0.0.1:2,y.invalid:9092,"])
def test_the_reason_is_its_own_and_not_that_of_another_address(
    cluster: Cluster, advertised: tuple[str, int], told: str, others: str
) -> None:
    """Of a leader that nobody can reach at what it calls itself, no more was said than that time was up."""
    with seen_elsewhere(cluster.mock, SILENT, advertised) as address:
        there = ClientSettings.load({"bootstrap.servers": others + address}, {})
        why = KafkaBrokers(there, TOPICS, wait_seconds=WAIT_SECONDS).survey(dict.fromkeys(TOPICS)).failed["t-1"]
    said = f"topic t: its offsets can't be looked at: broker {SILENT} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(why)), why


@pytest.mark.parametrize(
    ("advertised", "told"),
    [
        (("127.0.0.1", 1), "does not answer: 127.0.0.1:1/2: .*Connection refused.*; try again when it does"),
        (("x.invalid", 9092), "is not found: x.invalid:9092/2: Failed to resolve .*advertised.listeners.*"),
    ],
)
def test_so_is_the_controller_which_alone_is_asked_for_settings(
    cluster: Cluster, advertised: tuple[str, int], told: str
) -> None:
    with seen_elsewhere(cluster.mock, SILENT, advertised, controller=SILENT) as address:
        there = ClientSettings.load({"bootstrap.servers": f"y.invalid:9092,{address}"}, {})
        _, errors = module.topic_settings(there, ["t"], WAIT_SECONDS)
    said = f"topic t: its settings can't be looked at: broker {SILENT} of the cluster at [^ ]* {told}"
    assert re.fullmatch(said, str(errors["t"])), errors


@pytest.mark.parametrize(
    ("advertised", "told"),
    [
        (("127.0.0.1", 1), "does not answer: 127.0.0.1:1/2: .*Connection refused.*; try again when it does"),
        (("x.invalid", 9092), "is not found: x.invalid:9092/2: Failed to resolve .*advertised.listeners.*"),
    ],
)
@pytest.mark.parametrize("others", ["", "127.0.0.1:2,y.invalid:9092,"])
def test_who_reads_from_it_is_told_the_same_and_not_that_no_broker_answers(
    cluster: Cluster, advertised: tuple[str, int], told: str, others: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a machine that does not know its name, or once it is down: where the cluster is asked somebody answers."""
    with seen_elsewhere(cluster.mock, SILENT, advertised) as address:
        there = ClientSettings.load({"bootstrap.servers": others + address}, {})
        part = BrokerPart(there, "t", TopicPartition("t", 1), 0, 1, stall_seconds=3)
        with pytest.raises(StorageUnavailable) as why:
            list(part.read(lambda _: None))
    said = f"broker {SILENT} of the cluster at [^ ]* {told}"
    assert re.fullmatch(f"t-1 at [^ ]* can't be read: {said}", str(why.value)), why.value
    [warned] = caplog.messages
    assert re.fullmatch(f"t-1 at [^ ]*: {said}; waiting for it for up to 3 s", warned), warned


@pytest.mark.parametrize("others", ["", "127.0.0.1:2,"])
def test_where_brokers_say_that_nobody_leads_a_log_no_address_is_the_reason(
    cluster: Cluster, others: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a log whose only replica is down: with one wrong address in the list no broker was said to answer."""
    set_leader(cluster.owner, "t", 1, LEADERLESS)
    there = ClientSettings.load({"bootstrap.servers": others + (cluster.source.settings.bootstrap or "")}, {})
    part = BrokerPart(there, "t", TopicPartition("t", 1), 0, 1, stall_seconds=3)
    with pytest.raises(StorageUnavailable, match=r"nobody led it when brokers last told of it; try again$"):
        list(part.read(lambda _: None))
    assert not caplog.messages
