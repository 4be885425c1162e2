"""A partition that no broker leads for now fails alone: the rest of its topic comes in, and nothing is said of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScan, LagScanner
from keptlog.ingest.lag_news import LagNews
from keptlog.ingest.plans import IngestPlans
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.conditions import Matter
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.watch import ingest_evidence
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import PARTITIONS, MockBroker, mock_broker

LEADERLESS = TopicPartition("users", 1)
NOW_MS = 1_800_000_000_000


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        produce(started)
        yield started


def produce(broker: MockBroker) -> None:
    """A record more for each partition."""
    for partition in range(PARTITIONS):
        broker.produce("users", ("a", "1"), partition=partition)


def settings(broker: MockBroker) -> ClientSettings:
    return ClientSettings.load({"bootstrap.servers": broker.bootstrap}, {})


def ingest_of(store: LogStore) -> Ingest:
    return Ingest(store, in_process_engine(store.files), wall_clock_ms)


def plan(store: LogStore, broker: MockBroker, into: str = "users") -> IngestPlans:
    return ingest_of(store).plan(KafkaBrokers(settings(broker), {into: "users"}))


def bring(store: LogStore, broker: MockBroker, into: str = "users") -> IngestResult:
    return ingest_of(store).carry_out(plan(store, broker, into), new_id())


def scan(scanner: LagScanner, broker: MockBroker, now_ms: int = NOW_MS) -> LagScan:
    return scanner.scan(settings(broker), now_ms)


def ends(store: LogStore, topic: str = "users") -> list[int]:
    return [log.log_end_offset for log in store.logs(topic)]


def test_the_others_come_in_and_it_is_what_failed(store: LogStore, broker: MockBroker) -> None:
    assert not bring(store, broker).failed
    produce(broker)
    broker.lose_leader("users", 1)

    result = bring(store, broker)

    assert list(result.failed) == [str(LEADERLESS)]
    assert isinstance(result.failed[str(LEADERLESS)], StorageUnavailable)
    assert [each.topic_partition.partition for each in result.committed] == [0, 2, 3]
    assert ends(store) == [2, 1, 2, 2]
    broker.elect_leader("users", 1)
    assert not bring(store, broker).failed
    assert ends(store) == [2, 2, 2, 2]


def test_a_topic_that_does_not_exist_yet_begins_with_the_others(store: LogStore, broker: MockBroker) -> None:
    broker.lose_leader("users", 3)
    result = bring(store, broker, into="people")
    assert list(result.failed) == ["people-3"]
    broker.elect_leader("users", 3)
    assert not bring(store, broker, into="people").failed
    assert ends(store, "people") == [1, 1, 1, 1]


def test_nobody_says_how_far_behind_it_is(store: LogStore, broker: MockBroker) -> None:
    bring(store, broker)
    broker.lose_leader("users", 1)
    assert LEADERLESS not in plan(store, broker).lag
    assert len(plan(store, broker).lag) == PARTITIONS - 1


def test_what_is_planned_for_others_alone_does_not_fail_for_it(store: LogStore, broker: MockBroker) -> None:
    bring(store, broker)
    broker.lose_leader("users", 1)
    plans = plan(store, broker)
    assert not plans.only([TopicPartition("users", 0)]).failed
    assert list(plans.only([LEADERLESS]).failed) == [str(LEADERLESS)]


def test_a_topic_that_can_not_be_had_fails_what_is_planned_for_some_of_it(store: LogStore, broker: MockBroker) -> None:
    plans = ingest_of(store).plan(KafkaBrokers(settings(broker), {"gone": "gone"}))
    assert list(plans.only([TopicPartition("gone", 0)]).failed) == ["gone"]


def test_a_scan_tells_it_and_judges_the_others(store: LogStore, broker: MockBroker) -> None:
    bring(store, broker)
    produce(broker)
    broker.lose_leader("users", 1)
    seen = scan(LagScanner(store), broker)
    [topic] = seen.topics
    assert [name.partition for name in topic.behind] == [0, 2, 3]
    assert (seen.missing, seen.stopped) == ({}, {})
    assert list(seen.unseen) == [LEADERLESS]
    [line] = seen.unanswered
    assert line.startswith("users-1: ")
    assert "Leader not available" in line


def test_a_topic_that_nobody_leads_is_told_only_if_that_lasts(store: LogStore, broker: MockBroker) -> None:
    bring(store, broker)
    for partition in range(PARTITIONS):
        broker.lose_leader("users", partition)
    seen = scan(LagScanner(store), broker)
    evidence = ingest_evidence(seen)
    [condition] = evidence.conditions
    assert (condition.subject, condition.is_sure) == ("users", False)
    assert list(evidence.judged[Matter.INGEST]) == []  # so what is stopped is not over
    assert "No leaders found" in condition.text
    [line] = seen.unanswered
    assert line.startswith("topic users: ")


def test_a_topic_that_its_broker_does_not_have_is_told_at_once(store: LogStore, broker: MockBroker) -> None:
    there = SourceIdentity("gone", bootstrap=broker.bootstrap)
    store.create_topic("people", 1, {})
    store.ingest("people", [Arrival(OffsetRange(0, None, 0, 1), ())], there, 1, "run")
    [condition] = ingest_evidence(scan(LagScanner(store), broker)).conditions
    assert (condition.subject, condition.is_sure) == ("people", True)


def test_a_scan_never_says_that_it_lacked_nothing_or_has_caught_up(store: LogStore, broker: MockBroker) -> None:
    bring(store, broker)
    scanner, news = LagScanner(store), LagNews()
    news.of(scan(scanner, broker))
    produce(broker)
    news.of(scan(scanner, broker, NOW_MS + 1))
    broker.lose_leader("users", 1)
    seen = scan(scanner, broker, NOW_MS + 2)
    assert seen.topics[0].seen_ms[1] == NOW_MS
    assert LEADERLESS not in [name for name, _ in news.of(seen)]
