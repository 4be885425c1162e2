"""A topic that is deleted leaves nothing, and what an earlier topic left is never mixed with a new one of its name."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.passes.purge import Purger
from keptlog.storage.files import StoredFile
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.metadata.schema import TABLE_SCHEMA
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.deletion import Deletion
from keptlog.table.removal.journal import DELETION, DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.store import LogStore
from tests.table.purges import receipts, sealed, sealing_into
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, clean, create, store_at, values

DAY_MS = 24 * 3_600_000


def begun(home: Path) -> LogStore:
    """A store whose topic's deletion was killed after its first step, by a process that is gone."""
    store = create(home)
    append_each(store, [("k", "secret")])
    catalog = open_catalog(home)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, TOPIC), (DELETING, TOPIC))
    return sealing(store_at(home), home)


def sealing(store: LogStore, home: Path) -> LogStore:
    """The same store; its receipts are sealed into a folder beside the warehouse."""
    store.seal = sealing_into(home / "chain")
    return store


def deletion(home: Path, files: TableFiles | None = None) -> Deletion:
    catalog = open_catalog(home)
    own = files or TableFiles(tuple(sorted(catalog.properties.items())))
    return Deletion(catalog, own, TOPIC, NOW_MS, sealing_into(home / "chain"))


def files_below(home: Path) -> list[Path]:
    return [path for path in (home / "warehouse").rglob("*") if path.is_file()]


def test_a_deleted_topic_leaves_no_file(tmp_path: Path) -> None:
    store = sealing(create(tmp_path), tmp_path)
    append_each(store, [("k", "1")], [("k", "2")])
    clean(store)
    before = len(files_below(tmp_path))
    assert len(store.delete_topic(TOPIC, NOW_MS).deleted_files) == before
    assert files_below(tmp_path) == []
    assert (store.topics(), store.being_deleted(), store.metadata_locations()) == ([], [], {})
    with pytest.raises(UnknownTopic):
        store.delete_topic(TOPIC, NOW_MS)


def test_a_topic_whose_deletion_was_begun_is_gone_for_readers_and_writers(tmp_path: Path) -> None:
    store = begun(tmp_path)
    assert (store.topics(), store.being_deleted()) == ([], [TOPIC])
    with pytest.raises(UnknownTopic):
        values(store)
    with pytest.raises(UnknownTopic):
        append_each(store, [("k", "2")])


def test_no_topic_is_made_while_one_of_its_name_is_being_deleted(tmp_path: Path) -> None:
    store = begun(tmp_path)
    for name in (TOPIC, TOPIC.upper()):
        with pytest.raises(InvalidConfig, match=f"keptlog topic delete {TOPIC} finishes it"):
            store.create_topic(name, 1, COMPACTED)
    store.delete_topic(TOPIC, NOW_MS)
    assert files_below(tmp_path) == []
    store.create_topic(TOPIC, 1, COMPACTED)


def test_finishing_a_deletion_takes_nothing_from_a_topic_that_an_older_keptlog_made_in_the_same_folder(
    tmp_path: Path,
) -> None:
    store = begun(tmp_path)
    catalog = open_catalog(tmp_path)
    location = catalog.load_table((DELETING, TOPIC)).location()
    older = catalog.create_table((NAMESPACE, TOPIC), TABLE_SCHEMA, location, properties={"log.partitions": "1"})
    assert len(deletion(tmp_path).finish().deleted_files) == 1
    assert store.being_deleted() == []
    assert Path(local_path(older.metadata_location) or "").exists()
    assert any(path.suffix == ".parquet" for path in files_below(tmp_path))


def test_a_new_topic_does_not_lie_among_the_files_of_an_earlier_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = create(tmp_path)
    plain = store.describe_topic(TOPIC).location
    append_each(store, [("k", "old")])
    open_catalog(tmp_path).drop_table((NAMESPACE, TOPIC))  # how an older keptlog's killed deletion ends
    left = set(files_below(tmp_path))

    with caplog.at_level(logging.WARNING):
        location = store_at(tmp_path).create_topic(TOPIC, 1, COMPACTED).location

    assert location.startswith(f"{plain}-")
    assert f"it lies in {location}" in caplog.text
    append_each(store, [("k", "new")])
    store.purge(TOPIC, time.time_ns() // 1_000_000 + 2 * DAY_MS)
    assert [value for _, _, value in values(store)] == [b"new"]
    assert left <= set(files_below(tmp_path))


def test_what_a_creation_that_was_killed_left_is_no_reason_to_lie_elsewhere(tmp_path: Path) -> None:
    store = create(tmp_path)
    plain = store.describe_topic(TOPIC).location
    open_catalog(tmp_path).drop_table((NAMESPACE, TOPIC))
    assert store.create_topic(TOPIC, 1, COMPACTED).location == plain


def test_the_slower_of_two_deletions_takes_nothing_from_a_topic_that_was_made_since(tmp_path: Path) -> None:
    class Slower(TableFiles):
        """Lists, but only after the topic was deleted by another one and made anew."""

        def list(self, folder: str) -> Iterator[StoredFile]:
            other = store_at(tmp_path)
            sealing(other, tmp_path).delete_topic(TOPIC, NOW_MS)
            append_each(create(tmp_path), [("k", "new")])
            return super().list(folder)

    store = begun(tmp_path)
    deletion(tmp_path, Slower(store.files.properties)).finish()
    assert [value for _, _, value in values(store)] == [b"new"]


def test_a_deletion_that_another_one_has_finished_meanwhile_is_no_error(tmp_path: Path) -> None:
    store = begun(tmp_path)
    store.delete_topic(TOPIC, NOW_MS)
    assert deletion(tmp_path).finish().deleted_files == ()


@pytest.mark.parametrize("is_begun", [True, False], ids=["begun", "not begun"])
def test_a_deletion_that_another_one_ends_between_the_catalogs_answer_and_the_metadata_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    """The catalog has said where the metadata is, and then the other one deletes it."""
    store = begun(tmp_path) if is_begun else sealing(create(tmp_path), tmp_path)
    slower = deletion(tmp_path)
    read_metadata = SqlCatalog._convert_orm_to_iceberg

    def read_too_late(catalog: SqlCatalog, row: IcebergTables) -> Table:
        if catalog is slower.catalog and row.table_namespace == DELETING and store.being_deleted():
            store.delete_topic(TOPIC, NOW_MS)
        return read_metadata(catalog, row)

    monkeypatch.setattr(SqlCatalog, "_convert_orm_to_iceberg", read_too_late)
    done = slower.delete()
    assert (done.deleted_files, done.unfinished) == ((), None)
    assert (store.topics(), store.being_deleted(), files_below(tmp_path)) == ([], [], [])


def test_a_topic_whose_metadata_is_lost_is_not_told_as_deleted(tmp_path: Path) -> None:
    store = begun(tmp_path)
    local = local_path(open_catalog(tmp_path).load_table((DELETING, TOPIC)).metadata_location)
    assert local
    Path(local).unlink()
    with pytest.raises(LogCorrupt, match=Path(local).name):
        deletion(tmp_path).finish()
    assert store.being_deleted() == [TOPIC]


def test_a_deletion_that_stops_at_the_storage_says_that_it_has_begun_and_who_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is gone from every list by then."""
    create(tmp_path)

    def refused(*_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "access is denied")

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.table.removal.deletion._Emptying.empty", refused)
        with pytest.raises(StorageUnavailable) as told:
            store_at(tmp_path).delete_topic(TOPIC, NOW_MS)
    goes_on = f"(keptlog topic delete {TOPIC}, or the next purge, goes on): "
    assert str(told.value).startswith(f"the deletion of topic {TOPIC} has begun, and can't be finished now {goes_on}")


def test_that_a_topic_without_a_record_was_deleted_is_in_one_receipt(tmp_path: Path) -> None:
    store = sealing(create(tmp_path), tmp_path)
    topic_id = store.describe_topic(TOPIC).id
    [receipt_id] = store.delete_topic(TOPIC, NOW_MS).receipts
    [proof] = sealed(tmp_path / "chain")
    assert (proof["id"], proof["kind"], proof["content"]["table_uuid"]) == (receipt_id, "topic-delete", topic_id)
    assert proof["content"]["files"] == []
    assert len(proof["content"]["deleted_after_sealing"]) == 1


@pytest.mark.parametrize("left", ["draft", "journal"])
def test_so_it_is_where_an_earlier_topic_has_left_what_tells_of_its_own_deletion(tmp_path: Path, left: str) -> None:
    store = create(tmp_path)
    append_each(store, [("k", "1")])
    store.delete_topic(TOPIC, NOW_MS)  # nobody can seal
    store.create_topic(TOPIC, 1, COMPACTED)
    topic = store.describe_topic(TOPIC)
    [draft] = (tmp_path / "warehouse").rglob("receipts/deletion-*.json")
    if left == "journal":
        draft.unlink()
        gone = DeletedFile(f"{topic.location}/data/gone.parquet", 4)
        of_earlier = Journal((), (), (gone,), DELETION, erasures=(), table_uuid="1-2-3-4-5")
        write_journal(store.files, f"{journal_folder(topic.location)}deletion-left.json", of_earlier)
    assert str(topic.location) in f"file://{draft}"
    store.delete_topic(TOPIC, NOW_MS)
    told = receipts(tmp_path)
    assert [(each["files"], each["erasures"]) for each in told if each["table_uuid"] == topic.id] == [([], [])]
    assert len(told) == 2


def test_a_purge_does_not_delete_a_topic_that_was_made_anew_while_the_earlier_one_was_being_deleted(
    tmp_path: Path,
) -> None:
    store = begun(tmp_path)
    catalog = open_catalog(tmp_path)
    elsewhere = catalog.load_table((DELETING, TOPIC)).location() + "-anew"
    create(tmp_path / "other")
    properties = open_catalog(tmp_path / "other").load_table((NAMESPACE, TOPIC)).properties
    catalog.create_table((NAMESPACE, TOPIC), TABLE_SCHEMA, elsewhere, properties=properties)
    result = Purger(store).purge(now_ms=NOW_MS)
    assert (list(result.deletions), result.failed, store.being_deleted()) == ([TOPIC], {}, [])
    assert store.topics() == [TOPIC]
