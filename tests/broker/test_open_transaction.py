"""What an open transaction at a real broker holds back comes in later, and costs nobody else anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScanner
from keptlog.log.told.conditions import Level
from keptlog.passes.watch import ingest_evidence
from tests.broker.broker import DEADLINE_SECONDS, Broker
from tests.broker.ingesting import Ingesting


@pytest.fixture
def there(broker: Broker, tmp_path: Path) -> Ingesting:
    return Ingesting(broker, tmp_path)


@contextmanager
def open_transaction(there: Ingesting, *values: bytes, partition: int = 0) -> Iterator[Producer]:
    """A transaction with these values in one batch, which somebody else may end; it is aborted at last."""
    settings = {"bootstrap.servers": there.broker.bootstrap, "transactional.id": there.topic, "linger.ms": 500}
    producer = Producer(settings)
    producer.init_transactions(DEADLINE_SECONDS)
    producer.begin_transaction()
    for value in values:
        producer.produce(there.topic, key=b"key", value=value, partition=partition)
    producer.flush(DEADLINE_SECONDS)
    yield producer
    producer.abort_transaction(DEADLINE_SECONDS)


def delete_records(there: Ingesting, partition: int, before_offset: int) -> None:
    admin = there.broker.admin
    for future in admin.delete_records([TopicPartition(there.topic, partition, before_offset)]).values():
        future.result(DEADLINE_SECONDS)


def test_what_waits_behind_it_is_told_and_is_in_no_lag(there: Ingesting) -> None:
    there.create()
    there.produce(b"before")
    with open_transaction(there, b"inside"):
        there.produce(b"beside", b"beside")
        for _ in range(2):  # with something to read, and with nothing
            plans = there.plan()
            assert plans.notes == [
                f"a transaction is open in {there.topic}-0: 3 offsets there can't be read before it ends"
            ]
            assert not there.bring(plans).warnings
        scan = LagScanner(there.store).scan(there.source.settings, wall_clock_ms())
        [topic], [(name, log)] = scan.topics, scan.waiting.items()
        assert (topic.lag, str(name), log.waiting) == (0, f"{there.topic}-0", 3)
        [condition] = ingest_evidence(scan).conditions
        assert (condition.level, condition.topic) == (Level.OPEN, there.topic)
    assert not there.plan().notes
    ended = LagScanner(there.store).scan(there.source.settings, wall_clock_ms())
    assert (ended.waiting, list(ingest_evidence(ended).conditions)) == ({}, [])


def test_a_log_that_begins_inside_of_it_has_nothing_to_read_and_stops_no_other(there: Ingesting) -> None:
    """A broker deletes up to the high watermark, and says then that the last stable offset lies before the start."""
    beside = Ingesting(there.broker, there.home)
    for each in (there, beside):
        each.create(config={"cleanup.policy": "compact,delete"})
        each.produce(b"before")
        each.bring_all()
    admin = there.broker.admin
    admin.create_partitions([NewPartitions(there.topic, 2)])[there.topic].result(DEADLINE_SECONDS)
    with open_transaction(there, *[b"inside"] * 10, partition=1):
        delete_records(there, 1, 5)
        for each in (there, beside):
            each.produce(b"after")
        both = KafkaBrokers(there.source.settings, {each.topic: each.topic for each in (there, beside)})
        plans = there.ingest.plan(both)
        result = there.ingest.carry_out(plans, new_id())
        assert (plans.failed, result.failed) == ({}, {})
        assert plans.notes == [
            f"a transaction is open in {there.topic}-1: 5 offsets there can't be read before it ends"
        ]
        assert there.end_offsets() == [2, 5]
        assert beside.end_offsets() == [2]
        assert not any(there.plan().lag.values())
    there.bring_all()
    assert there.end_offsets() == [2, 11]
