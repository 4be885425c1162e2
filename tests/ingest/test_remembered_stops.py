"""What an ingest stops at after reading is remembered beside the log, for those who look and read nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from keptlog.cli import metrics
from keptlog.ingest import kafka_brokers
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.lag import LagScan, LagScanner
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.watch import ingest_evidence
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.metadata.state import ingest_stopped
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.mock_broker import MockBroker, mock_broker

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
USERS = TopicPartition("users", 0)
UNFIT_MS = 2**62
"""No table can hold such a timestamp."""


@dataclass
class Ingested:
    """A topic of a broker that is ingested, and looked at."""

    store: LogStore
    broker: MockBroker
    now_ms: int = NOW_MS
    runs: int = 0
    scanner: LagScanner = field(init=False)

    def __post_init__(self) -> None:
        self.scanner = LagScanner(self.store)

    def ingest(self, *, skip_lost: bool = False) -> IngestResult:
        self.runs += 1
        passing = Ingest(self.store, in_process_engine(self.store.files), lambda: self.now_ms)
        source = KafkaBrokers(ClientSettings.load({}, {}), {"users": "users"}, self.broker.bootstrap)
        return passing.carry_out(passing.plan(source, skip_lost=skip_lost), f"run-{self.runs}")

    def scan(self) -> LagScan:
        return self.scanner.scan(ClientSettings.load({}, {}), self.now_ms)

    @property
    def location(self) -> str:
        return self.store.metadata_locations()["users"]


@pytest.fixture
def users(store: LogStore) -> Iterator[Ingested]:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"))
        ingested = Ingested(store, broker)
        assert not ingested.ingest().failed
        yield ingested


@pytest.fixture
def stopped(users: Ingested) -> Ingested:
    users.broker.produce("users", ("a", "2"), timestamp_ms=UNFIT_MS)
    users.broker.produce("users", ("a", "3"))
    assert list(users.ingest().failed) == ["users-0"]
    return users


def test_who_looks_is_told_of_a_record_that_no_table_can_hold(stopped: Ingested) -> None:
    scan = stopped.scan()
    assert "which no table can hold" in scan.stopped[USERS]
    [condition] = ingest_evidence(scan).conditions
    assert condition.subject == "users-0"
    lag = metrics._lags(scan)[USERS]
    assert (lag.is_stopped, lag.offsets) == (True, 2)


def test_who_looks_is_told_of_deletions_that_may_be_missed(users: Ingested, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_brokers, "tombstones_kept_ms", lambda _s, _t, numbers, _w: dict.fromkeys(numbers, DAY_MS))
    monkeypatch.setattr("keptlog.ingest.ingest_pass.missing_offsets", lambda *_: 1)
    users.now_ms += 3 * DAY_MS
    users.broker.produce("users", ("a", "2"))
    assert "tombstones may be gone" in str(users.ingest().failed["users-0"])
    assert "tombstones may be gone" in users.scan().stopped[USERS]
    assert not users.ingest(skip_lost=True).failed
    assert not users.scan().stopped


def test_it_is_still_to_be_tried_again(stopped: Ingested) -> None:
    [topic] = stopped.scan().topics
    assert topic.behind == [USERS]


def test_another_process_is_told_too(stopped: Ingested) -> None:
    assert LagScanner(stopped.store).scan(ClientSettings.load({}, {}), NOW_MS).stopped.keys() == {USERS}


def test_the_same_stop_is_noted_once(stopped: Ingested) -> None:
    before = stopped.location
    stopped.now_ms += 60_000
    assert stopped.ingest().failed
    assert stopped.location == before


def test_one_that_can_not_be_noted_for_a_reason_that_nobody_has_thought_of_ends_no_ingest(
    users: Ingested, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> NoReturn:
        raise IndexError("list index out of range")

    users.broker.produce("users", ("a", "2"), timestamp_ms=UNFIT_MS)
    monkeypatch.setattr(EmbeddedCatalog, "commit_table", fails)
    assert "which no table can hold" in str(users.ingest().failed["users-0"])
    assert "that the ingest of users-0 is stopped is not remembered" in caplog.text


def test_any_move_of_the_log_ends_it(stopped: Ingested) -> None:
    stopped.scan()
    with pytest.MonkeyPatch.context() as mended:
        mended.setattr("keptlog.sources.kafka_broker.messages.LARGEST_STORABLE_MS", 2**63 - 1)
        mended.setattr("keptlog.sources.kafka_broker.messages.US_PER_MS", 0)
        assert not stopped.ingest().failed
    assert not stopped.scan().stopped
    assert stopped.store.load_table("users").properties[ingest_stopped(0)] == ""


def test_a_later_topic_of_the_same_name_has_not_stopped(stopped: Ingested) -> None:
    stopped.scan()
    stopped.store.delete_topic("users", NOW_MS)
    assert not stopped.scan().stopped


def test_an_outage_is_no_stop(users: Ingested, monkeypatch: pytest.MonkeyPatch) -> None:
    before = users.location
    users.broker.produce("users", ("a", "2"))
    users.broker.lose_leader("users", 0)
    assert users.ingest().failed
    assert users.location == before


def test_a_note_that_is_damaged_hides_nothing_else_and_is_not_taken_for_fine(stopped: Ingested) -> None:
    with stopped.store.load_table("users").transaction() as transaction:
        transaction.set_properties({ingest_stopped(0): "{nonsense"})
    scan = stopped.scan()
    assert (scan.stopped, list(scan.unseen)) == ({}, [USERS])
    assert stopped.ingest().failed
    assert stopped.scan().stopped.keys() == {USERS}


def test_quiet_looks_read_no_table(stopped: Ingested, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped.scan()
    monkeypatch.setattr(stopped.store, "load_table", lambda _topic: pytest.fail("it was read"))
    assert stopped.scan().stopped.keys() == {USERS}
