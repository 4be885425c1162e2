"""The same records in a topic of a real broker and in a topic of keptlog, with the same settings, each cleaned by its
own cleaner: a consumer of the one sees what a reader of the other sees.

There are two rounds. Each ends with one record a partition that comes so much later that all before it is closed:

    first round                    closing   second round             closing
    [ segments of updates        ] [ c       updates and tombstones ] [ c      active
    |<- cleaned when c is there ->||<-      cleaned when c is there  ->|

In the first round the broker also cleans while records still arrive, whenever it likes; that must not matter. The
second round is one segment, so that one pass meets its tombstones and no later one takes them away.

The broker goes by the real clock, so the history lies in the hour before the test. Beside the settings there is one
thing to know: keptlog closes an idle active segment by the clock and the broker does not (ADR 5). So keptlog's clock
shows the time of the last record, at which both have the same segment active.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.home import new_id
from keptlog.log.record import Header, NewRecord, Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner
from keptlog.spark.jobs import spark_engine
from tests.broker.broker import Broker
from tests.logs import carry_out, open_store

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
SEGMENT_MS = 5 * MINUTE_MS
PARTITIONS = 2
APPENDED_AT_ONCE = 500
HEADERS: tuple[tuple[Header, ...], ...] = ((), (), (("source", b"crm"), ("source", None), ("empty", b"")))


@dataclass
class Twins:
    """A topic of the broker and one of keptlog, under the same name."""

    broker: Broker
    cleaner: Cleaner
    topic: str

    def create(self, settings: dict[str, str]) -> None:
        self.broker.create_topic(self.topic, PARTITIONS, settings)
        self.cleaner.store.create_topic(self.topic, PARTITIONS, settings)

    def append(self, records: Sequence[NewRecord]) -> None:
        """Append to both; records get the same offsets, densely from 0."""
        in_broker = self.broker.produce(self.topic, records)
        in_keptlog = []
        for start in range(0, len(records), APPENDED_AT_ONCE):
            batch = records[start : start + APPENDED_AT_ONCE]
            appended = self.cleaner.store.append(self.topic, batch, new_id(), batch[-1].timestamp_ms)
            for each in appended.partitions:
                in_keptlog += [(each.partition, offset) for offset in range(each.base_offset, each.last_offset + 1)]
        assert sorted(in_broker) == sorted(in_keptlog)

    def close(self, now_ms: int) -> dict[int, int]:
        """Append a record to each partition that closes all before it, and clean both up to there; their offsets."""
        self.append([NewRecord(b"closing", b"%d" % now_ms, now_ms, partition) for partition in range(PARTITIONS)])
        ends = self.broker.end_offsets(self.topic, PARTITIONS)
        active = {partition: end - 1 for partition, end in ends.items()}
        self.broker.wait_until_cleaned(self.topic, active)
        result = carry_out(self.cleaner, self.cleaner.plan([self.topic], now_ms=now_ms))
        assert not result.failed
        logs = self.cleaner.store.logs(self.topic)
        assert [log.checkpoint for log in logs] == list(active.values())
        assert [log.log_end_offset for log in logs] == list(ends.values())
        return active

    def left_in_broker(self) -> list[tuple[TopicPartition, Record]]:
        by_partition = self.broker.records(self.topic, PARTITIONS)
        return [(TopicPartition(self.topic, number), each) for number, some in by_partition.items() for each in some]

    def left_in_keptlog(self) -> list[tuple[TopicPartition, Record]]:
        """As a consumer would see it: the delete horizon is between the log and its cleaner."""
        read = self.cleaner.store.read(self.topic)
        return [(TopicPartition(self.topic, number), replace(each, delete_horizon_ms=None)) for number, each in read]


def some_records(count: int, first_ms: int, until_ms: int, dice: random.Random) -> list[NewRecord]:
    """Records of 150 keys, one of them empty, in about the order of their timestamps."""
    keys = [b"", *(b"key-%d" % number for number in range(149))]
    times = [first_ms + (until_ms - first_ms) * number // count for number in range(count)]
    return [
        NewRecord(
            key=dice.choice(keys),
            value=dice.choice([None, b"", dice.randbytes(dice.randrange(300)), dice.randbytes(20)]),
            timestamp_ms=max(first_ms, time_ms - dice.randrange(2_000)),
            partition=dice.randrange(PARTITIONS),
            headers=dice.choice(HEADERS),
        )
        for time_ms in times
    ]


@pytest.mark.parametrize(
    ("delete_retention_ms", "first_tombstones_stay"),
    [(DAY_MS, True), (0, False)],
    ids=["tombstones stay a day", "tombstones go with the second clean"],
)
def test_a_consumer_of_the_broker_sees_what_a_reader_of_keptlog_sees(
    broker: Broker, spark: SparkSession, tmp_path: Path, delete_retention_ms: int, first_tombstones_stay: bool
) -> None:
    dice = random.Random(4)
    store = open_store(tmp_path)
    cleaner = Cleaner(store, spark_engine(lambda: spark, store.files))
    twins = Twins(broker, cleaner, f"server.schema.users-{delete_retention_ms}")
    twins.create(
        {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": str(SEGMENT_MS),
            "segment.ms": str(SEGMENT_MS),
            "segment.bytes": str(2**20),
            "delete.retention.ms": str(delete_retention_ms),
        }
    )
    beginning_ms = time.time_ns() // 1_000_000 - 60 * MINUTE_MS
    first_close_ms, second_close_ms = beginning_ms + 40 * MINUTE_MS, beginning_ms + 50 * MINUTE_MS

    twins.append(some_records(3_000, beginning_ms, beginning_ms + 30 * MINUTE_MS, dice))
    first_dirty = twins.close(first_close_ms)
    twins.append(some_records(150, first_close_ms, first_close_ms + MINUTE_MS, dice))
    twins.close(second_close_ms)

    left = twins.left_in_broker()
    assert twins.left_in_keptlog() == left
    tombstones = [(log.partition, each.offset) for log, each in left if each.is_tombstone]
    assert any(offset < first_dirty[partition] for partition, offset in tombstones) == first_tombstones_stay
    assert any(offset > first_dirty[partition] for partition, offset in tombstones)
    assert any(each.value == b"" for _, each in left)
    assert any(each.headers == HEADERS[-1] for _, each in left)
