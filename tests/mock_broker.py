"""librdkafka's own cluster of one broker, in this process: enough of Kafka for what needs no real one, in milliseconds.

A topic exists once something was produced to it, with four partitions. It has no topic ids, no transactions, and no
settings of topics; what needs these goes to ``tests.broker``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

PARTITIONS = 4
_DEADLINE_SECONDS = 30


@dataclass(frozen=True)
class MockBroker:
    """The cluster lives as long as its producer."""

    bootstrap: str
    producer: Producer

    def produce(self, topic: str, *records: tuple[str, str | None], partition: int = 0, timestamp_ms: int = 0) -> None:
        """Append key-value pairs."""
        for key, value in records:
            self.producer.produce(topic, key=key, value=value, partition=partition, timestamp=timestamp_ms)
        waiting = self.producer.flush(_DEADLINE_SECONDS)
        assert not waiting, f"{waiting} records were not acknowledged"


@contextmanager
def mock_broker() -> Iterator[MockBroker]:
    """Start one; it is gone, and nothing listens at its address any more, when the block ends."""
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    (broker,) = producer.list_topics(timeout=_DEADLINE_SECONDS).brokers.values()
    yield MockBroker(f"{broker.host}:{broker.port}", producer)
    producer.flush(_DEADLINE_SECONDS)
