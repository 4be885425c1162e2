"""What is told when the broker takes a record not: the first that it did not take, and what to do there."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message, Producer

from keptlog.errors import InvalidRecord, KeptlogError, StalePlan, StorageUnavailable
from keptlog.kafka_client.errors import Trouble
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker import transactions
from keptlog.sinks.kafka_broker.failures import Failures
from keptlog.sinks.kafka_broker.position import Pair
from keptlog.sinks.kafka_broker.target import Target
from keptlog.sinks.kafka_broker.transactions import Transactions

BOOTSTRAP = {"bootstrap.servers": "broker:9092"}


@pytest.fixture
def failures() -> Failures:
    pair = Pair("users", "id-here", Target("people", "id-there", 1, {"max.message.bytes": "1000"}))
    asked = Transactions(Producer(BOOTSTRAP | {"log_level": 0}), Trouble(), 60.0)  # never asked anything
    return Failures(pair, ClientSettings.load(BOOTSTRAP, {}), asked)


def report(failures: Failures, offset: int, code: int) -> None:
    failures.delivery(0, offset, KafkaError(code), Message())


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, InvalidRecord, "it is larger than max.message.bytes=1000 of people"),
        (KafkaError.INVALID_TIMESTAMP, InvalidRecord, "its timestamp is outside of"),
        (KafkaError.INVALID_PRODUCER_EPOCH, StalePlan, "another restore of users to people has begun"),
        (KafkaError._TRANSPORT, StorageUnavailable, "no broker at broker:9092 answers"),
    ],
)
def test_a_refused_record_is_told_with_what_to_do(
    failures: Failures, code: int, kind: type[KeptlogError], text: str
) -> None:
    report(failures, 7, code)
    with pytest.raises(kind, match=text):
        failures.require_none()


def test_a_writer_that_was_slower_than_the_broker_waits_for_is_not_told_of_another_restore(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker has one error for both. Who believed in another restore waited for one that was not there."""
    slept = (5.0, 1000.0)  # by the clock that stands while the machine sleeps, and by the one that goes on
    monkeypatch.setattr(transactions, "_clocks", lambda: (0.0, 900.0))
    failures.transactions.is_used()
    monkeypatch.setattr(transactions, "_clocks", lambda: slept)
    report(failures, 7, KafkaError.INVALID_PRODUCER_EPOCH)
    with pytest.raises(StorageUnavailable, match=r"was open for 100 s, longer than transaction\.timeout\.ms=60000"):
        failures.require_none()


def test_a_writer_in_time_that_the_broker_takes_nothing_from_is_told_of_another_restore(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_clocks", lambda: (0.0, 900.0))
    failures.transactions.is_used()
    monkeypatch.setattr(transactions, "_clocks", lambda: (59.0, 959.0))
    report(failures, 7, KafkaError.INVALID_PRODUCER_EPOCH)
    with pytest.raises(StalePlan, match="another restore"):
        failures.require_none()


def test_only_the_first_is_told_for_what_follows_is_its_consequence(failures: Failures) -> None:
    report(failures, 6, KafkaError._PURGE_QUEUE)
    failures.require_none()
    report(failures, 7, KafkaError.MSG_SIZE_TOO_LARGE)
    report(failures, 8, KafkaError.INVALID_TIMESTAMP)
    with pytest.raises(InvalidRecord, match="beyond offset 7: it is larger"):
        failures.require_none()
