"""Folders of topics without a table are found, and no folder of a topic is taken for one, however it is looked."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.chosen import ChosenTopics
from keptlog.table.doctor.unowned import unowned_folders
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.at_once import let_two_meet
from tests.storage_errors import unlisted
from tests.table.buckets import ABucket
from tests.table.foreign import set_location, table_of
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, create, new_id, new_records, store_at, store_over


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A home with ``TOPIC``, which has a record, and an empty topic."""
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    store.create_topic("empty", 1, COMPACTED)
    return store


def drop(home: Path, topic: str = TOPIC) -> None:
    """As another program does."""
    open_catalog(home).drop_table((NAMESPACE, topic))


def unopened(home: Path) -> UnopenedStore:
    return UnopenedStore(home, {}, lambda: store_at(home))


def found(home: Path) -> list[str]:
    """By name, both through the opened store and before one is opened."""
    told = unowned_folders(store_at(home))
    assert unowned_folders(unopened(home)) == told
    return [each.name for each in told]


def test_a_folder_whose_table_was_dropped_is_unowned(store: LogStore, tmp_path: Path) -> None:
    assert found(tmp_path) == []
    current = table_of(tmp_path).metadata_location
    drop(tmp_path)
    assert found(tmp_path) == [TOPIC]
    [folder] = unowned_folders(store)
    stored = list(store.files.list(folder.path))
    assert (folder.files, folder.bytes) == (len(stored), sum(each.size_bytes for each in stored))
    assert folder.last_metadata == current


def test_a_folder_with_metadata_alone_has_no_record_and_is_not_told(store: LogStore, tmp_path: Path) -> None:
    drop(tmp_path, "empty")
    assert (tmp_path / "warehouse" / "keptlog" / "empty").is_dir()
    assert found(tmp_path) == []


def test_a_topic_that_is_being_deleted_is_told_by_itself_alone(store: LogStore, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, TOPIC), (DELETING, TOPIC))
    assert found(tmp_path) == []
    store.delete_topic(TOPIC, NOW_MS)
    assert found(tmp_path) == []


def test_what_a_run_stages_into_the_folder_of_a_deleted_topic_is_unowned(store: LogStore, tmp_path: Path) -> None:
    late = f"{store.data_location(TOPIC)}/partition=0/late.parquet"
    store.delete_topic(TOPIC, NOW_MS)
    store.files.write_bytes(late, b"value")
    assert found(tmp_path) == [TOPIC]
    [folder] = unowned_folders(store)
    assert (folder.last_metadata, folder.todo) == (None, "delete the folder, if nobody needs it")


@pytest.mark.parametrize(
    "left", ["receipts/runs/1.json", "receipts/readers/search/1/0-5.json", "gc/1.json.0123456789abcdef.part"]
)
def test_what_keptlog_keeps_beside_a_table_has_no_record_and_is_not_told(
    store: LogStore, tmp_path: Path, left: str
) -> None:
    """Who was killed as his topic was deleted may leave it: a purge what it remembers, a reader his position."""
    location = store.describe_topic(TOPIC).location
    store.delete_topic(TOPIC, NOW_MS)
    store.files.write_bytes(f"{location}/metadata/{left}", b"{}")
    assert found(tmp_path) == []
    store.create_topic(TOPIC, 1, COMPACTED)
    assert store.describe_topic(TOPIC).location == location
    store.files.write_bytes(f"{location}/metadata/snap-1.avro", b"a manifest list")
    drop(tmp_path)
    assert found(tmp_path) == [TOPIC]


@pytest.mark.parametrize("left", ["gc/1.json", "gc/deletion-1.json", "receipts/erasures/1.json"])
def test_what_may_be_all_that_tells_of_deleted_files_or_of_erasures_is_told(
    store: LogStore, tmp_path: Path, left: str
) -> None:
    """Another program dropped the table while a deletion, a purge or an erasure was under way."""
    location = store.describe_topic(TOPIC).location
    store.delete_topic(TOPIC, NOW_MS)
    store.files.write_bytes(f"{location}/metadata/{left}", b"{}")
    assert found(tmp_path) == [TOPIC]
    [folder] = unowned_folders(store)
    assert folder.todo.startswith("keep a copy of its metadata/gc and metadata/receipts")
    store.create_topic(TOPIC, 1, COMPACTED)
    assert store.describe_topic(TOPIC).location != location


def test_a_later_topic_of_the_name_lies_elsewhere_and_the_old_folder_stays_unowned(
    store: LogStore, tmp_path: Path
) -> None:
    drop(tmp_path)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("b", "1")])
    assert found(tmp_path) == [TOPIC]


def test_a_topic_whose_metadata_lies_elsewhere_has_its_folder(store: LogStore, tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.transaction().set_properties({"write.metadata.path": f"file://{tmp_path}/elsewhere"}).commit_transaction()
    assert "/elsewhere/" in table_of(tmp_path).metadata_location
    append_each(store, [("b", "1")])
    assert found(tmp_path) == []


@pytest.mark.parametrize("where", ["elsewhere", "warehouse/keptlog/elsewhere"])
def test_the_folder_in_which_a_topic_lay_before_it_was_moved_has_its_records(
    store: LogStore, tmp_path: Path, where: str
) -> None:
    set_location(tmp_path, tmp_path / where)
    append_each(store, [("b", "1")])
    assert found(tmp_path) == []
    drop(tmp_path)
    assert TOPIC in found(tmp_path)


def test_a_topic_whose_metadata_can_not_be_read_is_not_called_unowned(store: LogStore, tmp_path: Path) -> None:
    Path(table_of(tmp_path).metadata_location.removeprefix("file://")).unlink()
    assert found(tmp_path) == []


def test_a_link_to_the_home_is_the_home(
    store: LogStore, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("links") / "home"
    link.symlink_to(tmp_path)
    assert found(link) == []
    drop(tmp_path)
    assert found(link) == [TOPIC]


def test_of_a_copy_nothing_is_told(store: LogStore, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = tmp_path_factory.mktemp("copies") / "home"
    shutil.copytree(tmp_path, copy)
    assert found(copy) == []


def test_topics_of_a_catalog_that_is_far_away_are_asked_for_side_by_side(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_two_meet(monkeypatch, EmbeddedCatalog, "load_table")
    assert unowned_folders(store) == []


def test_tables_of_other_namespaces_are_asked_for_once_and_what_can_not_be_read_is_named(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_catalog(tmp_path)
    for namespace in ("theirs", "going"):
        catalog.create_namespace(namespace)
    catalog.rename_table((NAMESPACE, TOPIC), ("theirs", "one"))
    store.append("empty", new_records(("a", "1")), new_id(), now_ms=NOW_MS)
    drop(tmp_path, "empty")
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        nowhere = f"file://{tmp_path}/nowhere/0.metadata.json"
        database.execute(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
            "SELECT catalog_name, table_namespace, 'two', ?, iceberg_type FROM iceberg_tables WHERE table_name = 'one'",
            (nowhere,),
        )
        database.commit()
    loads: list[str | Identifier] = []
    real_load, real_list = EmbeddedCatalog.load_table, EmbeddedCatalog.list_tables

    def load(of: EmbeddedCatalog, identifier: str | Identifier) -> Table:
        loads.append(identifier)
        return real_load(of, identifier)

    def list_tables(of: EmbeddedCatalog, namespace: str | Identifier) -> list[Identifier]:
        if namespace == ("going",):
            raise NoSuchNamespaceError(namespace)
        return real_list(of, namespace)

    monkeypatch.setattr(EmbeddedCatalog, "load_table", load)
    monkeypatch.setattr(EmbeddedCatalog, "list_tables", list_tables)
    told = {each.name: each for each in unowned_folders(store)}
    assert sorted(told) == ["empty", TOPIC]
    assert told[TOPIC].table == "theirs.one"
    assert (
        "see first that it is not that of theirs.two, which can't be read; then put the topic back"
        in told["empty"].todo
    )
    assert loads.count(("theirs", "one")) == 1


@pytest.mark.parametrize("is_renamed", [True, False], ids=["renamed", "dropped"])
def test_where_a_topic_was_made_anew_under_its_name_what_puts_the_old_one_back_has_another(
    store: LogStore, tmp_path: Path, is_renamed: bool
) -> None:
    catalog = open_catalog(tmp_path)
    if is_renamed:
        catalog.create_namespace("theirs")
        catalog.rename_table((NAMESPACE, TOPIC), ("theirs", "one"))
    else:
        drop(tmp_path)
    [before] = unowned_folders(store)
    how = f"rename_table('theirs.one', ('{NAMESPACE}', '{TOPIC}'))" if is_renamed else f"topic register {TOPIC}, or"
    assert how in before.todo
    store_at(tmp_path).create_topic(TOPIC, 1, COMPACTED)
    [told] = unowned_folders(unopened(tmp_path))
    how = f"rename_table('theirs.one', ('{NAMESPACE}', 'NAME'))" if is_renamed else "topic register NAME --metadata"
    assert how in told.todo
    assert f"({TOPIC} is a topic that was made anew)" in told.todo
    assert f"register {TOPIC}" not in told.todo


def test_a_topic_that_comes_while_its_folder_is_looked_at_is_not_told(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = table_of(tmp_path).metadata_location
    drop(tmp_path)
    real = TableFiles.list

    def come(files: TableFiles, folder: str) -> object:
        if not store.topics().count(TOPIC):
            open_catalog(tmp_path).register_table((NAMESPACE, TOPIC), metadata)
        return real(files, folder)

    monkeypatch.setattr(TableFiles, "list", come)
    assert unowned_folders(unopened(tmp_path)) == []
    assert TOPIC in store.topics()


def test_who_looks_after_some_topics_hears_of_folders_that_are_called_so(store: LogStore, tmp_path: Path) -> None:
    drop(tmp_path)
    assert [each.name for each in unowned_folders(ChosenTopics(store, ["shop.*"]))] == [TOPIC]
    assert unowned_folders(ChosenTopics(store, ["crm.*"])) == []


def test_a_folder_that_can_not_be_listed_is_an_error(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(tmp_path)
    unlisted(monkeypatch, "partition=0")
    with pytest.raises(StorageUnavailable, match="the folder of all topics can't be listed"):
        unowned_folders(store)


def test_in_a_bucket_they_are_found_too(bucket: ABucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path / 'catalog.db'}", "warehouse": f"s3://{bucket.name}/lake"}
    for name, value in (dict(bucket.properties) | settings).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{name.replace('.', '__').replace('-', '_').upper()}", value)
    store = store_over(open_catalog(tmp_path))
    assert unowned_folders(store) == []
    for topic in (TOPIC, "other"):
        store.create_topic(topic, 1, COMPACTED)
        store.append(topic, new_records(("a", "1")), new_id(), NOW_MS)
    assert unowned_folders(store) == []
    drop(tmp_path)
    assert [each.path for each in unowned_folders(store)] == [f"s3://{bucket.name}/lake/keptlog/{TOPIC}"]
