"""A table that another program has registered under a second name: nothing that either of the two needs is deleted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.errors import Action, LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.doctor.topic_exam import examined, put_back
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.deletion import Deletion
from keptlog.table.removal.own_folder import not_own, require_alone
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.stores import NOW_MS, TOPIC, FaultyCatalog, append_each, create, new_id, new_records, store_at, values

TWIN = "twin.of-users"
SHARED = "is that of the table {} too, and nothing was deleted: take one of the two out of its catalog"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")])
    open_catalog(tmp_path).register_table((NAMESPACE, TWIN), table_of(tmp_path).metadata_location)
    return store


@pytest.fixture
def later_ms() -> int:
    return time.time_ns() // 1_000_000 + 7 * 24 * 3_600_000


def test_a_purge_of_one_deletes_nothing_that_the_other_was_appended(store: LogStore, later_ms: int) -> None:
    store.append(TWIN, new_records(("b", "mine")), new_id(), NOW_MS)
    append_each(store, [("a", "3")], [("a", "4")])
    for topic, other in ((TOPIC, TWIN), (TWIN, TOPIC)):
        with pytest.raises(LogCorrupt, match=SHARED.format(f"keptlog.{other}")):
            store.purge(topic, later_ms)
        with pytest.raises(LogCorrupt, match=SHARED.format(f"keptlog.{other}")):
            preview_purge(store, topic, later_ms, 1)
    assert values(store, TWIN)[-1] == (0, 2, b"mine")
    assert [value for _, _, value in values(store)] == [b"1", b"2", b"3", b"4"]


def test_a_deletion_of_one_leaves_the_other_whole(store: LogStore) -> None:
    with pytest.raises(LogCorrupt, match=SHARED.format(f"keptlog.{TOPIC}")):
        store.delete_topic(TWIN, NOW_MS)
    assert store.topics() == [TOPIC, TWIN]
    assert len(values(store)) == 2


def test_a_deletion_asks_each_table_of_a_catalog_that_is_no_database(store: LogStore, tmp_path: Path) -> None:
    server = FaultyCatalog(open_catalog(tmp_path))
    server.list_namespaces = server.real.list_namespaces  # type: ignore[method-assign]
    server.namespace_exists = server.real.namespace_exists  # type: ignore[method-assign]
    with pytest.raises(LogCorrupt, match=SHARED.format(f"keptlog.{TOPIC}")):
        Deletion(server, store.files, TWIN, NOW_MS).delete()
    assert store.topics() == [TOPIC, TWIN]


def test_a_deletion_that_was_begun_stops_once_its_table_is_registered_again(store: LogStore, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, TWIN), (DELETING, TWIN))
    with pytest.raises(LogCorrupt, match=SHARED.format(f"keptlog.{TOPIC}")):
        store.deletion(TWIN, NOW_MS).finish()
    assert len(values(store)) == 2


def test_a_topic_whose_deletion_begins_while_it_is_looked_at_is_no_second_table(tmp_path: Path) -> None:
    store, catalog = create(tmp_path), open_catalog(tmp_path)
    table = store.load_table(TOPIC)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, TOPIC), (DELETING, TOPIC))
    assert not_own(catalog, table, []) is None
    server = FaultyCatalog(catalog)
    server.list_namespaces = catalog.list_namespaces  # type: ignore[method-assign]
    require_alone(server, table)


def test_other_catalogs_in_the_same_database_count(tmp_path: Path, later_ms: int) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    spark = SqlCatalog("lake", uri=f"sqlite:///{tmp_path / DATABASE}")
    spark.create_namespace("db")
    spark.register_table("db.users", table_of(tmp_path).metadata_location)
    with pytest.raises(LogCorrupt, match=SHARED.format(r"lake\.db\.users")):
        store.purge(TOPIC, later_ms)


def test_doctor_tells_it_of_both(store: LogStore) -> None:
    assert f"keptlog.{TWIN} too, and no purge deletes anything" in str(examined(store, TOPIC).not_own)
    assert f"keptlog.{TOPIC} too, and no purge deletes anything" in str(examined(store, TWIN).not_own)


def test_once_one_of_the_two_was_dropped_all_goes_on(store: LogStore, tmp_path: Path, later_ms: int) -> None:
    append_each(store, [("a", "3")])
    open_catalog(tmp_path).drop_table((NAMESPACE, TWIN))
    store = store_at(tmp_path)
    assert examined(store, TOPIC).not_own is None
    assert store.purge(TOPIC, later_ms).expired_snapshots
    assert len(values(store)) == 3


def test_a_name_whose_metadata_the_commits_to_the_other_have_deleted_is_told_as_that(
    store: LogStore, tmp_path: Path
) -> None:
    for number in range(22):
        append_each(store, [("b", str(number))])
    said = rf"is gone, and the table keptlog.{TOPIC} has its files too: .*drop_table\(\('keptlog', '{TWIN}'\)\) does"
    for look in (examined, put_back, LogStore.logs):
        with pytest.raises(LogCorrupt, match=said) as told:
            look(store, TWIN)
        assert told.value.action is Action.FIX_CONFIG
    assert len(values(store)) == 24
    open_catalog(tmp_path).drop_table((NAMESPACE, TWIN))
    assert examined(store_at(tmp_path), TOPIC).not_own is None
