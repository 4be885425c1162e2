"""A leader that says nothing is given up once: the parts behind wait for a sign of it, and a few seconds for that."""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from keptlog.errors import StorageUnavailable
from keptlog.kafka_client.leaders import LEADERLESS, UNKNOWN
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker import part as module
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.sources.kafka_broker.signs import Signs, Silence
from tests.mock_broker import BROKER_ID, PARTITIONS, delay_answers, mock_broker, set_leader
from tests.sources.kafka_broker.conftest import Mock, read

STALL_SECONDS = 2.0
FEW_SECONDS = 0.2
RECORDS = [Record(0, b"k", b"v", 1_700_000_000_000)]


@pytest.fixture
def hung() -> Iterator[str]:
    """The address of a host that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def parts(hung: str, count: int) -> list[BrokerPart]:
    settings = ClientSettings.load({"bootstrap.servers": hung}, {})
    silence = Silence()
    made = [
        BrokerPart(settings, "t", TopicPartition("t", number), 0, 9, None, silence, STALL_SECONDS)
        for number in range(count)
    ]
    # As they come to a task, together.
    copied: list[BrokerPart] = pickle.loads(pickle.dumps(made))  # noqa: S301  # our own
    return copied


def test_the_second_part_of_a_silent_cluster_waits_a_few_seconds(hung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_SILENCE_SECONDS", FEW_SECONDS)
    told: list[str] = []
    for part in parts(hung, 3):
        with pytest.raises(StorageUnavailable) as given_up:
            read(part)
        told.append(str(given_up.value).partition(": ")[2])
    assert [each.partition(" at offset")[0] for each in told] == [
        f"nothing came for {STALL_SECONDS:g} s",
        f"nothing came for {FEW_SECONDS} s",
        f"nothing came for {FEW_SECONDS} s",
    ]


def test_a_part_of_another_task_waits_as_long_as_ever(hung: str) -> None:
    [first], [other] = parts(hung, 1), parts(hung, 1)
    first.silence.leaders.add(UNKNOWN)
    assert other.wait_seconds(Signs("t", "0", other.silence)) == STALL_SECONDS


@pytest.mark.parametrize("silent", [UNKNOWN, BROKER_ID], ids=["cluster", "broker"])
def test_what_answers_again_is_read_and_waited_for_as_ever(mock: Mock, silent: int) -> None:
    """Also for a part that is over before the client's statistics say who leads."""
    mock.produce(f"after-silence-{silent}", RECORDS)
    part = mock.part(f"after-silence-{silent}", 0, 1)
    part.silence.leaders.add(silent)
    assert read(part) == RECORDS
    assert not part.silence.leaders


def told(state: str, leader: int) -> str:
    partitions = {"0": {"next_offset": 0, "leader": leader}}
    brokers = {
        "first": {"nodeid": -1, "state": "UP"},
        "one": {"nodeid": 1, "state": "UP"},
        "two": {"nodeid": 2, "state": state},
    }
    return json.dumps({"brokers": brokers, "topics": {"t": {"partitions": partitions}}})


@pytest.mark.parametrize(
    ("state", "leader", "answers"),
    [("UP", 2, True), ("APIVERSION_QUERY", 2, False), ("DOWN", 2, False), ("DOWN", 1, True), ("UP", -1, False)],
)
def test_a_slow_leader_that_has_answered_is_waited_for_as_ever(state: str, leader: int, answers: bool) -> None:
    silence = Silence({leader})
    signs = Signs("t", "0", silence)
    signs(told(state, leader))
    assert signs.wait_seconds(60, 3) == (60 if answers else 3)
    assert (leader in silence.leaders) is not answers


def test_a_leader_that_answers_says_nothing_of_another_one_of_its_cluster() -> None:
    """One broker of three may be behind a firewall. Its partitions keep their leader, and lie among all others."""
    silence = Silence()
    waited: list[float] = []
    for leader in (2, 2, 1, 2, 1, 2):
        signs = Signs("t", "0", silence)
        signs(told("CONNECT", leader))
        waited.append(signs.wait_seconds(60, 3))
        if leader == 2:
            signs.given_up()
    assert waited == [60, 3, 60, 3, 60, 3]


def test_once_a_cluster_has_answered_who_leads_it_is_not_silent_as_a_whole() -> None:
    silence = Silence({UNKNOWN})
    first, second = Signs("t", "0", silence), Signs("t", "0", silence)
    first(told("UP", 2))
    assert second.wait_seconds(60, 3) == 60


def of_partition(leader: int, *, unknown: bool) -> str:
    return json.dumps({"topics": {"t": {"partitions": {"0": {"leader": leader, "unknown": unknown}}}}})


def test_that_others_are_led_is_no_news_of_partitions_that_nobody_leads() -> None:
    """Broker 3 of 3 is down, and so is each partition of which it has the only replica."""
    silence = Silence()
    waited: list[float] = []
    for leader in (LEADERLESS, 1, LEADERLESS, 1, LEADERLESS):
        signs = Signs("t", "0", silence)
        signs(told("UP", leader) if leader > 0 else of_partition(leader, unknown=False))
        waited.append(signs.wait_seconds(60, 3))
        if leader == LEADERLESS:
            signs.given_up()
    assert waited == [60, 60, 3, 60, 3]


def test_once_one_of_them_is_led_again_the_next_is_waited_for_as_ever() -> None:
    silence = Silence({LEADERLESS})
    signs = Signs("t", "0", silence)
    signs(of_partition(LEADERLESS, unknown=False))
    assert signs.wait_seconds(60, 3) == 3
    signs(of_partition(2, unknown=False))
    assert silence.leaders == set()


def test_what_no_broker_has_told_of_yet_is_not_taken_for_leaderless() -> None:
    silence = Silence({LEADERLESS})
    signs = Signs("t", "0", silence)
    signs(of_partition(-1, unknown=True))
    assert signs.leader == UNKNOWN
    assert signs.wait_seconds(60, 3) == 60


def test_what_came_from_a_leader_that_is_named_later_is_its_answer_alone() -> None:
    silence = Silence({1, 2})
    signs = Signs("t", "0", silence)
    signs.answers()
    signs(of_partition(-1, unknown=True))
    signs(of_partition(1, unknown=False))
    assert silence.leaders == {2}
    signs(of_partition(2, unknown=False))
    assert silence.leaders == {2}


def test_partitions_that_nobody_leads_are_waited_for_once_between_healthy_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AFTER_SILENCE_SECONDS", FEW_SECONDS)
    with mock_broker() as broker:
        settings = ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})
        silence = Silence()
        told: list[str] = []
        for partition in range(PARTITIONS):
            broker.produce("t", ("k", "v"), partition=partition)
        for partition in (1, 3):
            broker.lose_leader("t", partition)
        for partition in (1, 0, 3, 2):
            part = BrokerPart(settings, "t", TopicPartition("t", partition), 0, 1, None, silence, STALL_SECONDS)
            try:
                told.append(f"{len(read(part))} read")
            except StorageUnavailable as given_up:
                told.append(str(given_up).partition(": ")[2].partition(" at offset")[0])
    long, few = (f"nothing came for {seconds:g} s" for seconds in (STALL_SECONDS, FEW_SECONDS))
    assert told == [long, "1 read", few, "1 read"]


def test_behind_a_healthy_broker_a_silent_one_of_the_same_cluster_is_still_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AFTER_SILENCE_SECONDS", FEW_SECONDS)
    owner = Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "unused", "log_level": 0})
    broker = owner.list_topics(timeout=60).brokers[1]
    settings = ClientSettings.load({"bootstrap.servers": f"{broker.host}:{broker.port}"}, {})
    producer = Producer({"bootstrap.servers": settings.bootstrap or ""})
    for partition in (0, 1):
        producer.produce("t", key=b"k", value=b"v", partition=partition)
    assert not producer.flush(60)
    for partition, leader in ((0, 1), (1, 2)):
        set_leader(owner, "t", partition, leader)
    delay_answers(owner, 2, 60_000)
    silence = Silence()

    def waited(partition: int) -> str:
        part = BrokerPart(settings, "t", TopicPartition("t", partition), 0, 1, None, silence, STALL_SECONDS)
        try:
            return f"{len(read(part))} read"
        except StorageUnavailable as given_up:
            return str(given_up).partition(": ")[2].partition(" at offset")[0]

    long, few = (f"nothing came for {seconds:g} s" for seconds in (STALL_SECONDS, FEW_SECONDS))
    assert [waited(partition) for partition in (1, 0, 1, 0)] == [long, "1 read", few, "1 read"]
