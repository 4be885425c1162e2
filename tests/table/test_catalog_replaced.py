"""A program that has a home open notices that its catalog is gone, or that another one lies in its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    append_each,
    create,
    new_id,
    new_records,
    store_at,
    values,
)

ASKED: dict[str, Callable[[LogStore], object]] = {
    "topics": LogStore.topics,
    "topics being deleted": LogStore.being_deleted,
    "locations": LogStore.metadata_locations,
    "logs": lambda store: store.logs(TOPIC),
    "create": lambda store: store.create_topic("another", 1, COMPACTED),
    "append": lambda store: store.append(TOPIC, new_records(("k", "5")), new_id(), NOW_MS),
    "delete": lambda store: store.delete_topic(TOPIC, NOW_MS),
}


def opened(home: Path) -> LogStore:
    """A store that has connections to its catalog."""
    store = create(home)
    append_each(store, [("k", "1")])
    return store


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_home_that_went_away_is_an_outage_and_not_one_without_topics(
    tmp_path: Path, ask: Callable[[LogStore], object]
) -> None:
    store = opened(tmp_path / "home")
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").rglob("*"))
    with pytest.raises(StorageUnavailable, match=r"has lost its catalog: .*catalog.db is not there any more") as told:
        ask(store)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "home").exists()
    assert sorted((tmp_path / "elsewhere").rglob("*")) == before
    (tmp_path / "elsewhere").rename(tmp_path / "home")
    append_each(store, [("k", "2")])
    assert [value for _, _, value in values(store_at(tmp_path / "home"))] == [b"1", b"2"]


def test_a_catalog_that_was_emptied_is_an_outage_and_not_one_without_topics(tmp_path: Path) -> None:
    store = opened(tmp_path / "home")
    shutil.rmtree(tmp_path / "home")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "catalog.db").touch()
    with pytest.raises(StorageUnavailable, match=r"has lost its catalog: .*catalog.db is empty"):
        store.topics()


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_catalog_that_was_emptied_where_it_lies_is_an_outage_until_its_content_is_back(
    tmp_path: Path, ask: Callable[[LogStore], object]
) -> None:
    store = opened(tmp_path)
    database = tmp_path / "catalog.db"
    content = database.read_bytes()
    database.write_bytes(b"")
    with pytest.raises(StorageUnavailable, match=r"has lost its catalog: .*catalog.db is empty"):
        ask(store)
    assert database.read_bytes() == b""
    database.write_bytes(content)
    append_each(store, [("k", "2")])
    assert [value for _, _, value in values(store_at(tmp_path))] == [b"1", b"2"]


def test_a_backup_that_was_put_back_is_what_is_read_and_written_from_then_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = opened(home)
    shutil.copytree(home, tmp_path / "backup")
    append_each(store, [("k", "lost")])
    store.create_topic("later", 1, COMPACTED)
    home.rename(tmp_path / "bad")
    (tmp_path / "backup").rename(home)
    append_each(store_at(home), [("k", "other")])

    assert store.topics() == [TOPIC]
    assert [value for _, _, value in values(store)] == [b"1", b"other"]
    append_each(store, [("k", "own")])
    store.create_topic("another", 1, COMPACTED)

    assert [value for _, _, value in values(store_at(home))] == [b"1", b"other", b"own"]
    assert store_at(home).topics() == ["another", TOPIC]


def test_a_backup_that_is_put_back_in_the_middle_of_a_commit_is_met_by_the_next_attempt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = opened(home)
    catalog = store.committer.catalog
    assert isinstance(catalog, EmbeddedCatalog)
    shutil.copy(home / "catalog.db", tmp_path / "backup.db")

    @event.listens_for(catalog.engine, "before_cursor_execute")
    def replace(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if statement.startswith("UPDATE") and (tmp_path / "backup.db").exists():
            (home / "catalog.db").rename(tmp_path / "bad.db")
            (tmp_path / "backup.db").rename(home / "catalog.db")

    append_each(store, [("k", "2")])
    assert (tmp_path / "bad.db").exists()
    assert [value for _, _, value in values(store_at(home))] == [b"1", b"2"]
