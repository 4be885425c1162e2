"""Whether logs were cut off is asked of a whole cluster at once, and each answers for itself alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.errors import Trouble, broker_errors
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import NO_PARTITION, IngestPlan, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker import cuts as module
from keptlog.sources.kafka_broker.cuts import Asked, ends_of_epochs
from keptlog.sources.kafka_broker.still_there import LogThere
from tests.mock_broker import PARTITIONS, delay_answers, set_leader

WAIT_SECONDS = 4


@pytest.fixture
def owner() -> Producer:
    """A cluster of two brokers: one leads t-0, the other one t-1, and each log has one record."""
    made = Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "unused", "log_level": 0})
    for partition in (0, 1):
        made.produce("t", key=b"k", value=b"v", partition=partition)
    assert not made.flush(60)
    for partition, leader in ((0, 1), (1, 2)):
        set_leader(made, "t", partition, leader)
    return made


@pytest.fixture
def settings(owner: Producer) -> ClientSettings:
    broker = owner.list_topics(timeout=60).brokers[1]
    return ClientSettings.load({"bootstrap.servers": f"{broker.host}:{broker.port}"}, {})


def at(*logs: LogThere) -> dict[LogThere, OffsetRange]:
    return {log: OffsetRange(log[1], 1, 1, 1, 0, 1) for log in logs}


@contextmanager
def busy(owner: Producer) -> Iterator[None]:
    """Records come to t-0 all the time."""
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.02):
            owner.produce("t", key=b"k", value=b"v", partition=0)
            owner.poll(0)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    finally:
        stop.set()
        writing.join()


def test_logs_of_several_leaders_answer_together(owner: Producer, settings: ClientSettings) -> None:
    assert ends_of_epochs(settings, at(("t", 0), ("t", 1)), 60) == ({("t", 0): 1, ("t", 1): 1}, {})


def test_a_silent_leader_costs_its_own_log_and_no_more_than_the_wait_also_while_another_one_has_records(
    owner: Producer, settings: ClientSettings
) -> None:
    delay_answers(owner, 2, 60_000)
    began = time.monotonic()
    with busy(owner):
        ends, errors = ends_of_epochs(settings, at(("t", 0), ("t", 1)), WAIT_SECONDS)
    assert time.monotonic() - began < WAIT_SECONDS + 10
    assert ends == {("t", 0): 1}
    [(name, error)] = errors.items()
    assert name == ("t", 1)
    assert isinstance(error, StorageUnavailable)
    assert str(error) == (
        "it can't be told whether records were cut off there, and the next ingest asks again: no leader at "
        f"{settings.bootstrap} said it in time"
    )


def test_a_log_there_that_is_in_two_topics_here_is_asked_for_once_for_each(settings: ClientSettings) -> None:
    there = SourceIdentity("t", None, settings.bootstrap)
    plans = [IngestPlan(name, there, 1, (), unsure=tuple(at(("t", 0)).values())) for name in ("here", "again")]
    ends, errors = KafkaBrokers(settings, {"here": "t", "again": "t"}).ends_of_epochs(plans)
    assert (ends, errors) == ({TopicPartition("here", 0): 1, TopicPartition("again", 0): 1}, {})


def test_that_nobody_listens_is_told_for_all_and_is_not_waited_for_to_the_end() -> None:
    settings = ClientSettings.load({"bootstrap.servers": "127.0.0.1:1"}, {})
    ends, errors = ends_of_epochs(settings, at(("t", 0), ("t", 1)), 60)
    assert not ends
    assert errors.keys() == {("t", 0), ("t", 1)}
    for error in errors.values():
        assert isinstance(error, StorageUnavailable)
        assert "no broker at 127.0.0.1:1 answers: " in str(error)
        assert "Connection refused" in str(error)


def test_that_a_user_is_not_let_in_is_told_as_that(settings: ClientSettings) -> None:
    user = {"sasl.mechanism": "PLAIN", "sasl.username": "somebody", "sasl.password": "of-somebody"}
    config = {"bootstrap.servers": settings.bootstrap or "", "security.protocol": "SASL_PLAINTEXT", **user}
    [error] = ends_of_epochs(ClientSettings.load(config, {}), at(("t", 0)), 60)[1].values()
    assert isinstance(error, InvalidConfig)
    assert "refuses the user or the password" in str(error)
    assert "the next ingest" not in str(error)


@pytest.mark.parametrize(("topic", "others"), [("t", {("u", 0)}), (None, set())])
def test_an_error_without_a_partition_is_of_the_whole_topic_and_one_without_a_topic_of_all(
    topic: str | None, others: set[LogThere]
) -> None:
    asked = Asked(ClientSettings.load({}, {}), Trouble(), at(("t", 0), ("t", 1), ("u", 0)))
    asked.hear(Message(topic=topic, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    assert asked.open == others
    assert asked.errors.keys() == {("t", 0), ("t", 1), ("u", 0)} - others
    assert all(isinstance(error, InvalidConfig) for error in asked.errors.values())


def test_what_is_no_error_and_of_no_log_answers_for_none() -> None:
    asked = Asked(ClientSettings.load({}, {}), Trouble(), at(("t", 0)))
    asked.hear(Message())
    assert (asked.open, asked.ends, asked.errors) == ({("t", 0)}, {}, {})


def test_that_a_user_may_not_read_is_the_same_for_all_logs_of_a_topic_and_says_what_to_grant() -> None:
    settings = ClientSettings.load({"bootstrap.servers": "broker:9092"}, {})
    asked = Asked(settings, Trouble(), at(("t", 0), ("t", 1)))
    for partition in (0, 1):
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, f"Fetch from broker {partition} failed")
        asked.hear(Message(topic="t", partition=partition, error=error))
    assert all(isinstance(error, InvalidConfig) for error in asked.errors.values())
    assert {str(error) for error in asked.errors.values()} == {
        "topic t can't be read, which takes READ: the user has no permission at broker:9092: "
        "Broker: Topic authorization failed; have it granted"
    }


def test_a_topic_that_was_deleted_since_it_was_looked_at_is_told_as_that(settings: ClientSettings) -> None:
    """A consumer says nothing of it for half a minute."""
    ends, errors = ends_of_epochs(settings, at(("deleted", 0), ("deleted", 1), ("t", 0)), WAIT_SECONDS)
    assert ends == {("t", 0): 1}
    assert errors.keys() == {("deleted", 0), ("deleted", 1)}
    for error in errors.values():
        assert isinstance(error, UnknownTopic)
        assert error.is_elsewhere
        assert str(error) == f"{settings.bootstrap} has no topic 'deleted' any more: it was deleted"


def test_a_partition_of_a_topic_that_was_made_anew_with_fewer_is_told_as_that(settings: ClientSettings) -> None:
    ends, errors = ends_of_epochs(settings, at(("t", 0), ("t", PARTITIONS), ("deleted", 0)), WAIT_SECONDS)
    assert ends == {("t", 0): 1}
    assert errors.keys() == {("t", PARTITIONS), ("deleted", 0)}
    assert isinstance(errors["t", PARTITIONS], InvalidConfig)
    assert str(errors["t", PARTITIONS]) == NO_PARTITION


@pytest.fixture
def in_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third broker, which leads nothing that is asked for, lets nobody in."""

    @contextmanager
    def with_trouble(settings: ClientSettings, doing: str) -> Iterator[Trouble]:
        with broker_errors(settings, doing) as trouble:
            trouble(KafkaError(KafkaError._SSL, "certificate verify failed"))
            yield trouble

    monkeypatch.setattr(module, "broker_errors", with_trouble)


@pytest.mark.usefixtures("in_trouble")
@pytest.mark.parametrize("others", [{("t", 0)}, set()], ids=["another one answers", "alone"])
def test_a_slow_leader_is_not_told_as_the_one_of_several_brokers_that_lets_nobody_in(
    owner: Producer, settings: ClientSettings, others: set[LogThere]
) -> None:
    delay_answers(owner, 2, 60_000)
    ends, errors = ends_of_epochs(settings, at(("t", 1), *others), WAIT_SECONDS)
    assert ends.keys() == others
    [error] = errors.values()
    assert isinstance(error, StorageUnavailable)
    assert str(error) == (
        "it can't be told whether records were cut off there, and the next ingest asks again: no leader at "
        f"{settings.bootstrap} said it in time; at one broker: no TLS connection to {settings.bootstrap}: "
        "certificate verify failed; look at the ssl.* settings"
    )


@pytest.mark.usefixtures("in_trouble")
def test_logs_that_answer_one_after_the_other_are_waited_for_though_one_broker_lets_nobody_in(
    settings: ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of logs take their time."""
    clock = iter(count(0, 0.2))  # seconds, some for each look at it
    monkeypatch.setattr(module, "_steady_s", lambda: next(clock))
    logs = [("t", number) for number in range(20)]
    monkeypatch.setattr(module, "Consumer", lambda _: OneByOne(logs))
    assert ends_of_epochs(settings, at(*logs), 10_000) == (dict.fromkeys(logs, 1), {})


class Assigned:
    """What a consumer is told, and need not answer."""

    def assign(self, _: object) -> None: ...

    def pause(self, _: object) -> None: ...

    def close(self) -> None: ...


@dataclass
class Leader(Assigned):
    """A consumer by a clock of its own, that hears of t-1 at ``answers_s``; a look takes all the time it is given."""

    answers_s: float
    now_s: float = 0
    looks_s: list[float] = field(default_factory=list)

    def consume(self, _count: int, timeout: float) -> list[Message]:
        self.now_s += timeout
        return [Message(topic="t", partition=1)] if self.now_s >= self.answers_s else []

    def why_gone(
        self, _consumer: object, _settings: object, _logs: object, wait_seconds: float
    ) -> dict[LogThere, KeptlogError]:
        self.looks_s.append(self.now_s)
        self.now_s += max(wait_seconds, 0) + 1  # a second passes before brokers are asked again
        return {}


def heard(leader: Leader, settings: ClientSettings, monkeypatch: pytest.MonkeyPatch) -> set[LogThere]:
    monkeypatch.setattr(module, "_steady_s", lambda: leader.now_s)
    monkeypatch.setattr(module, "Consumer", lambda _: leader)
    monkeypatch.setattr(module, "why_gone", leader.why_gone)
    ends, errors = ends_of_epochs(settings, at(("t", 1), ("gone", 0)), 10)
    assert errors.keys() == {("t", 1), ("gone", 0)} - ends.keys()
    return set(ends)


def test_a_leader_that_answers_while_many_topics_that_are_gone_are_asked_for_is_heard(
    settings: ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heard(Leader(answers_s=3), settings, monkeypatch) == {("t", 1)}


def test_nobody_looks_again_once_the_time_is_up(settings: ClientSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Leader(answers_s=60)
    assert heard(silent, settings, monkeypatch) == set()
    assert len(silent.looks_s) == 1
    assert silent.now_s == pytest.approx(10, abs=0.1)


class OneByOne(Assigned):
    """A consumer that is given a record of one log at each other poll."""

    def __init__(self, logs: list[LogThere]) -> None:
        self.messages = [given for log in logs for given in ([], [Message(topic=log[0], partition=log[1])])]

    def consume(self, _count: int, timeout: float) -> list[Message]:
        assert timeout < 1
        return self.messages.pop(0)

    def list_topics(self, _: str, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"{timeout}"))
