"""Brokers that are named are asked which topics they have, and fill none that may be another cluster's.

An id decides, wherever the topic was. Where none is known, a topic that was elsewhere has to be named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.home import wall_clock_ms
from keptlog.ingest import kafka_brokers
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers, topics_from_brokers
from keptlog.ingest.plans import IngestPlans
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.not_shown import why_not_shown
from keptlog.log.source import SourceIdentity
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_topics
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import records_of
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


def with_ids(monkeypatch: pytest.MonkeyPatch, ids: Mapping[str | None, str | None]) -> None:
    """Let mock brokers say ids as those of today do: the same of each topic, by address."""
    really = look_at_topics

    def look(settings: ClientSettings, topics: Sequence[str], seconds: float, silence: Silence) -> BrokerTopics:
        found = really(settings, topics, seconds, silence)
        told = {
            name: replace(each, source=replace(each.source, topic_id=ids[settings.bootstrap]))
            for name, each in found.topics.items()
        }
        return replace(found, topics=told)

    monkeypatch.setattr(kafka_brokers, "look_at_topics", look)
    monkeypatch.setattr(kafka_brokers, "look_at_ids", look)


def ingested_from(store: LogStore, bootstrap: str, named: Mapping[str, str] | None = None) -> IngestResult:
    """As ``ingest kafka --bootstrap`` does, with or without names."""
    ingest, settings = ingest_of(store), ClientSettings.load({}, {}, where="nowhere")
    source = KafkaBrokers(settings, named or topics_from_brokers(store), bootstrap, are_named=bool(named))
    return ingest.carry_out(ingest.plan(source), f"run-{uuid4()}")


def test_topics_whose_part_in_a_move_of_their_cluster_failed_are_read_at_its_new_address(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each remembers the new address once something of it has landed from there."""
    with mock_broker() as broker:
        with_ids(monkeypatch, {broker.bootstrap: "id"})
        for topic, address in (("t0", broker.bootstrap), ("t1", OLD), ("t2", OLD)):
            comes_from(store, topic, SourceIdentity(topic, "id", address))
            broker.produce(topic, ("ada", "1"))
        result = ingested_from(store, broker.bootstrap)
    assert not result.failed
    assert not result.warnings
    assert [store.source_of(topic).positions[0] for topic in ("t0", "t1", "t2")] == [1, 1, 1]


def test_where_no_id_is_known_a_topic_is_not_filled_from_a_cluster_that_nothing_shows_it_to_be_in(
    store: LogStore,
) -> None:
    """Brokers before 2.8 have no ids; their records would be mixed, at the offsets of others."""
    with mock_broker() as a, mock_broker() as b:
        a.produce("orders", ("ada", "of A"), ("ada", "of A"))
        b.produce("orders", ("bob", "of B"))
        comes_from(store, "orders", SourceIdentity("orders", bootstrap=a.bootstrap))
        ingested_from(store, b.bootstrap, {"orders-b": "orders"})
        result = ingested_from(store, a.bootstrap)
        assert not result.failed
        assert result.warnings == (why_not_shown(["orders-b"], b.bootstrap, a.bootstrap),)
        assert [record.value for record in records_of(store, "orders")] == [b"of A", b"of A"]
        assert [record.value for record in records_of(store, "orders-b")] == [b"of B"]
        assert store.source_of("orders-b").source == SourceIdentity("orders", bootstrap=b.bootstrap)


def test_a_topic_that_is_declared_and_was_never_ingested_is_not_filled_from_another_cluster(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no id yet, though its brokers have: it would take that of the others for good."""
    with mock_broker() as a, mock_broker() as b:
        with_ids(monkeypatch, {a.bootstrap: "id-a", b.bootstrap: "id-b"})
        for broker in (a, b):
            broker.produce("orders", ("ada", broker.bootstrap))
        comes_from(store, "orders", SourceIdentity("orders", "id-a", a.bootstrap))
        comes_from(store, "orders-b", SourceIdentity("orders", bootstrap=b.bootstrap))
        assert len(ingested_from(store, a.bootstrap).warnings) == 1
        assert not records_of(store, "orders-b")
        assert not ingested_from(store, b.bootstrap, {"orders-b": "orders"}).failed
        assert [record.value for record in records_of(store, "orders-b")] == [b.bootstrap.encode()]


def test_a_topic_of_the_same_name_in_another_cluster_is_left_alone_and_nothing_is_to_be_deleted_for_it(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mock_broker() as a:
        with_ids(monkeypatch, {a.bootstrap: "id-a"})
        a.produce("orders", ("ada", "of A"))
        comes_from(store, "orders", SourceIdentity("orders", "id-a", a.bootstrap))
        comes_from(store, "orders-b", SourceIdentity("orders", "id-b", B))
        comes_from(store, "users", SourceIdentity("users", "id-u", B))
        result = ingested_from(store, a.bootstrap)
        assert not result.failed
        assert result.warnings == (
            f"orders-b, users left out: last at {B}, and nothing shows that {a.bootstrap} has the same. What still is "
            f"at {B} is read there without --bootstrap; what {a.bootstrap} has now is to be named (--topic, and "
            "--into if it has another name here)",
        )
        [why] = set(map(str, ingested_from(store, a.bootstrap, {"orders-b": "orders"}).failed.values()))
        assert "is not the topic that was read before" in why
        assert "keptlog topic delete" not in why
        [why] = map(str, ingested_from(store, a.bootstrap, {"users": "users"}).failed.values())
        assert why.endswith(f"; it was last at {B}: if it still is there, leave out --bootstrap")


def test_brokers_that_nothing_shows_to_have_any_of_the_topics_are_refused(store: LogStore) -> None:
    comes_from(store, "orders", SourceIdentity("orders", bootstrap=B))
    with mock_broker() as a, pytest.raises(InvalidConfig) as refused:
        ingested_from(store, a.bootstrap)
    assert str(refused.value) == why_not_shown(["orders"], B, a.bootstrap)


def test_brokers_that_give_no_answer_fail_none_that_was_elsewhere(two_clusters: LogStore) -> None:
    def asked(bootstrap: str) -> IngestPlans:
        settings = ClientSettings.load({}, {}, where="nowhere")
        source = KafkaBrokers(settings, topics_from_brokers(two_clusters), bootstrap, wait_seconds=0.3)
        return ingest_of(two_clusters).plan(source)

    comes_from(two_clusters, "gone", SourceIdentity("gone", bootstrap=OLD))
    plans = asked(OLD)
    assert plans.failed.keys() == {"gone"}
    assert len(plans.warnings) == 2
    two_clusters.delete_topic("gone", wall_clock_ms())
    with pytest.raises(StorageUnavailable):
        asked(OLD)


def test_a_log_that_ends_before_the_position_is_not_to_be_deleted_while_it_may_be_of_another_cluster(
    store: LogStore,
) -> None:
    with mock_broker() as a, mock_broker() as b:
        a.produce("orders", ("ada", "of A"))
        b.produce("orders", ("bob", "of B"), ("bob", "of B"))
        ingested_from(store, b.bootstrap, {"orders": "orders"})
        [why] = map(str, ingested_from(store, a.bootstrap, {"orders": "orders"}).failed.values())
        assert why.startswith(
            f"it was last at {b.bootstrap}: if it still is there, leave out --bootstrap. If it is not, "
        )


def test_one_that_cannot_be_read_is_left_out_by_nobody(two_clusters: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    really = two_clusters.source_of

    def damaged(topic: str) -> object:
        if topic == "profiles":
            raise LogCorrupt("profiles can't be read")
        return really(topic)

    monkeypatch.setattr(LogStore, "source_of", lambda _, topic: damaged(topic))
    assert topics_from_brokers(two_clusters).keys() == {"orders", "orders-b", "profiles"}
