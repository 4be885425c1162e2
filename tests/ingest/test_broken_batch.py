"""A batch that is damaged at the broker is damage, with its offset and the ways out, and no outage."""

from __future__ import annotations

import socket
import struct

import pytest
from confluent_kafka import KafkaError

from keptlog.dagster.assets.outage import outage_among
from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.errors import translated
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import MockBroker, mock_broker
from tests.sources.kafka_log.encoder import BatchOptions, batch, whole_batch

NOW_MS = 1_700_000_000_000
_PRODUCE = 0
_FLIPPED = batch([Record(0, b"k2", b"v2", NOW_MS), Record(1, b"k3", b"v3", NOW_MS)])
BATCHES = {
    "a flipped bit": _FLIPPED[:-2] + bytes([_FLIPPED[-2] ^ 1]) + _FLIPPED[-1:],
    "no gzip": whole_batch(b"no gzip", (0, 1), (NOW_MS, NOW_MS), 2, BatchOptions(codec="gzip")),
}


def produce(broker: MockBroker, topic: str, content: bytes) -> None:
    """Append bytes to partition 0 as they are, which no producer would do."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    header = struct.pack(">hhi", _PRODUCE, 3, 1) + struct.pack(">h", -1) + struct.pack(">h", -1)
    body = header + struct.pack(">hii", 1, 5_000, 1) + name + struct.pack(">iii", 1, 0, len(content)) + content
    host, port = broker.bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        assert connection.recv(4)


@pytest.mark.parametrize("content", BATCHES.values(), ids=BATCHES)
def test_it_is_told_with_its_offset_and_both_ways_out(content: bytes) -> None:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"), ("b", "2"))
        produce(broker, "users", content)
        broker.produce("users", ("c", "3"))
        settings = ClientSettings.load({}, {}).at(broker.bootstrap)
        part = BrokerPart(settings, "users", TopicPartition("users", 0), 0, 5, stall_seconds=20)
        tables = part.read(lambda _: None)
        assert next(tables)["offset"].to_pylist() == [0, 1]
        with pytest.raises(LogCorrupt, match="the batch at offset 2 can't be read") as raised:
            next(tables)
    assert raised.value.whole_before_offset == 2
    assert "let a replica lead it that is whole" in str(raised.value)
    assert "--skip-lost" in str(raised.value)
    assert outage_among({"users-0": raised.value}, is_any_done=False) is None


def test_who_only_looks_is_told_too(store: LogStore) -> None:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"))
        settings = ClientSettings.load({}, {}).at(broker.bootstrap)
        ingest = Ingest(store, in_process_engine(store.files), lambda: NOW_MS)
        source = KafkaBrokers(settings, {"users": "users"}, broker.bootstrap)
        assert not ingest.carry_out(ingest.plan(source), "run-1").failed
        produce(broker, "users", BATCHES["a flipped bit"])
        assert list(ingest.carry_out(ingest.plan(source), "run-2").failed) == ["users-0"]
        stopped = LagScanner(store).scan(settings, NOW_MS).stopped
        assert "the batch at offset 1 can't be read" in stopped[TopicPartition("users", 0)]


def test_a_batch_behind_the_part_is_none_of_its_errors() -> None:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"), ("b", "2"))
        produce(broker, "users", BATCHES["a flipped bit"])
        settings = ClientSettings.load({}, {}).at(broker.bootstrap)
        part = BrokerPart(settings, "users", TopicPartition("users", 0), 0, 2, stall_seconds=20)
        assert sum(table.num_rows for table in part.read(lambda _: None)) == 2


def test_a_code_that_nobody_knows_is_an_outage_still() -> None:
    settings = ClientSettings.load({}, {}).at("127.0.0.1:1")
    error = translated(KafkaError(KafkaError.KAFKA_STORAGE_ERROR), settings, "users-0 can't be read")
    assert isinstance(error, StorageUnavailable)
