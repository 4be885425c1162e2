"""A broker that is silent is not told as over because a topic's source can't be read, so that nobody asks its broker.

A topic that can be read and may not be written to tells where its broker is: that one is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.ingest.lag import LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.told.conditions import Matter
from keptlog.passes.watch import ingest_evidence
from keptlog.table.store import LogStore
from tests.mock_broker import MockBroker, mock_broker
from tests.table.foreign import insert

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


def test_a_silent_broker_is_over_only_once_the_source_of_each_topic_could_be_read(
    store: LogStore, broker: MockBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingested(store, "answered", broker.bootstrap)
    ingested(store, "unanswered", SILENT)
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


def test_the_broker_of_a_topic_that_may_not_be_written_to_is_asked_and_no_lag_is_made_of_it(
    store: LogStore, broker: MockBroker, tmp_path: Path
) -> None:
    broker.produce("users", ("a", "1"))
    ingested(store, "answered", broker.bootstrap)
    ingested(store, "unanswered", SILENT)
    for topic in ("answered", "unanswered"):
        insert(tmp_path / "home", 5, topic=topic)
    scan = LagScanner(store).scan(ClientSettings.load({}, {}), NOW_MS)
    assert (scan.topics, scan.asked, list(scan.silent)) == ((), [], [SILENT])
    assert Matter.BROKER in ingest_evidence(scan).judged


def test_a_topic_without_a_source_that_may_not_be_written_to_keeps_no_broker_from_being_over(
    store: LogStore, broker: MockBroker, tmp_path: Path
) -> None:
    broker.produce("users", ("a", "1"))
    ingested(store, "answered", broker.bootstrap)
    store.create_topic("appended", 1, {})
    insert(tmp_path / "home", 5, topic="appended")
    scan = LagScanner(store).scan(ClientSettings.load({}, {}), NOW_MS)
    assert [each.topic for each in scan.topics] == ["answered"]
    assert Matter.BROKER in ingest_evidence(scan).judged
