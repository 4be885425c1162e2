"""A deletion that got no answer of the catalog looks for it: "can't be deleted" was said of one that is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError, TableAlreadyExistsError

from keptlog.errors import CommitStateUnknown, StorageUnavailable
from keptlog.table.store import LogStore
from tests.table.purges import sealing_into
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, new_id

CHANGES = ("rename_table", "drop_table")


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("keptlog", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def store(tmp_path: Path, catalog: SqlCatalog) -> LogStore:
    store = LogStore(catalog, {}, lambda _: None, new_id)
    store.seal = sealing_into(tmp_path / "chain")
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("k", "secret")])
    return store


def lose_the_answer(
    monkeypatch: pytest.MonkeyPatch,
    catalog: SqlCatalog,
    change: str,
    *,
    lands: bool,
    error: type[Exception] = CommitStateUnknownException,
) -> None:
    really = getattr(catalog, change)

    def changed(*args: Any) -> None:
        if lands:
            really(*args)
        raise error("the answer was lost")

    monkeypatch.setattr(catalog, change, changed)


def files_below(home: Path) -> list[Path]:
    return [path for path in (home / "warehouse").rglob("*") if path.is_file()]


@pytest.mark.parametrize("change", CHANGES)
def test_it_was_made_so_the_topic_is_deleted_to_its_last_file(
    tmp_path: Path, catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    lose_the_answer(monkeypatch, catalog, change, lands=True)
    before = files_below(tmp_path)
    assert len(store.delete_topic(TOPIC, NOW_MS).deleted_files) == len(before)
    assert (files_below(tmp_path), store.topics(), store.being_deleted()) == ([], [], [])


@pytest.mark.parametrize("change", CHANGES)
def test_it_was_made_and_a_proxy_says_no_so_the_topic_is_deleted(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    lose_the_answer(monkeypatch, catalog, change, lands=True, error=ForbiddenError)
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    assert (store.topics(), store.being_deleted()) == ([], [])


def test_it_was_made_and_the_second_sending_met_a_conflict_so_the_topic_is_deleted(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(monkeypatch, catalog, "rename_table", lands=True, error=TableAlreadyExistsError)
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    assert (store.topics(), store.being_deleted()) == ([], [])


@pytest.mark.parametrize("change", CHANGES)
def test_it_was_not_made_so_the_same_call_again_goes_on(
    tmp_path: Path, catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    with monkeypatch.context() as meanwhile:
        lose_the_answer(meanwhile, catalog, change, lands=False)
        with pytest.raises(StorageUnavailable, match=f"topic {TOPIC} (can't be deleted|has begun)"):
            store.delete_topic(TOPIC, NOW_MS)
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_can_say(catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    really = getattr(catalog, change)

    def refuse(*_: Any) -> None:
        raise ConnectionResetError("reset")

    def changed(*args: Any) -> None:
        really(*args)
        monkeypatch.setattr(catalog, "load_table", refuse)
        raise CommitStateUnknownException("the answer was lost")

    monkeypatch.setattr(catalog, change, changed)
    with pytest.raises(CommitStateUnknown, match=f"did not say whether it is deleted .* keptlog topic delete {TOPIC}"):
        store.delete_topic(TOPIC, NOW_MS)
