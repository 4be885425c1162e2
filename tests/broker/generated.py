"""Produces records of every odd kind, and knows what a reader of committed records must find of them.

They go out in chunks, each with a codec of its own. A chunk is plain, or a transaction that is committed or aborted,
and that now and then has plain records in its middle.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, Message, Producer

from keptlog.log.record import Header, Record
from tests.broker.broker import DEADLINE_SECONDS, Broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_BYTES = (None, b"", b"\0", b"\xff\xfe", b"text", "Zürich 東京".encode())
_NAMES = ("", "a", "a", "source", "trace-id", "x" * 300, "名前", "é")
_FIRST_TIMESTAMP_MS = 1_700_000_000_000
_CHUNK_RECORDS = 97


@dataclass
class Generated:
    """What was produced to one topic. ``committed`` has what counts, by partition and in the order of offsets."""

    broker: Broker
    topic: str
    partitions: int
    dice: random.Random
    committed: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    _producers: dict[tuple[str, str], Producer] = field(default_factory=dict)

    def produce(self, count: int) -> None:
        """Produce at least so many records."""
        for _ in range(-(-count // _CHUNK_RECORDS)):
            codec = self.dice.choice(CODECS)
            fate = self.dice.choice(("plain", "plain", "commit", "abort"))
            chunk = list(self._records(_CHUNK_RECORDS))
            if fate == "plain":
                self._keep(self._sent(self._producer(codec, ""), chunk))
                continue
            producer = self._producer(codec, f"{self.topic}-{codec}")
            producer.begin_transaction()
            sent = self._sent(producer, chunk)
            if self.dice.random() < 0.3:
                self._keep(self._sent(self._producer(codec, ""), list(self._records(5))))
            if fate == "commit":
                producer.commit_transaction(DEADLINE_SECONDS)
                self._keep(sent)
            else:
                producer.abort_transaction(DEADLINE_SECONDS)

    def expected(self) -> dict[int, list[Record]]:
        """The committed records of each partition in the order of their offsets."""
        by_offset = {
            number: sorted(records, key=lambda each: each.offset) for number, records in self.committed.items()
        }
        return {number: by_offset.get(number, []) for number in range(self.partitions)}

    def _keep(self, sent: Sequence[tuple[int, Record]]) -> None:
        for partition, record in sent:
            self.committed[partition].append(record)

    def _producer(self, codec: str, transactional_id: str) -> Producer:
        key = (codec, transactional_id)
        if key not in self._producers:
            settings: dict[str, str | int | float | bool] = {
                "bootstrap.servers": self.broker.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 40,
            }
            if transactional_id:
                settings["transactional.id"] = transactional_id
            self._producers[key] = Producer(settings)
            if transactional_id:
                self._producers[key].init_transactions(DEADLINE_SECONDS)
        return self._producers[key]

    def _records(self, count: int) -> Iterator[tuple[int, Record]]:
        dice = self.dice
        for _ in range(count):
            headers: list[Header] = []
            if dice.random() < 0.3:
                headers = [(dice.choice(_NAMES), dice.choice(_BYTES)) for _ in range(dice.randrange(1, 6))]
            record = Record(
                offset=-1,
                key=dice.choice((*_BYTES, *(b"key-%d" % dice.randrange(50) for _ in range(6)))),
                value=dice.choice((*_BYTES, dice.randbytes(dice.randrange(1, 400)), b"a long value " * 40)),
                timestamp_ms=_FIRST_TIMESTAMP_MS + dice.randrange(-(10**6), 10**6),
                headers=tuple(headers),
            )
            yield dice.randrange(self.partitions), record

    def _sent(self, producer: Producer, records: Sequence[tuple[int, Record]]) -> list[tuple[int, Record]]:
        """The records with the offsets that they got."""
        sent: list[tuple[int, Record]] = []

        def delivery_of(partition: int, record: Record) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                offset = message.offset()
                assert error is None, error
                assert offset is not None
                kept = Record(offset, record.key, record.value, record.timestamp_ms, headers=record.headers)
                sent.append((partition, kept))

            return delivered

        for partition, record in records:
            producer.produce(
                self.topic,
                key=record.key,
                value=record.value,
                partition=partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=delivery_of(partition, record),
            )
        assert not producer.flush(DEADLINE_SECONDS)
        assert len(sent) == len(records)
        return sent
