"""librdkafka's own cluster of one broker, in this process: enough of Kafka for what needs no real one, in milliseconds.

A topic exists once something was produced to it, with four partitions. It has no topic ids, no transactions, and no
settings of topics; what needs these goes to ``tests.broker``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata

from keptlog.sources.kafka_broker import topics as looks

PARTITIONS = 4
BROKER_ID = 1
_NOBODY = -1
_DEADLINE_SECONDS = 120


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

    def lose_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader, as an outage of its only replica does."""
        set_leader(self.producer, topic, partition, _NOBODY)

    def elect_leader(self, topic: str, partition: int) -> None:
        """Let it have one again."""
        set_leader(self.producer, topic, partition, BROKER_ID)


def break_connections(owner: Producer, api: int, answers_before: int = 0) -> None:
    """Break the connection once at the next request of an API, by its number in Kafka's protocol, or some later."""
    answer(owner, api, *[0] * answers_before, KafkaError._TRANSPORT)


def answer(owner: Producer, api: int, *codes: int) -> None:
    """Answer the next requests of an API with these errors; 0 is an answer as ever."""
    errors = (ctypes.c_int * len(codes))(*codes)
    _librdkafka().rd_kafka_mock_push_request_errors_array(_cluster(owner), api, len(codes), errors)


def set_leader(owner: Producer, topic: str, partition: int, broker_id: int) -> None:
    """Make a broker of a mock cluster the leader of a partition; ``owner`` is the client that the cluster lives in."""
    refused = _librdkafka().rd_kafka_mock_partition_set_leader(_cluster(owner), topic.encode(), partition, broker_id)
    assert not refused, f"there is no {topic}-{partition}"


def delay_answers(owner: Producer, broker_id: int, milliseconds: int) -> None:
    """Let a broker of a mock cluster take connections, and answer so late."""
    refused = _librdkafka().rd_kafka_mock_broker_set_rtt(_cluster(owner), broker_id, milliseconds)
    assert not refused, f"there is no broker {broker_id}"


def set_coordinator(owner: Producer, kind: str, key: str, broker_id: int) -> None:
    """Make a broker of a mock cluster the coordinator of a "group", or of a transactional id ("transaction")."""
    refused = _librdkafka().rd_kafka_mock_coordinator_set(_cluster(owner), kind.encode(), key.encode(), broker_id)
    assert not refused, f"there is no broker {broker_id}"


def set_topic_error(owner: Producer, topic: str, code: int) -> None:
    """Let a mock cluster say nothing else of a topic, whoever asks for it."""
    _librdkafka().rd_kafka_mock_topic_set_error(_cluster(owner), topic.encode(), code)


def forbid_to_describe(monkeypatch: pytest.MonkeyPatch, owner: Producer, topic: str) -> None:
    """Let looks find a topic of a mock cluster as a broker shows it to a user without DESCRIBE.

    By its name it has an error; among all it is left out without a word, where a mock would list it with the error.
    """
    set_topic_error(owner, topic, KafkaError.TOPIC_AUTHORIZATION_FAILED)

    class OfThatUser(AdminClient):
        def list_topics(self, *names: str, timeout: float) -> ClusterMetadata:  # type: ignore[override]
            told = super().list_topics(*names, timeout=timeout)
            if not names:
                told.topics.pop(topic, None)
            return told

    monkeypatch.setattr(looks, "AdminClient", OfThatUser)


def _cluster(owner: Producer) -> int:
    """The mock cluster that lives in a client, for librdkafka's own interface.

    The client has no door to that: its handle is found where CPython keeps the first field of an object.
    """
    handle = ctypes.c_void_p.from_address(id(owner) + 2 * ctypes.sizeof(ctypes.c_void_p)).value
    cluster: int | None = _librdkafka().rd_kafka_handle_mock_cluster(handle)
    assert cluster, "this client has no mock cluster"
    return cluster


@cache
def _librdkafka() -> ctypes.CDLL:
    """The one that the client itself has loaded."""
    [path] = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
    library.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
    library.rd_kafka_mock_partition_set_leader.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int32,
        ctypes.c_int32,
    ]
    library.rd_kafka_mock_broker_set_rtt.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int]
    library.rd_kafka_mock_topic_set_error.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.rd_kafka_mock_coordinator_set.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int32,
    ]
    library.rd_kafka_mock_push_request_errors_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int16,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_int),
    ]
    return library


@contextmanager
def mock_broker() -> Iterator[MockBroker]:
    """Start one; it is gone, and nothing listens at its address any more, when the block ends."""
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    (broker,) = producer.list_topics(timeout=_DEADLINE_SECONDS).brokers.values()
    yield MockBroker(f"{broker.host}:{broker.port}", producer)
    producer.flush(_DEADLINE_SECONDS)
