"""Which topics the brokers have that are named is asked of them: the addresses that topics remember leave none out."""

from __future__ import annotations

import pytest

from keptlog.errors import LogCorrupt
from keptlog.home import wall_clock_ms
from keptlog.ingest import kafka_brokers
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers, topics_from_brokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic
from keptlog.sources.kafka_broker.topics import BrokerTopics
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import mock_broker

OLD, A, B = "127.0.0.1:9", "a-1:9092,a-2:9092", "b-1:9092"


def comes_from(store: LogStore, topic: str, source: SourceIdentity) -> None:
    store.create_topic(topic, 4, {})
    store.ingest(topic, [], source, 4, f"run-{topic}")


@pytest.fixture
def two_clusters(store: LogStore) -> LogStore:
    comes_from(store, "orders", SourceIdentity("orders", "id-a", A))
    comes_from(store, "orders-b", SourceIdentity("orders", "id-b", B))
    store.create_topic("profiles", 1, {})
    return store


def ingest_of(store: LogStore) -> Ingest:
    return Ingest(store, in_process_engine(store.files), wall_clock_ms)


def test_all_that_remember_a_broker_are_taken(two_clusters: LogStore) -> None:
    assert topics_from_brokers(two_clusters) == {"orders": "orders", "orders-b": "orders"}


def test_those_that_are_named_are_taken_wherever_they_were(two_clusters: LogStore) -> None:
    assert topics_from_brokers(two_clusters, ["orders-b"]) == {"orders-b": "orders"}


def test_topics_whose_part_in_a_move_of_their_cluster_failed_are_read_at_its_new_address(store: LogStore) -> None:
    """Each remembers the new address once something of it has landed from there."""
    with mock_broker() as broker:
        for topic, address in (("t0", broker.bootstrap), ("t1", OLD), ("t2", OLD)):
            comes_from(store, topic, SourceIdentity(topic, bootstrap=address))
            broker.produce(topic, ("ada", "1"))
        settings = ClientSettings.load({}, {}, where="nowhere")
        ingest = ingest_of(store)
        source = KafkaBrokers(settings, topics_from_brokers(store), broker.bootstrap)
        result = ingest.carry_out(ingest.plan(source), "run")
    assert not result.failed
    assert [store.source_of(topic).positions[0] for topic in ("t0", "t1", "t2")] == [1, 1, 1]


def test_a_topic_of_the_same_name_in_another_cluster_fails_alone_and_nothing_is_to_be_deleted_for_it(
    two_clusters: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(settings: ClientSettings, _topics: list[str], _seconds: float) -> BrokerTopics:
        logs = tuple(SourceLog(number, 0, 9) for number in range(4))
        there = SourceTopic(SourceIdentity("orders", "id-a", settings.bootstrap), logs)
        return BrokerTopics({"orders": there}, {})

    monkeypatch.setattr(kafka_brokers, "look_at_topics", look)
    source = KafkaBrokers(ClientSettings.load({}, {}), topics_from_brokers(two_clusters), A)
    plan = ingest_of(two_clusters).plan(source)
    assert not plan.failed
    stopped = {planned.plan.topic: set(planned.plan.stopped.values()) for planned in plan.topics}
    [why] = stopped.pop("orders-b")
    assert "is not the topic that was read before" in why
    assert "keptlog topic delete" not in why
    assert stopped == {"orders": set()}


def test_one_that_cannot_be_read_is_left_out_by_nobody(two_clusters: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    really = two_clusters.source_of

    def damaged(topic: str) -> object:
        if topic == "profiles":
            raise LogCorrupt("profiles can't be read")
        return really(topic)

    monkeypatch.setattr(LogStore, "source_of", lambda _, topic: damaged(topic))
    assert topics_from_brokers(two_clusters).keys() == {"orders", "orders-b", "profiles"}
