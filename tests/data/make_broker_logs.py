"""Makes ``broker_logs/``: the log directory of a real broker, small, with all that one may hold.

    python -m tests.data.make_broker_logs

Beside the logs lies what a consumer saw that read committed records only, as JSON lines: what a reader of the files has
to find. Indexes are left out: nobody reads them here.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from keptlog.log.record import Header, NewRecord
from tests.broker.broker import DEADLINE_SECONDS, Broker, running_broker
from tests.data.expected import write_expected

TARGET = Path(__file__).parent / "broker_logs"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SETTINGS = {"log.flush.start.offset.checkpoint.interval.ms": "100"}
SEGMENT_MS = 60_000
KEPT = ("*.log", "*.txnindex", "partition.metadata", "leader-epoch-checkpoint")
CHECKPOINTS = ("cleaner-offset-checkpoint", "log-start-offset-checkpoint")
HEADERS: tuple[tuple[Header, ...], ...] = (
    (),
    (("source", b"crm"), ("source", b"web"), ("none", None), ("empty", b"")),
    (),
    (("größe".encode().decode(), bytes(range(200))),),
)


def main() -> None:
    now_ms = time.time_ns() // 1_000_000
    with running_broker(SETTINGS) as broker:
        logs = [*_codecs(broker, now_ms), *_append_time(broker, now_ms), *_transactions(broker, now_ms)]
        logs += [*_compacted(broker, now_ms), *_truncated(broker, now_ms)]
        shutil.rmtree(TARGET, ignore_errors=True)
        for topic in logs:
            folder = TARGET / f"{topic}-0"
            folder.mkdir(parents=True)
            for pattern in KEPT:
                for path in (broker.folder / folder.name).glob(pattern):
                    shutil.copy(path, folder)
            write_expected(TARGET / f"{topic}-0.jsonl", broker.records(topic, 1)[0])
        for name in CHECKPOINTS:
            version, _, *lines = (broker.folder / name).read_text().splitlines()
            ours = [line for line in lines if line.split()[0] in logs]
            (TARGET / name).write_text("\n".join([version, str(len(ours)), *ours, ""]))


def _records(count: int, first_ms: int, step_ms: int = 1000, keys: int = 10) -> list[NewRecord]:
    """Updates of few keys; each seventh record is a tombstone, each fifth value is empty, headers are odd."""
    return [
        NewRecord(
            b"key-%d" % (number % keys),
            None if number % 7 == 6 else b"" if number % 5 == 4 else b"value %d " % number * (1 + number % 4),
            first_ms + number * step_ms,
            0,
            HEADERS[number % len(HEADERS)],
        )
        for number in range(count)
    ]


def _produce(broker: Broker, topic: str, records: Sequence[NewRecord], settings: dict[str, str | int]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 100, **settings})
    for record in records:
        _send(producer, topic, record)
    assert not producer.flush(DEADLINE_SECONDS)


def _send(producer: Producer, topic: str, record: NewRecord) -> None:
    headers: list[tuple[str, str | bytes | None]] = list(record.headers)
    producer.produce(topic, record.value, record.key, 0, timestamp=record.timestamp_ms, headers=headers)


def _codecs(broker: Broker, now_ms: int) -> Iterator[str]:
    for codec in CODECS:
        topic = f"codec.{codec}"
        broker.create_topic(topic, 1, {})
        settings: dict[str, str | int] = {"compression.type": codec, "batch.num.messages": 16}
        _produce(broker, topic, [*_records(60, now_ms), NewRecord(None, b"no key", now_ms, 0)], settings)
        yield topic
    # The broker's own compressor: snappy framed as Java does it, where librdkafka writes one bare block.
    broker.create_topic("codec.snappy-framed", 1, {"compression.type": "snappy"})
    _produce(broker, "codec.snappy-framed", _records(60, now_ms), {"batch.num.messages": 30})
    yield "codec.snappy-framed"


def _append_time(broker: Broker, now_ms: int) -> Iterator[str]:
    broker.create_topic("append-time", 1, {"message.timestamp.type": "LogAppendTime"})
    _produce(broker, "append-time", _records(20, now_ms), {"compression.type": "zstd", "batch.num.messages": 8})
    yield "append-time"


def _transactions(broker: Broker, now_ms: int) -> Iterator[str]:
    """Three producers and one without transactions; segments roll between the records of transactions."""
    topic = "transactions"
    broker.create_topic(topic, 1, {"segment.ms": str(SEGMENT_MS)})
    first, second, third = (_transactional(broker, name) for name in ("first", "second", "third"))
    records = iter(_records(200, now_ms - 200 * 20_000, 20_000))

    def send(producer: Producer, count: int) -> None:
        for _ in range(count):
            _send(producer, topic, next(records))
            assert not producer.flush(DEADLINE_SECONDS)

    plain = Producer({"bootstrap.servers": broker.bootstrap})
    send(plain, 2)
    for producer, end in ((first, first.commit_transaction), (second, second.abort_transaction)):
        producer.begin_transaction()
        send(producer, 3)
        end()
    # Two at once, over several segments: the one that began first is committed last.
    first.begin_transaction()
    second.begin_transaction()
    for _ in range(4):
        send(first, 2)
        send(second, 2)
        send(plain, 1)
    second.abort_transaction()
    send(plain, 1)
    first.commit_transaction()
    # One producer that aborts, then commits.
    second.begin_transaction()
    send(second, 2)
    second.abort_transaction()
    second.begin_transaction()
    send(second, 2)
    second.commit_transaction()
    # Open at the end: what others write behind it is not stable.
    third.begin_transaction()
    send(third, 2)
    send(plain, 3)
    first.begin_transaction()
    send(first, 1)
    first.abort_transaction()
    yield topic


def _transactional(broker: Broker, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(DEADLINE_SECONDS)
    return producer


def _compacted(broker: Broker, now_ms: int) -> Iterator[str]:
    """Cleaned by the broker: gaps, and tombstones with a delete horizon."""
    topic = "compacted"
    config = {"cleanup.policy": "compact", "segment.ms": str(SEGMENT_MS), "min.cleanable.dirty.ratio": "0.01"}
    broker.create_topic(topic, 1, config)
    for compression, count, first_ms in (("none", 30, now_ms - 40 * SEGMENT_MS), ("lz4", 30, now_ms - 20 * SEGMENT_MS)):
        settings: dict[str, str | int] = {"compression.type": compression, "batch.num.messages": 10}
        _produce(broker, topic, _records(count, first_ms, 10, keys=17), settings)
        _produce(broker, topic, [NewRecord(b"closing", compression.encode(), first_ms + 2 * SEGMENT_MS, 0)], {})
    last = broker.end_offsets(topic, 1)[0]
    broker.wait_until_cleaned(topic, {0: last - 1})
    yield topic


def _truncated(broker: Broker, now_ms: int) -> Iterator[str]:
    """Its first records were deleted, up to the middle of a batch."""
    topic = "truncated"
    broker.create_topic(topic, 1, {})
    _produce(broker, topic, _records(20, now_ms), {"compression.type": "gzip", "batch.num.messages": 10})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 13)]).values():
        deleted.result(DEADLINE_SECONDS)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while f"{topic} 0 13" not in (broker.folder / "log-start-offset-checkpoint").read_text():
        assert time.monotonic() < deadline, "the log start offset was not noted"
        time.sleep(0.05)
    yield topic


if __name__ == "__main__":
    main()
