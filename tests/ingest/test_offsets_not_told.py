"""Where a connection breaks while offsets are asked for, they are not known: librdkafka gives -1001, and no error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker.target import Target, Targets
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import PARTITIONS, MockBroker, break_connections, mock_broker

LIST_OFFSETS = 2
BEFORE_EARLIEST = 0
BEFORE_LATEST = 1
BEFORE_STABLE = 2


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        started.produce("users", ("a", "1"), ("a", "2"))
        yield started


def settings(broker: MockBroker) -> ClientSettings:
    return ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})


def failed(store: LogStore, broker: MockBroker) -> list[type[Exception]]:
    """How the topics and topic-partitions failed that an ingest did not bring."""
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    plans = ingest.plan(KafkaBrokers(settings(broker), {"users": "users"}))
    return [type(error) for error in ingest.carry_out(plans, new_id()).failed.values()]


@pytest.mark.parametrize("answers_before", [BEFORE_EARLIEST, BEFORE_LATEST, BEFORE_STABLE])
def test_an_ingest_does_not_take_the_log_for_one_that_was_cut_off(
    store: LogStore, broker: MockBroker, answers_before: int
) -> None:
    break_connections(broker.producer, LIST_OFFSETS, answers_before)
    assert failed(store, broker) == [StorageUnavailable]
    assert failed(store, broker) == []
    break_connections(broker.producer, LIST_OFFSETS, answers_before)
    assert failed(store, broker) == [StorageUnavailable]
    assert failed(store, broker) == []


def test_a_look_at_the_lag_tells_nothing_as_stopped(store: LogStore, broker: MockBroker) -> None:
    failed(store, broker)
    break_connections(broker.producer, LIST_OFFSETS, BEFORE_LATEST)
    seen = LagScanner(store).scan(settings(broker), wall_clock_ms())
    assert (seen.stopped, seen.topics) == ({}, ())
    assert len(seen.unanswered) == 1


@pytest.mark.parametrize("answers_before", [BEFORE_EARLIEST, BEFORE_LATEST])
def test_a_restore_does_not_take_a_topic_with_records_for_an_empty_one(broker: MockBroker, answers_before: int) -> None:
    target = Target("users", "id-there", PARTITIONS, {})
    break_connections(broker.producer, LIST_OFFSETS, answers_before)
    with pytest.raises(StorageUnavailable, match="topic users can't be looked at"):
        Targets(settings(broker)).with_records(target)
    assert Targets(settings(broker)).with_records(target) == [0]
