"""A process that may open no more files: a change is looked for, as the catalog may read back what it has changed.

Such a failure was taken for a disk that refuses to write, so nobody looked, and what was done was said to have failed.
Once it is sure that nothing landed, it is told at once, with the limit.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import CommitStateUnknown, StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.change import Change
from keptlog.table.store import LogStore
from tests.table.purges import sealing_into
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, FaultyCatalog, create, new_id, new_records, store_over, values


def no_more_files() -> OSError:
    return OSError(errno.EMFILE, "Too many open files", "/lake/metadata/00001.metadata.json")


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("keptlog", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))


@pytest.fixture
def store(tmp_path: Path, catalog: SqlCatalog) -> LogStore:
    store = LogStore(catalog, {}, lambda _: None, new_id)
    store.seal = sealing_into(tmp_path / "chain")
    store.create_topic("other", 1, COMPACTED)
    return store


def can_not_read_back(monkeypatch: pytest.MonkeyPatch, catalog: SqlCatalog, change: str) -> None:
    really = getattr(catalog, change)

    def changed(*args: Any, **kwargs: Any) -> None:
        really(*args, **kwargs)
        raise no_more_files()

    monkeypatch.setattr(catalog, change, changed)


def test_a_topic_that_was_created_is_there(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    can_not_read_back(monkeypatch, catalog, "create_table")
    store.create_topic(TOPIC, 2, COMPACTED)
    assert len(store.logs(TOPIC)) == 2


def test_a_topic_that_was_taken_out_is_deleted(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    can_not_read_back(monkeypatch, catalog, "rename_table")
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    assert (store.topics(), store.being_deleted()) == (["other"], [])


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


def lose_the_answer_and_fail_to_look(monkeypatch: pytest.MonkeyPatch, faulty: FaultyCatalog, times: float) -> None:
    really = faulty.load_table
    left = [times]

    def load(identifier: Any) -> Table:
        if left[0] > 0:
            left[0] -= 1
            raise no_more_files()
        return really(identifier)

    def lost(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        commit()
        monkeypatch.setattr(faulty, "load_table", load)
        raise CommitStateUnknownException("the line was cut after the commit")

    faulty.faults = [lost]


def test_a_commit_whose_answer_was_lost_is_looked_for_until_files_can_be_opened_again(
    faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer_and_fail_to_look(monkeypatch, faulty, 1)
    store = store_over(faulty)
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert values(store) == [(0, 0, b"1")]


def test_nobody_says_that_nothing_landed_while_it_can_not_be_looked_for(
    faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer_and_fail_to_look(monkeypatch, faulty, float("inf"))
    with pytest.raises(CommitStateUnknown, match="Too many open files") as told:
        store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert "nothing landed" not in str(told.value)


def fail_to_write(faulty: FaultyCatalog) -> None:
    def unwritten(_: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        raise no_more_files()

    faulty.faults = [unwritten] * 30


def test_a_commit_that_could_not_be_written_names_the_limit_after_one_look(faulty: FaultyCatalog) -> None:
    fail_to_write(faulty)
    with pytest.raises(StorageUnavailable, match=r"nothing landed: raise that limit \(ulimit -n\)") as told:
        store_over(faulty).append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert (faulty.commits, told.value.is_refused) == (1, True)


def test_so_does_a_commit_for_which_nothing_could_be_prepared(
    faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: Any) -> Table:
        raise no_more_files()

    monkeypatch.setattr(faulty, "load_table", load)
    with pytest.raises(StorageUnavailable, match=r"nothing landed: raise that limit \(ulimit -n\)"):
        store_over(faulty).alter_topic(TOPIC, {"retention.ms": "1"}, [])


def test_a_change_that_is_not_looked_for_names_the_limit_and_does_not_say_that_nothing_landed(
    faulty: FaultyCatalog,
) -> None:
    fail_to_write(faulty)
    with pytest.raises(StorageUnavailable, match="ulimit -n") as told:
        store_over(faulty).committer.commit(Change(TOPIC), lambda table: lambda: faulty.commit_table(table, (), ()))
    assert "nothing landed" not in str(told.value)
    assert (faulty.commits, told.value.is_refused) == (1, True)


def test_a_change_that_is_not_looked_for_is_tried_again_while_an_earlier_try_has_no_answer(
    faulty: FaultyCatalog,
) -> None:
    def unanswered(_: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        raise CommitStateUnknownException("the line was cut")

    fail_to_write(faulty)
    faulty.faults[0] = unanswered
    with pytest.raises(StorageUnavailable) as told:
        store_over(faulty).committer.commit(Change(TOPIC), lambda table: lambda: faulty.commit_table(table, (), ()))
    assert "nothing landed" not in str(told.value)
    assert faulty.commits > 2


def test_a_read_that_it_keeps_from_a_topic_names_the_limit_and_is_tried_again(
    faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: Any) -> Table:
        raise no_more_files()

    monkeypatch.setattr(faulty, "load_table", load)
    with pytest.raises(StorageUnavailable, match="ulimit -n") as told:
        store_over(faulty).logs(TOPIC)
    assert not told.value.is_refused
