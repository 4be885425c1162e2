"""Several topics are looked at with one connection; one that is not there stands in nobody's way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata

from keptlog.errors import InvalidConfig, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.source import SourceIdentity, SourceLog
from keptlog.sources.kafka_broker import topics as looks
from keptlog.sources.kafka_broker.topics import BrokerTopics, look_at_ids, look_at_topics
from tests.mock_broker import forbid_to_describe, mock_broker, set_leader
from tests.sources.kafka_broker.conftest import Mock

NOBODY = -1


def test_topics_are_found_with_where_they_begin_and_may_be_read_to(mock: Mock) -> None:
    mock.produce("looked-at", [Record(0, b"k", b"v", 1)] * 3)
    found = look_at_topics(mock.settings, ["looked-at"])
    assert not found.missing
    topic = found.topics["looked-at"]
    assert topic.source == SourceIdentity("looked-at", None, mock.settings.bootstrap)
    assert topic.logs == (SourceLog(0, 0, 3), SourceLog(1, 0, 0), SourceLog(2, 0, 0), SourceLog(3, 0, 0))


def test_a_topic_that_is_not_there_is_named_with_those_that_are_like_it(mock: Mock) -> None:
    mock.produce("orders", [Record(0, b"k", b"v", 1)])
    found = look_at_topics(mock.settings, ["orders", "ordres", "??"])
    assert set(found.topics) == {"orders"}
    assert isinstance(found.missing["ordres"], UnknownTopic)
    assert "did you mean orders" in str(found.missing["ordres"])
    assert "it shows" in str(found.missing["??"])


@pytest.mark.parametrize("look", [look_at_topics, look_at_ids])
@pytest.mark.parametrize("name", ["", ".", "??", "nul\0", "lone-\ud800", "long" * 63])
def test_a_name_that_no_broker_takes_is_one_of_a_topic_that_is_not_there(
    mock: Mock, name: str, look: Callable[[ClientSettings, Sequence[str]], BrokerTopics]
) -> None:
    mock.produce("orders", [Record(0, b"k", b"v", 1)])
    found = look(mock.settings, ["orders", name])
    assert found.topics.keys() == {"orders"}
    assert isinstance(found.missing[name], UnknownTopic)
    # A name that looks like one that other tests have made is told with that.
    assert re.search(f"has no topic {re.escape(repr(name))}: (it shows|did you mean)", str(found.missing[name]))


def test_a_partition_without_a_leader_fails_alone(mock: Mock) -> None:
    for topic in ("led", "partly-led"):
        mock.produce(topic, [Record(0, b"k", b"v", 1)])
    set_leader(mock.owner, "partly-led", 1, NOBODY)
    found = look_at_topics(mock.settings, ["led", "partly-led"])
    assert not found.missing
    assert found.topics["led"].is_whole
    assert not found.topics["partly-led"].is_whole
    assert found.topics["partly-led"].logs == (SourceLog(0, 0, 1), SourceLog(2, 0, 0), SourceLog(3, 0, 0))
    assert list(found.failed) == ["partly-led"]
    [(partition, error)] = found.failed["partly-led"].items()
    assert (partition, type(error)) == (1, StorageUnavailable)
    assert "Leader not available" in str(error)


def test_a_topic_none_of_whose_partitions_has_a_leader_is_missing(mock: Mock) -> None:
    mock.produce("unled", [Record(0, b"k", b"v", 1)])
    for partition in range(4):
        set_leader(mock.owner, "unled", partition, NOBODY)
    found = look_at_topics(mock.settings, ["unled"])
    assert (found.topics, found.failed) == ({}, {})
    assert "No leaders found" in str(found.missing["unled"])


@pytest.mark.parametrize("look", [look_at_topics, look_at_ids])
def test_a_topic_that_all_topics_lack_for_want_of_describe_is_not_told_as_gone(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[ClientSettings, Sequence[str]], BrokerTopics]
) -> None:
    with mock_broker() as broker:
        for topic in ("hidden", "shown"):
            broker.produce(topic, ("k", "v"))
        forbid_to_describe(monkeypatch, broker.producer, "hidden")
        found = look(ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {}), ["gone", "hidden", "shown"])
    assert found.topics.keys() == {"shown"}
    assert {name: type(error) for name, error in found.missing.items()} == {
        "gone": UnknownTopic,
        "hidden": InvalidConfig,
    }
    assert str(found.missing["hidden"]) == (
        "topic hidden: it can't be described, which takes DESCRIBE: the user has no permission at "
        f"{broker.bootstrap}: Broker: Topic authorization failed; have it granted"
    )


def test_brokers_that_fall_silent_before_they_are_asked_by_name_are_told_as_that(
    mock: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FallsSilent(AdminClient):
        def list_topics(self, *names: str, timeout: float) -> ClusterMetadata:  # type: ignore[override]
            if names:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return super().list_topics(timeout=timeout)

    monkeypatch.setattr(looks, "AdminClient", FallsSilent)
    with pytest.raises(StorageUnavailable, match=r"topic gone can't be looked at: no broker at 127.0.0.1:\d+ answers"):
        look_at_topics(mock.settings, ["gone"], wait_seconds=1)


def test_looking_creates_no_topic(mock: Mock) -> None:
    look_at_topics(mock.settings, ["never-made"])
    assert "never-made" not in Producer(mock.settings.for_producer()).list_topics(timeout=10).topics


def test_nobody_waits_long_for_a_broker_that_is_not_there(mock: Mock) -> None:
    with pytest.raises(StorageUnavailable, match=r"topic t can't be looked at: no broker at 127.0.0.1:1 answers"):
        look_at_topics(mock.settings.at("127.0.0.1:1"), ["t"], wait_seconds=1)
