"""A broker that is silent is not told as over because the topic that has it can't be read, and so nobody asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keptlog.errors import LogCorrupt
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.conditions import Matter
from keptlog.passes.watch import ingest_evidence
from keptlog.table.store import LogStore
from tests.mock_broker import MockBroker, mock_broker

NOW_MS = 1_800_000_000_000
SILENT = "127.0.0.1:1"


@pytest.fixture
def broker() -> Iterator[MockBroker]:
    with mock_broker() as started:
        yield started


def ingested(store: LogStore, topic: str, bootstrap: str) -> None:
    store.create_topic(topic, 1, {})
    there = SourceIdentity("users", bootstrap=bootstrap)
    store.ingest(topic, [Arrival(OffsetRange(0, None, 0, 1), ())], there, 1, "run")


def test_a_silent_broker_is_over_only_once_all_topics_could_be_read(
    store: LogStore, broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingested(store, "answered", broker.bootstrap)
    ingested(store, "unanswered", SILENT)
    monkeypatch.setattr("keptlog.ingest.lag.WAIT_SECONDS", 1)
    scanner, settings = LagScanner(store), ClientSettings.load({}, {})
    load = store.load_table

    def damaged(topic: str) -> object:
        if topic == "unanswered":
            raise LogCorrupt(f"the table of {topic} can't be read")
        return load(topic)

    with monkeypatch.context() as patch:
        patch.setattr(store, "load_table", damaged)
        unread = ingest_evidence(scanner.scan(settings, NOW_MS))
    assert Matter.BROKER not in unread.judged
    read = ingest_evidence(scanner.scan(settings, NOW_MS))
    assert Matter.BROKER in read.judged
    assert [each.subject for each in read.conditions if each.matter == Matter.BROKER] == [SILENT]
