"""librdkafka's mock cluster: a broker in this process, there in milliseconds.

It lives inside of the client that was made with ``test.mock.num.brokers``, and that client's metadata says where it
listens, so that others can be sent there. It keeps 5 MB a partition, and knows no transactions' markers, no topic ids
and no topic settings: for those there is ``tests/broker``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.storage.schema import from_arrow

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Mock:
    """The mock cluster; a topic is there, with four partitions, once it is produced to."""

    owner: Producer
    settings: ClientSettings

    def produce(self, topic: str, records: list[Record]) -> None:
        """Append to partition 0; offsets are given by the cluster."""
        producer = Producer({"bootstrap.servers": self.settings.bootstrap or "", "linger.ms": 0})
        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=0,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        assert not producer.flush(_TIMEOUT_SECONDS)

    def part(self, topic: str, from_offset: int, end_offset: int) -> BrokerPart:
        return BrokerPart(self.settings, topic, TopicPartition("here", 0), from_offset, end_offset)


@pytest.fixture(scope="session")
def mock() -> Iterator[Mock]:
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = owner.list_topics(timeout=_TIMEOUT_SECONDS).brokers.values()
    yield Mock(owner, ClientSettings.load({"bootstrap.servers": f"{broker.host}:{broker.port}"}, {}))
    del owner


def read(part: BrokerPart) -> list[Record]:
    """What a part reads."""
    return [record for table in part.read(lambda _: None) for record in from_arrow(table.to_batches())]
