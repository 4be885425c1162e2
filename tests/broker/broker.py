"""A Kafka broker (``examples.kafka_broker``), and what tests do with one.

It listens at two ports, one of which wants a name and a password. Its cleaner looks for work ten times a second, in
real time: a broker has no clock that a test could set, so a test waits for what it is to see.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from examples.kafka_broker import kafka_broker
from keptlog.log.record import Header, NewRecord, Record, TimestampType

DEADLINE_SECONDS = 120.0
"""What takes longer than this never comes."""
_BATCH_RECORDS = 100
SASL_USER = "reader"
SASL_PASSWORD = "correct-horse-battery"  # noqa: S105  # nobody else's
_SASL = "SASL"
_SETTINGS = {
    "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{_SASL}:SASL_PLAINTEXT",
    "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{SASL_USER}="{SASL_PASSWORD}";',
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": str(2**21 + 1),
    # Who has used up a quota gets nothing for so long at once, and not for eleven seconds.
    "quota.window.num": "2",
    "quota.window.size.seconds": "1",
}


@dataclass(frozen=True)
class Broker:
    """A running broker, and what tests do with one. ``folder`` is its log directory."""

    bootstrap: str
    folder: Path
    sasl_bootstrap: str
    """For ``SASL_USER`` with ``SASL_PASSWORD``."""
    restart: Callable[[], None]
    """Kills it, as ``kill -9`` does, and starts it again with all that it has stored."""

    @property
    def admin(self) -> AdminClient:
        """A client; its answers are lost if nobody holds it until they come."""
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic with its own settings. Tests' records are years old: no retention, unless it is asked for.

        The broker's would take them after a week, which is over, whenever it looks: half a minute after its start.
        """
        kept = {"retention.ms": "-1", **config}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=kept)
        admin = self.admin
        admin.create_topics([topic])[name].result(DEADLINE_SECONDS)

    def alter_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Alter some settings of a topic, and leave the others."""
        entries = [
            ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
            for setting, value in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        admin = self.admin
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_SECONDS)

    def produce(self, topic: str, records: Sequence[NewRecord]) -> list[tuple[int | None, int | None]]:
        """Append records in their order, in several batches; the partition and the offset that each of them got."""
        got: list[tuple[int | None, int | None]] = [(None, None)] * len(records)

        def delivery_of(index: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                assert error is None, f"record {index}: {error}"
                got[index] = message.partition(), message.offset()

            return delivered

        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "batch.num.messages": _BATCH_RECORDS,
            }
        )
        for index, record in enumerate(records):
            assert record.partition is not None, f"record {index} has no partition"
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=delivery_of(index),
            )
        waiting = producer.flush(DEADLINE_SECONDS)
        assert not waiting, f"{waiting} records were not acknowledged within {DEADLINE_SECONDS} s"
        return got

    def records(self, topic: str, partitions: int) -> dict[int, list[Record]]:
        """By partition, what a consumer sees that reads all committed records from the beginning to the end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        found: dict[int, list[Record]] = {partition: [] for partition in range(partitions)}
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in found])
            reading = set(found)
            deadline = time.monotonic() + DEADLINE_SECONDS
            while reading:
                assert time.monotonic() < deadline, f"{topic}: no end of partitions {reading} in sight"
                for message in consumer.consume(500, timeout=0.2):
                    partition, error = message.partition(), message.error()
                    assert partition is not None, error
                    if error is None:
                        found[partition].append(_record(message))
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        reading.discard(partition)
        return found

    def end_offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """The offset that the next record of each partition gets."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "tests"})
        with contextlib.closing(consumer):
            names = [TopicPartition(topic, partition) for partition in range(partitions)]
            ends = [consumer.get_watermark_offsets(name, timeout=DEADLINE_SECONDS)[1] for name in names]
        return dict(enumerate(ends))

    def wait_until_cleaned(self, topic: str, checkpoints: Mapping[int, int]) -> None:
        """Wait until the broker's cleaner has cleaned each of these partitions up to its offset."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (reached := self.checkpoints(topic)) != checkpoints:
            assert time.monotonic() < deadline, f"{topic} is cleaned up to {reached}, not up to {checkpoints}"
            time.sleep(0.05)

    def checkpoints(self, topic: str) -> dict[int, int]:
        """The cleaner's checkpoints of the partitions that it has cleaned, by partition."""
        # Two lines, its version and the number of entries, come first; before the first clean it is empty.
        entries = (self.folder / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
        parts = [entry.rsplit(" ", 2) for entry in entries]
        return {int(partition): int(offset) for name, partition, offset in parts if name == topic}


@contextmanager
def running_broker(settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Start a broker, with settings of its own besides; its process and its folder are gone when the block ends.

    Raises:
        NotInstalled: this machine has no Maven or no Java.
    """
    with kafka_broker({**_SETTINGS, **(settings or {})}, [_SASL]) as started:
        yield Broker(started.bootstrap, started.folder, started.address(_SASL), started.restart)


def _record(message: Message) -> Record:
    offset = message.offset()
    assert offset is not None
    kind, timestamp_ms = message.timestamp()
    is_log_append_time = kind == TIMESTAMP_LOG_APPEND_TIME
    return Record(
        offset,
        message.key(),
        message.value(),
        timestamp_ms,
        TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
        tuple(cast("list[Header]", message.headers() or [])),
    )
