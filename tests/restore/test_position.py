"""A position at the broker says whose it is: names are used again, and then it is none, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition

from keptlog.errors import InvalidConfig
from keptlog.kafka_client.topic_ids import NO_ID
from keptlog.sinks.kafka_broker.position import Pair, Position
from keptlog.sinks.kafka_broker.target import Target

PAIR = Pair("users", "topic-id", Target("people", "target-id", 2, {"cleanup.policy": "delete"}))
POSITION = Position(120, 1_700_000_000_000, 2)


@pytest.mark.parametrize("position", [POSITION, Position(0, None, 0)])
def test_a_position_is_read_as_it_was_committed(position: Position) -> None:
    committed = PAIR.committed(1, position)
    assert (committed.topic, committed.partition, committed.offset) == ("people", 1, position.offset)
    assert PAIR.position(committed) == position


def test_that_of_a_keptlog_which_counted_no_truncations_knows_of_none() -> None:
    told = '{"topic":"topic-id","target":"target-id","as_of_ms":7}'
    assert PAIR.position(TopicPartition("people", 1, 120, told)) == Position(120, 7, 0)


def test_without_an_offset_there_is_no_position() -> None:
    assert PAIR.position(TopicPartition("people", 0, -1001)) is None


def test_that_of_an_earlier_topic_of_the_name_there_is_none() -> None:
    anew = replace(PAIR, target=replace(PAIR.target, id="another-id"))
    assert anew.position(PAIR.committed(0, POSITION)) is None


def test_that_of_before_the_topic_there_had_an_id_stays_its_position() -> None:
    """Brokers that come to Kafka 2.8 give each topic one. What was under way asked whether to send all again."""
    before = replace(PAIR, target=replace(PAIR.target, id=NO_ID))
    assert PAIR.position(before.committed(0, POSITION)) == POSITION


def test_that_of_another_topic_here_is_refused() -> None:
    other = replace(PAIR, topic_id="another-id")
    with pytest.raises(InvalidConfig, match=r"people-0 was restored from another topic users"):
        other.position(PAIR.committed(0, POSITION))


FOREIGN = [None, "", "no JSON", "[]", "7", "[" * 4_000, '{"topic": "topic-id"}', '{"topic": "topic-id", "as_of_ms": 7}']
WRONG_COUNT = '{"topic": "topic-id", "target": "target-id", "as_of_ms": 7, "truncations": "some"}'


@pytest.mark.parametrize("metadata", [*FOREIGN, WRONG_COUNT])
def test_an_offset_of_somebody_else_is_refused(metadata: str | None) -> None:
    foreign = TopicPartition("people", 0, 120) if metadata is None else TopicPartition("people", 0, 120, metadata)
    with pytest.raises(InvalidConfig, match="that keptlog did not commit"):
        PAIR.position(foreign)
