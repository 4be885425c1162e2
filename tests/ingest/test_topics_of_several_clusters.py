"""Brokers that are named are asked for topics of their cluster alone: another has others, perhaps of the same names."""

from __future__ import annotations

import logging

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt
from keptlog.ingest.kafka_brokers import topics_from_brokers
from keptlog.log.source import SourceIdentity
from keptlog.table.store import LogStore

A, B, MOVED = "a-1:9092,a-2:9092", "b-1:9092", "c-1:9092"


@pytest.fixture
def two_clusters(store: LogStore) -> LogStore:
    comes_from(store, "orders", "orders", A)
    comes_from(store, "orders-b", "orders", B)
    store.create_topic("profiles", 1, {})
    return store


def comes_from(store: LogStore, topic: str, there: str, bootstrap: str) -> None:
    store.create_topic(topic, 1, {})
    store.ingest(topic, [], SourceIdentity(there, bootstrap=bootstrap), 1, f"run-{topic}")


@pytest.mark.parametrize(("named", "chosen"), [(A, "orders"), ("a-2:9092, a-3:9092", "orders"), (B, "orders-b")])
def test_those_of_the_cluster_are_taken_and_the_others_are_told(
    two_clusters: LogStore, named: str, chosen: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert topics_from_brokers(two_clusters, bootstrap=named) == {chosen: "orders"}
    other = A if named == B else B
    assert caplog.messages == [
        f"topics here come from {other} too; those are left out: name them if {named} has them (--topic, and --into if "
        "it has another name here)"
    ]


def test_without_brokers_all_are_taken_from_where_they_are(two_clusters: LogStore) -> None:
    assert topics_from_brokers(two_clusters) == {"orders": "orders", "orders-b": "orders"}


def test_those_that_are_named_are_taken_wherever_they_were(two_clusters: LogStore) -> None:
    assert topics_from_brokers(two_clusters, ["orders-b"], bootstrap=A) == {"orders-b": "orders"}


def test_which_of_several_clusters_has_moved_is_not_guessed(two_clusters: LogStore) -> None:
    with pytest.raises(InvalidConfig) as refused:
        topics_from_brokers(two_clusters, bootstrap=MOVED)
    assert str(refused.value) == (
        f"topics here come from {A}, {B}, and none from {MOVED}: name those that it has (--topic, and --into if it has "
        "another name here)"
    )


def test_a_single_cluster_may_have_another_address_now(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    comes_from(store, "orders", "orders", A)
    comes_from(store, "users", "users", A)
    with caplog.at_level(logging.WARNING):
        assert topics_from_brokers(store, bootstrap=MOVED) == {"orders": "orders", "users": "users"}
    assert not caplog.messages


def test_one_that_cannot_be_read_is_left_out_by_nobody(two_clusters: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    really = two_clusters.source_of

    def damaged(topic: str) -> object:
        if topic == "profiles":
            raise LogCorrupt("profiles can't be read")
        return really(topic)

    monkeypatch.setattr(LogStore, "source_of", lambda _, topic: damaged(topic))
    assert topics_from_brokers(two_clusters, bootstrap=A) == {"orders": "orders", "profiles": "profiles"}
