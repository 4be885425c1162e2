"""A writer at librdkafka's own cluster, which keeps no positions and fences nobody: for that there is tests.broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from keptlog.errors import InvalidConfig, InvalidRecord, StalePlan
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.sinks.kafka_broker import writer
from keptlog.sinks.kafka_broker.position import Pair, Position, Trail
from keptlog.sinks.kafka_broker.position_group import PositionGroup
from keptlog.sinks.kafka_broker.target import Target
from keptlog.sinks.kafka_broker.transactions import Transactions
from keptlog.sinks.kafka_broker.writer import open_writer
from tests.mock_broker import PARTITIONS, MockBroker, mock_broker

CONFIG = {"cleanup.policy": "delete", "max.message.bytes": "1000000"}
PAIR = Pair("users", "id-here", Target("people", "id-there", PARTITIONS, CONFIG))
COMPACTED = Pair("users", "id-here", Target("people", "id-there", PARTITIONS, CONFIG | {"cleanup.policy": "compact"}))


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        started.produce("people", ("first", "1"), partition=3)
        yield started


def settings(broker: MockBroker) -> ClientSettings:
    return ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})


def record(offset: int, timestamp_ms: int = 7) -> Record:
    return Record(offset, b"key", b"value", timestamp_ms)


def timestamps_there(broker: MockBroker, count: int) -> list[int]:
    """Of the first records of partition 0."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "tests"})
    consumer.assign([TopicPartition("people", 0, OFFSET_BEGINNING)])
    got = [message.timestamp()[1] for message in consumer.consume(count, timeout=60)]
    consumer.close()
    return got


def begun_by(monkeypatch: pytest.MonkeyPatch) -> list[Transactions]:
    """Those that fence from now on; nobody is asked for it."""
    begun: list[Transactions] = []

    def begin(each: Transactions) -> None:
        begun.append(each)

    monkeypatch.setattr(Transactions, "begin", begin)
    return begun


def test_what_is_committed_is_there_and_timestamp_zero_is_sent_as_one(broker: MockBroker) -> None:
    with open_writer(settings(broker), PAIR) as opened:
        assert opened.positions() == dict.fromkeys(range(PARTITIONS))
        for offset, timestamp_ms in enumerate((5, 0, -1)):
            opened.write(0, record(offset, timestamp_ms))
        opened.commit({0: Position(3, 1000, 0)})
        assert opened.zero_timestamps == 1
    assert timestamps_there(broker, 3) == [5, 1, -1]


def test_it_is_full_after_so_many_records_and_not_after_the_commit(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "TRANSACTION_RECORDS", 2)
    with open_writer(settings(broker), PAIR) as opened:
        fullness = []
        for offset in range(2):
            opened.write(0, record(offset))
            fullness.append(opened.is_full)
        opened.commit({0: Position(2, 1000, 0)})
        assert [*fullness, opened.is_full] == [False, True, False]


def test_a_record_without_a_key_is_not_sent_to_a_compacted_topic(broker: MockBroker) -> None:
    with open_writer(settings(broker), COMPACTED) as opened:
        with pytest.raises(InvalidRecord, match="users-0 can't be restored beyond offset 9: it has no key"):
            opened.write(0, Record(9, None, b"value", 7))
        assert not opened.is_full


def test_to_a_topic_whose_limits_nobody_may_see_it_writes_all_the_same(broker: MockBroker) -> None:
    unseen = Target("people", "id-there", PARTITIONS, {"cleanup.policy": "delete"})
    with open_writer(settings(broker), Pair("users", "id-here", unseen)) as opened:
        opened.write(0, record(3, 5))
        opened.commit({0: Position(4, 1000, 0)})
    assert timestamps_there(broker, 1) == [5]


def test_to_a_topic_that_takes_nothing_now_there_is_a_writer_too(broker: MockBroker) -> None:
    """max.message.bytes=0 makes one read-only. The client refused it as a setting of its own, which nobody had made."""
    pair = replace(PAIR, target=replace(PAIR.target, config=CONFIG | {"max.message.bytes": "0"}))
    with open_writer(settings(broker), pair) as opened:
        assert opened.positions() == dict.fromkeys(range(PARTITIONS))


def test_one_whose_positions_are_those_of_another_home_is_refused_before_it_fences_the_other(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused too, but the restore of the other home had ended by then."""
    other = Pair("users", "id-elsewhere", PAIR.target)
    theirs = [other.committed(number, Position(3, 1000, 0)) for number in range(PARTITIONS)]
    monkeypatch.setattr(PositionGroup, "committed", lambda *_: theirs)
    begun = begun_by(monkeypatch)
    with pytest.raises(InvalidConfig, match="of another home"), open_writer(settings(broker), PAIR):
        pass
    assert begun == []


@pytest.mark.parametrize(("there", "is_refused"), [(3, False), (5, False), (9, True)])
def test_a_further_writer_of_a_restore_fences_nobody_who_has_got_further(
    broker: MockBroker, monkeypatch: pytest.MonkeyPatch, there: int, is_refused: bool
) -> None:
    """The last one had committed 3, and did not hear whether 5 is there."""
    trail = Trail({0: Position(3, 1000, 0)}, {0: Position(5, 1000, 0)})
    found = [PAIR.committed(0, Position(there, 1000, 0))]
    monkeypatch.setattr(PositionGroup, "committed", lambda *_: found)
    begun = begun_by(monkeypatch)
    try:
        with open_writer(settings(broker), PAIR, trail):
            pass
    except StalePlan:
        assert is_refused
    assert bool(begun) is not is_refused
