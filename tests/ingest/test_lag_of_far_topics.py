"""A topic whose storage does not answer takes its own time of a look at sources, and no other's."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.ingest.lag import READING_MS, LagScanner
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.table.store import LogStore
from tests.logs import open_store
from tests.mock_broker import PARTITIONS, mock_broker

NOW_MS = 1_800_000_000_000
AWAY = [f"away-{n:02}" for n in range(40)]


class Away:
    """A bucket that does not answer: who asks waits 10 s by ``monotonic_ms``."""

    def __init__(self, store: LogStore) -> None:
        self.passed_ms, self.asked, self.still = 0, list[str](), set(AWAY)
        self._really, self._lock = store.load_table, threading.Lock()

    def monotonic_ms(self) -> int:
        return self.passed_ms

    def load_table(self, topic: str) -> object:
        with self._lock:
            self.asked.append(topic)
            if topic in self.still:
                self.passed_ms += 10_000
                raise StorageUnavailable(f"topic {topic}: the bucket does not answer")
        return self._really(topic)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LagScanner, Away]:
    store = open_store(tmp_path)
    for topic in [*AWAY, "users"]:
        store.create_topic(topic, 1, {})
    away = Away(store)
    monkeypatch.setattr(store, "load_table", away.load_table)
    return LagScanner(store, away.monotonic_ms), away


def test_a_look_ends_in_time_and_what_it_had_none_for_is_told_as_not_read(scene: tuple[LagScanner, Away]) -> None:
    scanner, away = scene
    first = scanner.sources()
    assert len(away.asked) < len(AWAY), f"nothing is begun after {READING_MS} ms"
    assert first.may_have_brokers
    assert "was not read: others took 15 s" in str(first.known["users"].why_unread)


def test_what_could_not_be_read_is_tried_after_all_others_and_longest_ago_first(
    scene: tuple[LagScanner, Away],
) -> None:
    scanner, away = scene
    scanner.sources()
    failed = set(away.asked)
    for _ in AWAY:
        scanner.sources()
    assert set(away.asked) == {*AWAY, "users"}
    assert away.asked.count("users") == 1, "it was read at one location"
    assert failed <= set(away.asked[len(failed) + 1 :]), "those of the first look were tried again"

    away.still.clear()
    assert not any(each.why_unread for each in scanner.sources().known.values())


def test_the_table_of_a_topic_that_has_changed_is_loaded_once(scene: tuple[LagScanner, Away]) -> None:
    scanner, away = scene
    away.still.clear()
    scanner.sources()
    scanner.sources()
    assert sorted(away.asked) == sorted([*AWAY, "users"])


def test_what_was_seen_of_a_topic_is_kept_over_a_look_that_could_not_read_it(tmp_path: Path) -> None:
    """Else the next ingest stops, for nobody knows then that nothing was missed."""
    store, settings = open_store(tmp_path), ClientSettings.load({}, {}, where="nowhere")
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"), partition=0)
        store.create_topic("users", 1, {})
        there = SourceIdentity("users", bootstrap=broker.bootstrap)
        store.ingest("users", [Arrival(OffsetRange(0, None, 0, 1), ())], there, PARTITIONS, "run")
        scanner = LagScanner(store)
        [before] = scanner.scan(settings, NOW_MS).topics
        assert before.seen_ms[0] == NOW_MS
        store.alter_topic("users", {"min.compaction.lag.ms": "1"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "load_table", _away)
            assert scanner.scan(settings, NOW_MS + 1).unread
        broker.produce("users", ("b", "1"), partition=0)
        [after] = scanner.scan(settings, NOW_MS + 2).topics
        assert after.seen_ms[0] == NOW_MS


def _away(topic: str) -> object:
    raise StorageUnavailable(f"topic {topic}: the bucket does not answer")
