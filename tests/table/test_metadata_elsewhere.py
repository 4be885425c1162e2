"""A topic whose metadata another program has put elsewhere: its folder is told its own, or not, as any topic's is."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.passes.holders import check_gone
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.ahead import told_apart
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.table.foreign import set_location, set_properties, table_of
from tests.table.stores import NOW_MS, TOPIC, append_each, create, new_id, new_records, store_at, values

OTHER = "lake-copy"


def put_elsewhere(home: Path, folder: str | None, topic: str = TOPIC) -> None:
    set_properties(home, {"write.metadata.path": folder and f"file://{home}/{folder}"}, topic)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")])
    put_elsewhere(tmp_path, "beside")
    append_each(store, [("a", "2")])
    assert "/beside/" in table_of(tmp_path).metadata_location
    return store


@pytest.fixture
def later_ms() -> int:
    return time.time_ns() // 1_000_000 + 7 * 24 * 3_600_000


@pytest.mark.parametrize("folder", ["beside", None])
def test_neither_a_purge_nor_a_deletion_takes_the_files_of_a_second_table(
    store: LogStore, tmp_path: Path, later_ms: int, folder: str | None
) -> None:
    open_catalog(tmp_path).register_table((NAMESPACE, OTHER), table_of(tmp_path).metadata_location)
    if folder is None:
        put_elsewhere(tmp_path, None)
    append_each(store, [("a", "3")])
    before = len(values(store, OTHER))
    for topic in (TOPIC, OTHER):
        with pytest.raises(LogCorrupt, match="too, and nothing was deleted: take one of the two out of its catalog"):
            store.purge(topic, later_ms)
        with pytest.raises(LogCorrupt, match="too, and nothing was deleted: take one of the two out of its catalog"):
            store.delete_topic(topic, NOW_MS)
    assert (len(values(store, OTHER)), len(values(store))) == (before, before + 1)


def test_another_topic_with_its_metadata_in_the_same_folder_is_no_second_table(
    store: LogStore, tmp_path: Path, later_ms: int
) -> None:
    store.create_topic("other", 1, {})
    put_elsewhere(tmp_path, "beside", "other")
    store.purge(TOPIC, later_ms)
    store.purge("other", later_ms)


def test_manifests_of_what_is_written_afterwards_lie_in_the_topics_own_folder_where_a_purge_deletes_them(
    tmp_path: Path, later_ms: int
) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    put_elsewhere(tmp_path, "beside")
    append_each(store, [("a", "1")], [("a", "2")], [("a", "3")])
    assert {path.suffix for path in (tmp_path / "beside").iterdir()} == {".json"}
    receipt = store.purge(TOPIC, later_ms)
    assert (len(receipt.expired_snapshots), receipt.not_deleted) == (2, ())


@pytest.mark.parametrize("folder", [None, "third"])
def test_a_purge_goes_on_when_the_metadata_is_put_somewhere_else_again(
    store: LogStore, tmp_path: Path, later_ms: int, folder: str | None
) -> None:
    put_elsewhere(tmp_path, folder)
    append_each(store, [("a", "3")])
    store.purge(TOPIC, later_ms)
    assert len(values(store_at(tmp_path))) == 3


def test_a_table_that_is_moved_to_the_folder_of_something_else_is_told_although_its_metadata_stays_where_it_is(
    store: LogStore, tmp_path: Path, later_ms: int
) -> None:
    photo = tmp_path / "photos" / "cat.jpg"
    photo.parent.mkdir()
    photo.write_bytes(b"cat")
    set_properties(tmp_path, {"write.metadata.previous-versions-max": "2"})
    append_each(store, [("a", "3")], [("a", "4")])
    store.purge(TOPIC, later_ms)
    set_location(tmp_path, photo.parent)
    with pytest.raises(LogCorrupt, match="is not where the topic lay before"):
        store.purge(TOPIC, later_ms + 1)
    with pytest.raises(LogCorrupt, match="is not where the topic lay before"):
        store.delete_topic(TOPIC, NOW_MS)
    assert photo.exists()


@pytest.mark.parametrize("commits", [1, 3])
def test_who_goes_on_is_seen_by_a_catalog_that_was_put_back(
    store: LogStore, tmp_path: Path, later_ms: int, commits: int
) -> None:
    shutil.copy(tmp_path / "catalog.db", tmp_path / "backup.db")
    for number in range(commits):
        append_each(store, [("b", str(number))])
    whole = values(store)
    shutil.copy(tmp_path / "catalog.db", tmp_path / "newer.db")
    shutil.copy(tmp_path / "backup.db", tmp_path / "catalog.db")
    back = store_at(tmp_path)
    assert len(values(back)) < len(whole)
    with pytest.raises((LogCorrupt, StalePlan), match="Nothing was deleted"):
        back.delete_topic(TOPIC, NOW_MS)
    if commits == 1:  # nobody can tell whether its process died
        back.purge(TOPIC, later_ms)
    else:
        with pytest.raises(LogCorrupt, match=r"the storage knows more than this catalog: file://.*/beside/"):
            back.purge(TOPIC, later_ms)
    shutil.copy(tmp_path / "newer.db", tmp_path / "catalog.db")
    assert values(store_at(tmp_path)) == whole


@pytest.mark.parametrize("commits", [1, 3])
def test_who_only_looks_sees_who_goes_on_too(store: LogStore, tmp_path: Path, commits: int) -> None:
    shutil.copy(tmp_path / "catalog.db", tmp_path / "backup.db")
    for number in range(commits):
        append_each(store, [("b", str(number))])
    shutil.copy(tmp_path / "backup.db", tmp_path / "catalog.db")
    unopened = UnopenedStore(tmp_path, {}, lambda: store_at(tmp_path))
    assert not hasattr(unopened.load_table(TOPIC), "catalog")
    found = check_gone(unopened, TOPIC, [0], time.time_ns() // 1_000_000)[0]
    if commits == 1:
        assert "knows more" not in found.description
    else:
        assert "the storage knows more than this catalog" in found.description
    assert found.outcome is check_gone(store_at(tmp_path), TOPIC, [0], time.time_ns() // 1_000_000)[0].outcome


@pytest.mark.parametrize("content", [b"cut o", None], ids=["damaged", "another table's"])
def test_newer_metadata_of_another_table_in_the_same_folder_hinders_nobody(
    store: LogStore, tmp_path: Path, later_ms: int, content: bytes | None
) -> None:
    store.create_topic("other", 1, {})
    put_elsewhere(tmp_path, "beside", "other")
    for number in range(5):
        store.append("other", new_records(("b", str(number)), partition=0), new_id(), NOW_MS)
    if content:
        (tmp_path / "beside" / "00099-of-another-table.metadata.json").write_bytes(content)
    assert store.purge(TOPIC, later_ms)
    assert len(values(store, "other")) == 5


def test_commits_between_the_look_at_the_table_and_at_the_folder_are_no_sign_of_another_catalog(
    store: LogStore, tmp_path: Path
) -> None:
    before = table_of(tmp_path)
    append_each(store, [("b", "1")], [("b", "2")])
    stored = [file.path for file in store.files.list(before.location())]
    load = partial(store.load_table, TOPIC)
    assert told_apart(before, stored, store.files, load).elsewhere == []
