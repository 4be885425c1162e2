"""What a client fetches and leaves out, such as aborted records, is no silence, and no reason to read on for ever."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.kafka_client.leaders import LEADERLESS
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker import part as module
from keptlog.sources.kafka_broker.part import BrokerPart
from tests.sources.kafka_broker.conftest import Mock, read

T = 1_700_000_000_000
SETTINGS = ClientSettings.load({"bootstrap.servers": "127.0.0.1:1"}, {})
STALLED_POLLS = 20
"""Of 0.05 s, in the second that a part waits here."""
Told = int | KafkaError | None


class Client:
    """A consumer that is given no record; at each poll it tells how far it has fetched, an error, or nothing."""

    def __init__(self, told: Iterator[Told]) -> None:
        self.told = told
        self.config: dict[str, Any] = {}
        self.polls = 0
        self.leader, self.leader_state = 1, "CONNECT"

    def __call__(self, config: dict[str, Any]) -> Client:
        self.config = config
        return self

    def assign(self, _: object) -> None: ...

    def close(self) -> None: ...

    def consume(self, _count: int, timeout: float) -> list[Any]:
        assert timeout < 1
        self.polls += 1
        told = next(self.told, None)
        if isinstance(told, KafkaError):
            self.config["error_cb"](told)
        elif told is not None:
            topics = {"left-out": {"partitions": {"0": {"next_offset": told, "leader": self.leader}}}}
            brokers = {"one": {"nodeid": 1, "state": self.leader_state}, "two": {"nodeid": 2, "state": "CONNECT"}}
            self.config["stats_cb"](json.dumps({"topics": topics, "brokers": brokers}))
        return []

    def list_topics(self, _: str, timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"nobody answers in {timeout} s"))


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Client]:
    def reads(
        *told: Told, end_offset: int = 1000, stall_seconds: float = 1, leader: int = 1, leader_state: str = "CONNECT"
    ) -> Client:
        client = Client(iter(told))
        client.leader, client.leader_state = leader, leader_state
        monkeypatch.setattr(module, "Consumer", client)
        part = BrokerPart(SETTINGS, "left-out", TopicPartition("here", 0), 1, end_offset, stall_seconds=stall_seconds)
        assert read(part) == []
        return client

    return reads


def rising(to_offset: int) -> list[Told]:
    """Statistics that come each half second."""
    return [told for offset in range(10, to_offset + 1, 10) for told in [offset, *[None] * (STALLED_POLLS // 2)]]


def test_a_stretch_that_is_left_out_is_read_to_its_end_however_long_that_takes(reading: Callable[..., Client]) -> None:
    client = reading(*rising(1000))
    assert client.polls > 40 * STALLED_POLLS


def test_statistics_come_often_in_a_wait(reading: Callable[..., Client]) -> None:
    assert reading(1000).config["statistics.interval.ms"] == 83
    assert reading(1000, stall_seconds=60).config["statistics.interval.ms"] == 1000


def test_a_part_ends_where_all_of_it_was_left_out_and_reads_nothing_of_what_is_behind(
    reading: Callable[..., Client],
) -> None:
    assert reading(*rising(1_000_000), end_offset=15).polls < 2 * STALLED_POLLS


def test_a_broker_that_falls_silent_in_such_a_stretch_is_given_up_at_the_place_that_was_reached(
    reading: Callable[..., Client],
) -> None:
    with pytest.raises(StorageUnavailable, match=r"nothing came for 1 s at offset 500 of \[1, 1000\); try again"):
        reading(*rising(500), *[500] * 1000)


@pytest.mark.parametrize("polls_between", [0, 1])
def test_what_was_fetched_before_an_outage_is_no_answer_after_it(
    reading: Callable[..., Client], caplog: pytest.LogCaptureFixture, polls_between: int
) -> None:
    refused = KafkaError(KafkaError._TRANSPORT, "127.0.0.1:1/1: Connection refused")
    with (
        caplog.at_level(logging.INFO, module.__name__),
        pytest.raises(StorageUnavailable, match=r"left-out-0 at .*Connection refused"),
    ):
        reading(10, *[None] * polls_between, refused, None, 20, *[None, 20] * 1000)
    assert [each.levelname for each in caplog.records] == ["WARNING"]


def test_a_broker_that_answers_again_with_what_is_left_out_is_told(
    reading: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    refused = KafkaError(KafkaError._TRANSPORT, "127.0.0.1:1/1: Connection refused")
    with caplog.at_level(logging.INFO, module.__name__):
        reading(10, None, refused, *[None] * (STALLED_POLLS // 2), 20, None, 30, None, 1000)
    assert caplog.messages[-1] == "left-out-0 at 127.0.0.1:1 answers again; reading on at offset 30"


REFUSED = KafkaError(KafkaError._SSL, "certificate verify failed")
SLOW: list[Told] = [told for offset in range(100, 1001, 100) for told in [*[None] * 5 * STALLED_POLLS, offset]]
"""Five seconds pass without any sign of such a stretch."""


def test_that_another_broker_lets_nobody_in_ends_no_stretch_whose_leader_is_up(reading: Callable[..., Client]) -> None:
    reading(10, REFUSED, *SLOW, stall_seconds=10, leader_state="UP")


def test_a_leader_that_is_up_and_falls_silent_is_not_told_as_another_one_that_lets_nobody_in(
    reading: Callable[..., Client],
) -> None:
    with pytest.raises(StorageUnavailable, match="nothing came for 10 s at offset 10"):
        reading(10, REFUSED, stall_seconds=10, leader_state="UP")


def test_a_leader_that_lets_nobody_in_is_given_up_long_before_a_silent_one(reading: Callable[..., Client]) -> None:
    with pytest.raises(InvalidConfig, match="certificate verify failed"):
        reading(10, REFUSED, *SLOW, stall_seconds=10)


REFUSED_BY_TWO = KafkaError(KafkaError._SSL, "ssl://127.0.0.1:2/2: certificate verify failed")


def test_a_leader_that_is_down_is_waited_for_and_told_whatever_another_broker_has(
    reading: Callable[..., Client],
) -> None:
    """Its restart takes longer than those two seconds, and no certificate of another one is its reason."""
    reading(10, REFUSED_BY_TWO, *SLOW, stall_seconds=10)
    with pytest.raises(StorageUnavailable, match=r"can't be read: broker 1 of the cluster at .* does not answer"):
        reading(10, REFUSED_BY_TWO, stall_seconds=10)
    password = KafkaError(KafkaError._AUTHENTICATION, "127.0.0.1:2/2: wrong password")
    with pytest.raises(InvalidConfig, match=r"127\.0\.0\.1:1/1: handshake failed"):
        reading(10, password, KafkaError(KafkaError._SSL, "ssl://127.0.0.1:1/1: handshake failed"), stall_seconds=10)


@pytest.mark.parametrize("refused", [REFUSED, REFUSED_BY_TWO])
def test_where_brokers_say_that_nobody_leads_it_one_that_lets_nobody_in_is_no_reason(
    reading: Callable[..., Client], refused: KafkaError
) -> None:
    with pytest.raises(StorageUnavailable, match=r"nothing came for 10 s .* nobody led it when brokers"):
        reading(10, refused, stall_seconds=10, leader=LEADERLESS, leader_state="UP")


def test_records_that_are_queued_are_never_passed_over(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has fetched all long before it gives the last record."""
    monkeypatch.setattr(module, "_TOLD_IN_A_STALL", 60_000)
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 1)
    records = [Record(offset, b"k", b"%d" % offset, T) for offset in range(1500)]
    mock.produce("queued", records)
    assert read(replace(mock.part("queued", 0, 1500), stall_seconds=60)) == records
