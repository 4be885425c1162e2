"""A target that stands in for a broker's: its transactions and its group's offset are values. ``tests.broker`` has real
ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition as Committed

from keptlog.errors import StalePlan
from keptlog.log.record import Record
from keptlog.sinks.kafka_broker.position import Pair, Position
from keptlog.sinks.kafka_broker.target import Target

TARGET = Target("people", "id-there", 1, {"cleanup.policy": "delete", "max.message.bytes": "1000000"})


@dataclass
class Broker:
    """What a target has got, and the group's offset of partition 0 as it was committed."""

    sent: list[int] = field(default_factory=list)
    committed: Committed = field(default_factory=lambda: Committed("people", 0, -1001))
    transaction_records: int = 1_000_000
    writers: int = 0
    """How many have begun; each of them fences those before."""


@dataclass
class StandIn:
    """Writes to it; the ``number``-th that does."""

    broker: Broker
    pair: Pair
    number: int
    written: list[int] = field(default_factory=list)
    zero_timestamps: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.written) >= self.broker.transaction_records

    def positions(self) -> dict[int, Position | None]:
        return {0: self.pair.position(self.broker.committed), **dict.fromkeys(range(1, self.pair.target.partitions))}

    def write(self, _partition: int, record: Record) -> None:
        self.written.append(record.offset)

    def commit(self, positions: Mapping[int, Position]) -> None:
        # A broker asks nobody who sends it nothing.
        if (positions or self.written) and self.number < self.broker.writers:
            raise StalePlan("another restore of this pair has begun")
        self.broker.sent += self.written
        self.written.clear()
        if 0 in positions:
            self.broker.committed = self.pair.committed(0, positions[0])
