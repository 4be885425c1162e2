"""A part that is gone since it was surveyed is told as that, and a broker is asked once where nothing comes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import replace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata, TopicMetadata

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.source import NO_PARTITION
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker import part as module
from keptlog.sources.kafka_broker import still_there
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.sources.kafka_broker.still_there import LogThere, why_gone
from tests.mock_broker import PARTITIONS, delay_answers, mock_broker, set_topic_error
from tests.sources.kafka_broker.conftest import Mock, read

RECORDS = [Record(offset, b"k", b"v", 1_700_000_000_000) for offset in range(5)]
STALL_SECONDS = 20
"""Less than librdkafka takes to tell that a topic does not exist."""


def soon(part: BrokerPart) -> BrokerPart:
    return replace(part, stall_seconds=STALL_SECONDS)


def test_a_topic_that_was_deleted_since_it_was_surveyed_is_told_as_that(mock: Mock) -> None:
    with pytest.raises(UnknownTopic) as gone:
        read(soon(mock.part("deleted", 0, 5)))
    assert str(gone.value) == f"{mock.settings.bootstrap} has no topic 'deleted' any more: it was deleted"
    assert gone.value.is_elsewhere


def test_a_partition_of_a_topic_that_was_made_anew_with_fewer_is_told_as_that(mock: Mock) -> None:
    mock.produce("anew", RECORDS)
    part = replace(mock.part("anew", 0, 5), topic_partition=TopicPartition("here", PARTITIONS))
    with pytest.raises(InvalidConfig) as gone:
        read(soon(part))
    assert str(gone.value) == NO_PARTITION


def test_a_topic_that_is_not_shown_any_more_says_what_to_grant() -> None:
    with mock_broker() as broker:
        broker.produce("hidden", ("k", "v"))
        set_topic_error(broker.producer, "hidden", KafkaError.TOPIC_AUTHORIZATION_FAILED)
        settings = ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})
        with pytest.raises(InvalidConfig, match="topic hidden can't be read, which takes READ: the user has no perm"):
            read(soon(BrokerPart(settings, "hidden", TopicPartition("here", 0), 0, 1)))


def test_that_a_broker_which_has_just_started_does_not_know_a_topic_for_a_moment_is_no_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mock_broker() as broker:
        broker.produce("t", ("k", "v"))
        broker.lose_leader("t", 0)
        set_topic_error(broker.producer, "t", KafkaError.UNKNOWN_TOPIC_OR_PART)
        waited: list[float] = []

        def is_told_meanwhile(seconds: float) -> None:
            waited.append(seconds)
            set_topic_error(broker.producer, "t", 0)
            broker.elect_leader("t", 0)

        monkeypatch.setattr(still_there, "_sleep", is_told_meanwhile)
        monkeypatch.setattr(module, "LOOK_AFTER_SECONDS", 0.1)
        settings = ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})
        [record] = read(soon(BrokerPart(settings, "t", TopicPartition("here", 0), 0, 1)))
    assert record.key == b"k"
    assert len(waited) == 1


class KnowsNothing:
    """A broker that no controller has told anything; it knows of none, not even of itself."""

    def list_topics(self, topic: str, timeout: float) -> ClusterMetadata:  # noqa: ARG002  # as its consumer does
        told, gone = ClusterMetadata(), TopicMetadata()
        gone.error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        told.topics = {topic: gone}
        return told


def test_an_answer_that_names_no_broker_is_none(mock: Mock) -> None:
    with pytest.raises(KafkaException, match="BROKER_NOT_AVAILABLE"):
        why_gone(cast("Consumer", KnowsNothing()), mock.settings, [("t", 0)])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The names that are asked for, null for all; each question takes a second of a clock of its own."""
    names: list[str | None] = []
    ask = still_there._asked

    def asking(consumer: Consumer, name: str | None = None) -> ClusterMetadata:
        names.append(name)
        return ask(consumer, name)

    monkeypatch.setattr(still_there, "_asked", asking)
    monkeypatch.setattr(still_there, "_steady_s", lambda: float(len(names)))
    monkeypatch.setattr(still_there, "_sleep", lambda _: None)
    return names


@pytest.mark.parametrize(("wait_seconds", "told"), [(60, 20), (7, 5)], ids=["all", "what there is time for"])
def test_many_topics_that_are_gone_are_asked_for_by_name_once_each_while_there_is_time(
    mock: Mock, asked: list[str | None], wait_seconds: float, told: int
) -> None:
    """A thousand at 30 ms each held an ingest for more than a minute, where 15 s were to be waited."""
    logs = [(f"gone{number:02}", partition) for number in range(20) for partition in (0, 1)]
    with contextlib.closing(Consumer(mock.settings.for_consumer())) as consumer:
        gone = why_gone(consumer, mock.settings, logs, wait_seconds)
    assert asked == [None, None, *(f"gone{number:02}" for number in range(told))]
    assert list(gone) == logs[: 2 * told]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[LogThere]:
    """What was asked for; no broker answers."""
    asked: list[LogThere] = []

    def look(_: Consumer, _settings: ClientSettings, logs: Collection[LogThere]) -> dict[LogThere, KeptlogError]:
        asked.extend(logs)
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    monkeypatch.setattr(module, "why_gone", look)
    return asked


def test_brokers_are_asked_once_in_a_silence_and_what_they_do_not_say_may_come_yet(
    looks: list[LogThere], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0)
    with mock_broker() as broker:
        broker.produce("t", ("k", "v"))
        delay_answers(broker.producer, 1, 60_000)
        settings = ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})
        with pytest.raises(StorageUnavailable, match="nothing came for 1 s"):
            read(BrokerPart(settings, "t", TopicPartition("here", 0), 0, 1, stall_seconds=1))
        delay_answers(broker.producer, 1, 0)
    assert looks == [("t", 0)]


def test_no_broker_is_asked_while_records_come(mock: Mock, looks: list[LogThere]) -> None:
    mock.produce("comes", RECORDS)
    assert read(mock.part("comes", 0, 5)) == RECORDS
    assert not looks
