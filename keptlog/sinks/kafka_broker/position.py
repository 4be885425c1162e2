"""How far a restore has got, and how that is written down at the broker.

A position is the next offset of the log here. It is kept as the committed offset of a consumer group for the
topic-partition there, so that it can be committed in the transaction that brings the records; nobody consumes in that
group. Kafka lets a committed offset carry a text, and ours says whose position it is:

    group keptlog-restore-users     users-0    offset 120    {"topic": <id here>, "target": <id there>, "as_of_ms": ...,
                                                              "truncations": 0}

Names may be used again, ids are not. A position for an earlier topic of that name there is none for this one; one that
was written for another topic here, or by somebody else, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from keptlog.errors import InvalidConfig
from keptlog.foreign_json import json_value
from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.sinks.kafka_broker.target import Target


@dataclass(frozen=True, slots=True)
class Position:
    """How far a topic-partition has got: all before ``offset`` is there."""

    offset: int
    as_of_ms: int | None
    """What is there was in the log here at this time or later; null if nothing is there yet."""
    truncations: int
    """How many the log here had had by then (``keptlog.log.truncations``)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What is restored to what. Ids tell them from others of the same names."""

    topic: str
    topic_id: str
    target: Target

    @property
    def group(self) -> str:
        """The consumer group that keeps the positions."""
        return f"keptlog-restore-{self.topic}"

    @property
    def transactional_id(self) -> str:
        """Of both names, so that Kafka fences an older writer of the same pair as soon as a newer one begins."""
        return f"keptlog-restore-{self.topic}-to-{self.target.name}"

    def committed(self, partition: int, position: Position) -> TopicPartition:
        """A position of the partition there as the offset that the group commits."""
        told = {
            "topic": self.topic_id,
            "target": self.target.id,
            "as_of_ms": position.as_of_ms,
            "truncations": position.truncations,
        }
        metadata = json.dumps(told, separators=(",", ":"))
        return TopicPartition(self.target.name, partition, position.offset, metadata=metadata)

    def position(self, committed: TopicPartition) -> Position | None:
        """What ``committed`` made; null if the group has no offset, or that of an earlier topic of this name there.

        Raises:
            InvalidConfig: the offset was committed for another topic here, or not by keptlog.
        """
        if committed.offset < 0:
            return None
        where = f"{committed.topic}-{committed.partition}"
        try:
            told = json_value(committed.metadata or "")
            # An older keptlog did not count them.
            position = Position(committed.offset, told["as_of_ms"], int(told.get("truncations", 0)))
            topic_id, target_id = told["topic"], told["target"]
        except (ValueError, KeyError, TypeError):
            raise InvalidConfig(
                f"consumer group {self.group} has an offset for {where} that keptlog did not commit: restore to "
                "another topic (--topic), or delete the group's offsets"
            ) from None
        # Brokers that come to Kafka 2.8 give ids to the topics that they have. With a topic went its positions.
        if target_id not in {self.target.id, NO_ID}:
            return None
        if topic_id != self.topic_id:
            raise InvalidConfig(
                f"{where} was restored from another topic {self.topic}, of another home or deleted since: restore "
                "to another topic (--topic)"
            )
        return position


@dataclass(slots=True)
class Trail:
    """How far the writers of one restore have got, one after the other: whoever got further is another restore."""

    known: dict[int, Position | None] = field(default_factory=dict)
    """As the last of them found or committed them, by partition; empty before the first."""
    tried: Mapping[int, Position] = field(default_factory=dict)
    """What is being committed: it may be there although the answer was lost."""

    def is_left(self, found: Mapping[int, Position | None]) -> bool:
        """Whether positions are there that none of them has committed. Where one is gone, nobody has got further."""
        return any(
            position is not None and position != self.known[number] and position != self.tried.get(number)
            for number, position in found.items()
            if number in self.known
        )

    def found(self, found: Mapping[int, Position | None]) -> None:
        """One of them goes on from here."""
        self.known, self.tried = dict(found), {}

    def committed(self) -> None:
        """What was tried is there."""
        self.known |= self.tried
        self.tried = {}
