"""A view of another engine is no topic: Spark keeps its views in the table of an SQL catalog's tables."""

from __future__ import annotations

import errno
import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, StorageUnavailable, UnknownTopic
from keptlog.home import open_home
from keptlog.passes.observer import observe
from keptlog.table.catalogs.catalog import metadata_locations
from keptlog.table.doctor.unowned import unowned_folders
from keptlog.table.io.files import TableFiles
from keptlog.table.registrar import Registrar
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.table.counted_s3 import Answer, CountedS3
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, create, new_id, new_records
from tests.table.test_requests import bucket, s3, server, store

__all__ = ["bucket", "s3", "server", "store"]

VIEW = "latest_users"


def never() -> LogStore:
    raise AssertionError("the store was opened")


def on_database(home: Path, statement: str, *values: str | None) -> None:
    with closing(sqlite3.connect(home / "catalog.db")) as connection, connection:
        connection.execute(statement, values)


def folder_without_table(home: Path) -> Path:
    """That of a topic with two metadata files, whose table was dropped."""
    store = create(home)
    append_each(store, [("a", "1")])
    [own] = store.metadata_locations().values()
    on_database(home, "delete from iceberg_tables")
    return Path(own.removeprefix("file://")).parent.parent


def reads_that_fail(monkeypatch: pytest.MonkeyPatch, error: Exception, where: str = "/") -> list[str]:
    """The files that are asked for in vain, from now on."""
    asked, really = list[str](), TableFiles.read_bytes

    def read(files: TableFiles, path: str) -> bytes:
        if where not in path:
            return really(files, path)
        asked.append(path)
        raise error

    monkeypatch.setattr(TableFiles, "read_bytes", read)
    return asked


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a topic, and with a view beside it as Spark's ``CREATE VIEW`` leaves one, checksum and all."""
    create(tmp_path)
    folder = tmp_path / "warehouse" / "keptlog" / VIEW / "metadata"
    folder.mkdir(parents=True)
    file = folder / "00000-0b1c.gz.metadata.json"
    file.write_bytes(gzip.compress(json.dumps({"view-uuid": "fa65", "format-version": 1, "versions": []}).encode()))
    (folder / f".{file.name}.crc").write_bytes(b"crc\0")
    row = ("keptlog", "keptlog", VIEW, f"file://{file}", None, "VIEW")
    on_database(tmp_path, "insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", *row)
    return tmp_path


def test_who_only_looks_does_not_see_it_and_opens_no_catalog_for_it(home: Path) -> None:
    store = UnopenedStore(home, {}, never)
    assert store.topics() == [TOPIC]
    assert [log.topic_partition.topic for log in observe(store, now_ms=0).logs] == [TOPIC]
    assert unowned_folders(store) == []


def test_a_folder_of_records_that_a_view_is_in_too_is_told(home: Path) -> None:
    (home / "warehouse" / "keptlog" / VIEW / "data").mkdir()
    (home / "warehouse" / "keptlog" / VIEW / "data" / "0.parquet").write_bytes(b"records")
    assert [each.name for each in unowned_folders(open_home(home).store)] == [VIEW]


def test_beside_a_view_it_is_the_topic_s_own_metadata_that_puts_it_back(tmp_path: Path) -> None:
    """As ``DROP TABLE`` without ``PURGE`` leaves it, before ``CREATE OR REPLACE VIEW`` under the same name."""
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    [own] = store.metadata_locations().values()
    folder = Path(own.removeprefix("file://")).parent
    on_database(tmp_path, "delete from iceberg_tables")
    for number in range(3):
        file = folder / f"{number:05}-0b1c.gz.metadata.json"
        file.write_bytes(gzip.compress(json.dumps({"view-uuid": "fa65", "format-version": 1}).encode()))
    row = ("keptlog", "keptlog", TOPIC, f"file://{file}", None, "VIEW")
    on_database(tmp_path, "insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", *row)
    [found] = unowned_folders(open_home(tmp_path).store)
    assert found.last_metadata == own
    assert "drop the view that another engine has put into this folder, or make it elsewhere; then put" in found.todo
    store = open_home(tmp_path).store
    proposal = Registrar(store).propose(TOPIC)  # though the view has come further in its numbers
    assert proposal
    assert proposal.state.path == own
    on_database(tmp_path, "delete from iceberg_tables where table_name = ? and iceberg_type = 'VIEW'", TOPIC)
    Registrar(store).register(proposal)
    assert store.logs(TOPIC)[0].log_end_offset == 1


def test_a_view_alone_is_no_topic_to_register_and_no_damage(home: Path) -> None:
    with pytest.raises(UnknownTopic, match=f"there is no topic {VIEW}: the catalog has none, nor is there one in"):
        Registrar(open_home(home).store).propose(VIEW)


def test_where_the_metadata_of_a_view_is_all_there_is_beside_records_nothing_is_to_be_put_back(home: Path) -> None:
    (home / "warehouse" / "keptlog" / VIEW / "data").mkdir()
    (home / "warehouse" / "keptlog" / VIEW / "data" / "0.parquet").write_bytes(b"records")
    [found] = unowned_folders(open_home(home).store)
    assert "topic register" not in found.todo
    assert found.todo.startswith("drop the view that another engine has put into this folder, or make it elsewhere; ")


def test_an_opened_catalog_does_not_look_at_it_either(home: Path) -> None:
    store = open_home(home).store
    assert store.topics() == [TOPIC]
    assert list(store.metadata_locations()) == [TOPIC]
    assert unowned_folders(store) == []


def test_a_view_with_fewer_versions_than_the_topic_had_is_told_too(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, *[[("a", str(number))] for number in range(3)])
    [own] = store.metadata_locations().values()
    on_database(tmp_path, "delete from iceberg_tables")
    file = Path(own.removeprefix("file://")).parent / "00000-0b1c.gz.metadata.json"
    file.write_bytes(gzip.compress(json.dumps({"view-uuid": "fa65", "format-version": 1}).encode()))
    row = ("keptlog", "keptlog", TOPIC, f"file://{file}", None, "VIEW")
    on_database(tmp_path, "insert into iceberg_tables values (?, ?, ?, ?, ?, ?)", *row)
    [found] = unowned_folders(open_home(tmp_path).store)
    assert (found.last_metadata, found.has_view) == (own, True)
    assert found.todo.startswith("drop the view that another engine has put into this folder, or make it elsewhere; ")


@pytest.mark.parametrize(
    "change",
    ["delete from iceberg_tables", "update iceberg_tables set metadata_location = 'file:///views/v.metadata.json'"],
    ids=["dropped", "made elsewhere"],
)
def test_a_view_that_is_not_here_any_more_is_not_to_be_dropped_though_it_has_left_its_metadata(
    home: Path, change: str
) -> None:
    (home / "warehouse" / "keptlog" / VIEW / "data").mkdir()
    (home / "warehouse" / "keptlog" / VIEW / "data" / "0.parquet").write_bytes(b"records")
    on_database(home, f"{change} where table_name = ?", VIEW)
    [found] = unowned_folders(open_home(home).store)
    assert found.todo == (
        "see first that no other catalog has the view whose metadata is in this folder: this one names none in it; "
        "then delete the folder, if nobody needs it"
    )


def test_a_metadata_file_that_cannot_be_read_costs_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an engine that writes with rights of its own; whoever runs the tests may read every file."""
    store = create(tmp_path)
    [own] = store.metadata_locations().values()
    append_each(store, [("a", "1")])
    folder = Path(own.removeprefix("file://")).parent.parent
    on_database(tmp_path, "delete from iceberg_tables")
    shutil.copytree(folder, folder.parent / "other")
    denied = folder.parent / "other" / "metadata" / "00099-x.metadata.json"
    denied.write_text("{}")
    really = TableFiles.read_bytes

    def read(files: TableFiles, path: str) -> bytes:
        if path.endswith(denied.name):
            raise PermissionError(13, "Permission denied", path)
        return really(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", read)
    found = {each.name: each for each in unowned_folders(open_home(tmp_path).store)}
    assert found.keys() == {TOPIC, "other"}
    assert (found[TOPIC].unread_metadata, found[TOPIC].has_view) == (None, False)
    todo = found["other"].todo
    assert todo.startswith(f"see first that this is no view's: {found['other'].last_metadata} can't be read (")
    assert "Permission denied" in todo


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "Input/output error"),
        TimeoutError(110, "no answer"),
        StorageUnavailable("no credentials"),
        StorageUnavailable("archived").for_good(),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["a-bad-one", "the-last"])
def test_a_folder_whose_metadata_gives_nothing_costs_no_other_folder_and_one_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, name: str
) -> None:
    folder = folder_without_table(tmp_path)
    shutil.copytree(folder, folder.parent / name)
    shutil.copytree(folder, folder.parent / "mine")
    asked = reads_that_fail(monkeypatch, error, f"/{name}/")
    found = {each.name: each for each in unowned_folders(open_home(tmp_path).store)}
    assert found.keys() == {TOPIC, "mine", name}
    unread = found[name].unread_metadata or ""
    assert unread.startswith(f"{found[name].last_metadata} can't be read (")
    assert found[name].todo.startswith(f"see first that this is no view's: {unread}; then put the topic back")
    assert not found[TOPIC].unread_metadata
    is_said = isinstance(error, StorageUnavailable) and error.is_refused
    assert unread.endswith("and no more of this folder was looked into") != is_said
    assert len(asked) == (2 if is_said else 1)


@pytest.mark.parametrize(
    "answer", [("500 Internal Server Error", "InternalError"), ("400 Bad Request", "InvalidRequest")]
)
def test_one_object_that_a_store_does_not_give_costs_no_other_folder(
    store: LogStore, s3: CountedS3, answer: Answer
) -> None:
    for topic in ("bad", "good"):
        store.create_topic(topic, 1, COMPACTED)
        store.append(topic, new_records(("a", "1")), new_id(), NOW_MS)
        store.committer.catalog.drop_table(("keptlog", topic))
    s3.refuse = lambda asked: answer if asked.method == "GET" and "/bad/metadata/" in asked.path else None
    assert {each.name: bool(each.unread_metadata) for each in unowned_folders(store)} == {"bad": True, "good": False}


@pytest.mark.parametrize("error", [TimeoutError(110, "no answer"), StorageUnavailable("no credentials")])
def test_a_store_that_falls_silent_while_folders_are_looked_into_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    folder = folder_without_table(tmp_path)
    for number in range(3):
        shutil.copytree(folder, folder.parent / f"other-{number}")
    asked = reads_that_fail(monkeypatch, error)
    with pytest.raises(StorageUnavailable, match=str(error.args[-1])):
        unowned_folders(open_home(tmp_path).store)
    assert len(asked) == 2  # one may be the file's


@pytest.mark.parametrize("name", [VIEW, VIEW.upper()])
def test_no_topic_of_its_name_is_made_and_no_file_is_left(home: Path, name: str) -> None:
    before = set(home.rglob("*"))
    with pytest.raises(InvalidConfig, match=f"another engine has a view of this name, '{VIEW}': choose another name"):
        open_home(home).store.create_topic(name, 1, COMPACTED)
    assert set(home.rglob("*")) == before


def test_a_database_from_before_there_were_views_has_its_topics(tmp_path: Path) -> None:
    create(tmp_path)
    on_database(tmp_path, "alter table iceberg_tables drop column iceberg_type")
    assert UnopenedStore(tmp_path, {}, never).topics() == [TOPIC]
    store = open_home(tmp_path).store
    assert list(metadata_locations(store.committer.catalog)) == [TOPIC]  # type: ignore[arg-type]  # it is SQL
    assert store.create_topic("orders", 1, COMPACTED).name == "orders"
