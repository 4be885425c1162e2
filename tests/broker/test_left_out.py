"""An aborted transaction is as long as it is: a part reads on behind it, and ends within it if its range does."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer

from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.part import BrokerPart
from tests.broker.broker import DEADLINE_SECONDS, Broker
from tests.broker.ingesting import Ingesting
from tests.sources.kafka_broker.conftest import read

ABORTED, RECORD_BYTES = 30, 30_000
BYTES_A_SECOND = 200_000
"""So a record comes some times a second; once that is used up, none comes for a second."""
ALONE = dict.fromkeys(("max.partition.fetch.bytes", "fetch.max.bytes", "message.max.bytes"), "40000")
"""Each is fetched alone: where all is left out, librdkafka would fetch twice as much each time."""
STALL_SECONDS = 3.0
"""All of them take longer."""
_ALTER_CLIENT_QUOTAS = 49


def test_a_stretch_of_aborted_records_that_takes_longer_than_a_part_waits_is_read_through(
    broker: Broker, tmp_path: Path
) -> None:
    there = Ingesting(broker, tmp_path)
    there.create()
    there.produce(b"before")
    abort(there)
    there.produce(b"behind")
    end_offset = broker.end_offsets(there.topic, 1)[0]
    settings = ClientSettings.load({"bootstrap.servers": broker.bootstrap, **ALONE}, {})
    part = BrokerPart(settings, there.topic, TopicPartition("here", 0), 0, end_offset, stall_seconds=STALL_SECONDS)
    with quota(broker, BYTES_A_SECOND):
        assert [record.value for record in read(part)] == [b"before", b"behind"]
    # Where the next record is far behind the end.
    assert [record.value for record in read(replace(part, end_offset=10))] == [b"before"]


def abort(there: Ingesting) -> None:
    """Some batches of a transaction that comes to nothing."""
    producer = Producer({"bootstrap.servers": there.broker.bootstrap, "transactional.id": there.topic})
    producer.init_transactions(DEADLINE_SECONDS)
    producer.begin_transaction()
    for _ in range(ABORTED):
        producer.produce(there.topic, value=os.urandom(RECORD_BYTES), partition=0)
        producer.flush(DEADLINE_SECONDS)
    producer.abort_transaction(DEADLINE_SECONDS)


@contextmanager
def quota(broker: Broker, bytes_a_second: int) -> Iterator[None]:
    """Let the broker give keptlog no more, for a while."""
    alter_quota(broker, bytes_a_second)
    try:
        yield
    finally:
        alter_quota(broker, None)


def alter_quota(broker: Broker, bytes_a_second: int | None) -> None:
    """One request of Kafka's protocol, in its first version: the client for Python has none for it."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    header = struct.pack(">hhi", _ALTER_CLIENT_QUOTAS, 0, 1) + text("tests")
    entity = struct.pack(">i", 1) + text("client-id") + text("keptlog")
    value = struct.pack(">d?", bytes_a_second or 0, bytes_a_second is None)
    alteration = struct.pack(">i", 1) + text("consumer_byte_rate") + value
    request = header + struct.pack(">i", 1) + entity + alteration + struct.pack(">?", False)
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb")
        (length,) = struct.unpack(">i", answer.read(4))
        _, _, count, code = struct.unpack_from(">iiih", answer.read(length))
    assert (count, code) == (1, 0), "the quota was not taken"
