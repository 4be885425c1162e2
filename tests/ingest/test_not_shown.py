"""A topic that its user may not describe any more is not gone: what was told of it is not over."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.conditions import KnownCondition, Matter, Sighting, after_look
from keptlog.passes.watch import ingest_evidence
from keptlog.table.store import LogStore
from tests.mock_broker import PARTITIONS, MockBroker, forbid_to_describe, mock_broker

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000


def is_behind_the_end(store: LogStore, broker: MockBroker) -> None:
    """A topic of whose first log more was read than is there."""
    for partition in range(PARTITIONS):
        broker.produce("users", ("a", "1"), partition=partition)
    there = SourceIdentity("users", bootstrap=broker.bootstrap)
    store.create_topic("users", PARTITIONS, {})
    read = [Arrival(OffsetRange(number, None, 0, 9 if number == 0 else 1), ()) for number in range(PARTITIONS)]
    store.ingest("users", read, there, PARTITIONS, "run")


def test_an_ingest_that_has_stopped_is_not_over_once_its_topic_is_hidden(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner, settings = LagScanner(store), ClientSettings.load({}, {})
    known: list[KnownCondition] = []
    events: list[tuple[int, str, str]] = []
    with mock_broker() as broker:
        is_behind_the_end(store, broker)
        for minute in range(8):
            if minute == 2:
                forbid_to_describe(monkeypatch, broker.producer, "users")
            now_ms = NOW_MS + minute * MINUTE_MS
            scan = scanner.scan(settings, now_ms)
            known = after_look(known, Sighting(now_ms).with_evidence(ingest_evidence(scan)), 2 * MINUTE_MS)
            events += [(minute, str(event), one.subject) for one in known if (event := one.event_for("log"))]
            known = [one.once_told("log") for one in known]
    assert events == [(0, "began", "users-0"), (2, "began", "users")]
    assert {topic: type(why) for topic, why in scan.missing.items()} == {"users": InvalidConfig}
    assert scan.asked == []
    assert Matter.INGEST in {one.matter for one in known}
