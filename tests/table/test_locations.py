"""Where topics are: asked with as few requests as the catalog allows, side by side, and never for too long."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import IcebergTables
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from keptlog.errors import StorageUnavailable
from keptlog.home import monotonic_ms
from keptlog.passes.names import named_logs
from keptlog.passes.observer import LOCATING_MS, READING_MS, Observer, observe
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.catalogs.rest import PatientRestCatalog
from keptlog.table.store import LogStore
from keptlog.table.waiting.side_by_side import AT_ONCE, Patience, side_by_side
from tests.table.rest_server import Answer, RestServer, rest_server
from tests.table.stores import NOW_MS, TOPIC, append_each, create, new_id, store_at


def many_topics(home: Path, count: int) -> None:
    """Topics that share the table of ``TOPIC``, so that they are there at once."""
    append_each(create(home), [("a", "1")])
    catalog = EmbeddedCatalog(home)
    with Session(catalog.engine) as session:
        row = session.execute(select(IcebergTables.__table__)).mappings().one()
        more = [dict(row) | {"table_name": f"topic-{number:04d}"} for number in range(count - 1)]
        session.execute(insert(IcebergTables), more)
        session.commit()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    many_topics(tmp_path, 40)
    with rest_server(tmp_path) as server:
        yield server


def store_behind(server: RestServer) -> LogStore:
    how = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"}
    catalog = PatientRestCatalog("rest", uri=server.uri, **how)
    server.asked.clear()
    return LogStore(catalog, {}, lambda _: None, new_id)


def test_an_observer_asks_a_rest_catalog_once_for_each_topic_and_again_only_whether_it_has_moved(
    server: RestServer, tmp_path: Path
) -> None:
    observer = Observer(store_behind(server), monotonic_ms)
    assert (len(observer.look(NOW_MS).assessments), observer.look(NOW_MS).behind) == (40, 0)
    # The first look asks where each topic is and reads it; the second asks which has moved.
    assert server.asked == {"list": 2, "load": 120, "unchanged": 40}
    assert server.most_at_once <= AT_ONCE
    server.asked.clear()
    append_each(store_at(tmp_path), [("b", "2")])
    assert observer.look(NOW_MS).behind == 0
    assert server.asked == {"list": 1, "load": 41, "unchanged": 39}


def test_a_rest_catalog_that_knows_no_etags_is_asked_as_often(server: RestServer) -> None:
    server.has_etags = False
    observer = Observer(store_behind(server), monotonic_ms)
    observer.look(NOW_MS)
    server.asked.clear()
    assert observer.look(NOW_MS).behind == 0
    assert server.asked == {"list": 1, "load": 40}


def test_five_hundred_topics_behind_a_far_rest_catalog_are_judged_within_three_ticks(tmp_path: Path) -> None:
    many_topics(tmp_path, 500)
    with rest_server(tmp_path) as server:
        server.delay_seconds = 0.03
        # The time that a far catalog costs, however busy this machine is.
        observer = Observer(store_behind(server), lambda: server.asked["load"] * 30 // AT_ONCE)
        ticks = 1
        while (seen := observer.look(NOW_MS)).behind:
            ticks += 1
            assert ticks <= 3
        assert len(seen.assessments) == 500
        server.asked.clear()
        assert observer.look(NOW_MS).behind == 0
        assert server.asked["list"] == 1
        assert server.asked["load"] <= 500
        assert 2 < server.most_at_once <= AT_ONCE


def test_a_database_is_asked_once_however_many_topics_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_topics(tmp_path, 40)
    store = store_at(tmp_path)
    asked: list[str] = []
    monkeypatch.setattr("keptlog.table.commits.locations.metadata_location", lambda _, name: asked.append(name))
    assert len(store.metadata_locations()) == 40
    assert asked == []


def test_who_has_no_time_is_told_of_those_that_were_asked_last_as_they_were(server: RestServer) -> None:
    store = store_behind(server)
    clock = itertools.count(0, 100)
    first = store.metadata_locations(Patience(lambda: next(clock), 1_050))
    assert (len(first), first.to_be_asked) == (10, 30)
    second = store.metadata_locations(Patience(lambda: next(clock), next(clock) + 2_000))
    assert second.keys() > first.keys()
    assert (len(second), second.to_be_asked) == (28, 12)
    assert second.asked_ago_ms > 0
    rest = store.metadata_locations()
    assert (len(rest), rest.to_be_asked) == (40, 0)


def test_an_observer_that_could_not_ask_for_all_topics_says_so_and_goes_on_with_the_others(server: RestServer) -> None:
    now = [0]

    def clock() -> int:
        now[0] += LOCATING_MS // 20
        return now[0]

    observer = Observer(store_behind(server), clock)
    first = observer.look(NOW_MS)
    assert 0 < len(first.locations) < 40
    assert first.behind == 40 - len(first.locations)
    looks = [observer.look(NOW_MS) for _ in range(4)]
    assert [looks[-1].behind, len(looks[-1].assessments)] == [0, 40]
    assert looks[-1].asked_ago_ms > 0
    assert READING_MS > LOCATING_MS


def test_a_rest_catalog_that_is_busy_once_is_asked_again_and_one_that_always_is_can_not_be_reached(
    server: RestServer,
) -> None:
    store = store_behind(server)
    server.answers["load"] = [Answer(503)]
    assert all(store.metadata_locations().values())
    assert server.asked == {"list": 1, "load": 41}
    server.answers["load"] = [Answer(503)] * 200
    with pytest.raises(StorageUnavailable):
        store.metadata_locations()


def test_a_look_at_all_topics_reads_them_side_by_side(server: RestServer) -> None:
    store = store_behind(server)
    server.delay_seconds = 0.01
    assert len(observe(store, now_ms=NOW_MS).logs) == 40
    assert server.asked == {"list": 1, "load": 80}
    assert 1 < server.most_at_once <= AT_ONCE


@pytest.mark.parametrize("words", [(), ("topic-0001", "topic-0002-0", "topic-0003", TOPIC, f"{TOPIC}-0", "nobody")])
def test_the_logs_that_words_mean_are_read_side_by_side_each_topic_once(
    server: RestServer, words: tuple[str, ...]
) -> None:
    store = store_behind(server)
    server.delay_seconds = 0.01
    named = named_logs(store, words)
    assert len(named.logs) == (4 if words else 40)
    # What is no topic may be one whose deletion is not finished: those are listed too.
    assert server.asked == {"list": 2 if words else 1, "load": len(named.logs)}
    assert 1 < server.most_at_once <= AT_ONCE


def test_what_is_done_side_by_side_is_begun_in_order_and_told_in_order() -> None:
    begun = [threading.Event() for _ in range(30)]

    def do(number: int) -> int:
        # Out of order, each thread would come to wait for one that nobody has begun.
        assert number == 0 or begun[number - 1].wait(60)
        begun[number].set()
        time.sleep(0.001 * (5 - number % 5))
        return number * 2

    assert side_by_side(do, range(30), 4) == {number: number * 2 for number in range(30)}


def test_nothing_more_is_begun_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    has_failed = threading.Event()

    class Pool(ThreadPoolExecutor):
        def submit(self, *work: Any) -> Future[Any]:  # type: ignore[override]
            worker = super().submit(*work)
            worker.add_done_callback(lambda ended: has_failed.set() if ended.exception() else None)
            return worker

    def do(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        assert has_failed.wait(60)

    monkeypatch.setattr("keptlog.table.waiting.side_by_side.ThreadPoolExecutor", Pool)
    with pytest.raises(ValueError, match="three"):
        side_by_side(do, range(1000), 4)
    assert sorted(begun) == [0, 1, 2, 3]


def test_in_one_thread_it_is_a_loop() -> None:
    here = threading.current_thread()
    assert side_by_side(lambda _: threading.current_thread(), "ab", 1) == {"a": here, "b": here}
