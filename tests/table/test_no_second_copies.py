"""A change that has landed leaves no copy of its records beside those that are live: an erasure would wait for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import StorageUnavailable
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.truncate import Truncation
from keptlog.table.commits import staged as staged_files
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    create,
    files_below,
    new_id,
    new_records,
    staged,
    store_at,
    store_over,
    values,
)

Commit = Callable[[], CommitTableResponse]


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


def four(store: LogStore, first: int) -> list[Segment]:
    return staged(store, TOPIC, 0, [Record(first + each, b"k", b"v", NOW_MS) for each in range(4)])


def ingest(store: LogStore, run_id: str) -> None:
    arrival = Arrival(OffsetRange(0, None, 0, 4), tuple(four(store, 0)))
    store.ingest(TOPIC, [arrival], SourceIdentity("there"), 1, run_id)


def live(store: LogStore) -> set[str]:
    return {segment.path.removeprefix("file://") for log in store.logs(TOPIC) for segment in log.segments}


def overtaken_by(faster: Callable[[], object]) -> Callable[[Commit], CommitTableResponse]:
    def fault(commit: Commit) -> CommitTableResponse:
        faster()
        return commit()

    return fault


def lost_answer(commit: Commit) -> CommitTableResponse:
    commit()
    raise CommitFailedException("said of a request that was sent twice")


def test_a_truncation_that_lost_a_race(tmp_path: Path, faulty: FaultyCatalog) -> None:
    store = store_over(faulty)
    ingest(store, "run")
    before = files_below(tmp_path)
    faulty.faults = [overtaken_by(lambda: store_at(tmp_path).ingest(TOPIC, [], SourceIdentity("there", "id"), 1, "2"))]
    done = Truncation(TopicPartition(TOPIC, 0), 2, new_id(), new_id).commit(store.committer, store.files)
    assert (done.log_end_offset, done.records) == (2, 2)
    assert {str(path) for path in files_below(tmp_path) - before} == live(store)


def test_an_ingest_that_another_process_of_the_same_run_did(tmp_path: Path, faulty: FaultyCatalog) -> None:
    faulty.faults = [overtaken_by(lambda: ingest(store_at(tmp_path), "run"))]
    ingest(store_over(faulty), "run")
    assert {str(path) for path in files_below(tmp_path)} == live(store_at(tmp_path))


@pytest.mark.parametrize("value", ["1", "another"])
def test_an_append_that_another_process_of_the_same_run_did(tmp_path: Path, faulty: FaultyCatalog, value: str) -> None:
    records = new_records(("a", value))
    faulty.faults = [overtaken_by(lambda: store_at(tmp_path).append(TOPIC, records, "run", NOW_MS))]
    done = store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert (done.is_repeated, done.records) == (True, 1)
    assert [text for _, _, text in values(store_at(tmp_path))] == [value.encode()]
    assert {str(path) for path in files_below(tmp_path)} == live(store_at(tmp_path))


def test_what_landed_itself_stays(tmp_path: Path, faulty: FaultyCatalog) -> None:
    store = store_over(faulty)
    faulty.faults = [lost_answer]
    assert not store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).is_repeated
    assert len(files_below(tmp_path)) == 1
    assert [text for _, _, text in values(store)] == [b"1"]


def test_an_ingest_that_landed_itself_stays(tmp_path: Path, faulty: FaultyCatalog) -> None:
    faulty.faults = [lost_answer]
    ingest(store_over(faulty), "run")
    assert {str(path) for path in files_below(tmp_path)} == live(store_at(tmp_path))
    assert len(values(store_at(tmp_path))) == 4


def test_a_catalog_that_lags_makes_nothing_live_go(
    tmp_path: Path, faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_over(faulty)
    ingest(store, "run")
    before = store.load_table(TOPIC)
    monkeypatch.setattr(staged_files, "load_topic_table", lambda *_: before)
    faulty.faults = [lost_answer]
    source = SourceIdentity("there", "id")
    store.ingest(TOPIC, [Arrival(OffsetRange(0, 4, 4, 8), tuple(four(store, 4)))], source, 1, "2")
    faulty.faults = [lost_answer]
    Truncation(TopicPartition(TOPIC, 0), 6, new_id(), new_id).commit(store.committer, store.files)
    other = overtaken_by(lambda: store_at(tmp_path).ingest(TOPIC, [], SourceIdentity("there", "id", "a:1"), 1, "3"))
    faulty.faults = [other]
    Truncation(TopicPartition(TOPIC, 0), 5, new_id(), new_id).commit(store.committer, store.files)
    assert live(store) <= {str(path) for path in files_below(tmp_path)}
    assert len(values(store)) == 5


def test_what_is_left_after_a_landing_fails_nobody(
    tmp_path: Path, faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object) -> None:
        raise StorageUnavailable("for a moment")

    monkeypatch.setattr(staged_files, "discard", unavailable)
    faulty.faults = [overtaken_by(lambda: ingest(store_at(tmp_path), "run"))]
    ingest(store_over(faulty), "run")
    assert len(values(store_at(tmp_path))) == 4


def test_another_process_s_append_is_told_as_that_also_where_the_topic_can_not_be_read(
    tmp_path: Path, faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object) -> Table:
        raise StorageUnavailable("for a moment")

    monkeypatch.setattr(staged_files, "load_topic_table", unavailable)
    faulty.faults = [
        overtaken_by(lambda: store_at(tmp_path).append(TOPIC, new_records(("a", "2"), ("b", "2")), "run", NOW_MS))
    ]
    done = store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert (done.is_repeated, done.records) == (True, 2)
