"""A topic with which another home goes on is not deleted by one that knows less of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.storage.files import StoredFile
from keptlog.table.doctor.topic_exam import examined
from keptlog.table.io.files import TableFiles
from keptlog.table.removal import ahead
from tests.table.killed import sealing_store
from tests.table.purges import paths_of_values
from tests.table.stores import NOW_MS, TOPIC, append_each, create, store_at, values
from tests.table.test_deletion import files_below
from tests.table.test_purge_elsewhere import keep_catalog


def gone_on(home: Path) -> None:
    """A home with an older catalog over the storage with which that of ``newer.db`` went on."""
    store = create(home)
    append_each(store, [("a", "1")])
    backup = keep_catalog(home)
    append_each(store, [("a", "2")], [("a", "3")])
    shutil.copy(home / "catalog.db", home / "newer.db")
    shutil.copy(backup, home / "catalog.db")


def test_it_stays_as_it_is_and_the_error_says_how_to_leave_its_files(tmp_path: Path) -> None:
    gone_on(tmp_path)
    files = paths_of_values(store_at(tmp_path))
    told = r"storage knows more .* Nothing was deleted\. .* leave the files, as PyIceberg's catalog\.drop_table"
    with pytest.raises(LogCorrupt, match=told):
        store_at(tmp_path).delete_topic(TOPIC, NOW_MS)
    assert (store_at(tmp_path).topics(), store_at(tmp_path).being_deleted()) == ([TOPIC], [])
    shutil.copy(tmp_path / "newer.db", tmp_path / "catalog.db")
    assert paths_of_values(store_at(tmp_path)) == files
    assert [value for *_, value in values(store_at(tmp_path))] == [b"1", b"2", b"3"]


def test_in_a_restored_home_it_is_deleted_once_the_files_that_doctor_names_are_moved_aside(tmp_path: Path) -> None:
    gone_on(tmp_path)
    for path in examined(store_at(tmp_path), TOPIC).unknown_metadata:
        shutil.move(path.removeprefix("file://"), tmp_path)
    assert sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS).unfinished is None
    assert files_below(tmp_path) == []


def test_what_was_committed_while_the_files_were_listed_is_no_sign_of_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(create(tmp_path), [("a", "1")])
    listing = TableFiles.list

    def list_late(self: TableFiles, folder: str) -> Iterator[StoredFile]:
        monkeypatch.undo()
        append_each(store_at(tmp_path), [("a", "2")], [("a", "3")])
        yield from listing(self, folder)

    store = sealing_store(tmp_path)
    monkeypatch.setattr(TableFiles, "list", list_late)
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    assert files_below(tmp_path) == []


def one_ahead(home: Path) -> Path:
    """A catalog that is one commit older than the storage; gives that commit's metadata file."""
    store = create(home)
    append_each(store, [("a", "1")])
    backup = keep_catalog(home)
    append_each(store, [("a", "2")])
    metadata = store.load_table(TOPIC).metadata_location
    shutil.copy(home / "catalog.db", home / "newer.db")
    shutil.copy(backup, home / "catalog.db")
    return Path(metadata.removeprefix("file://"))


def test_one_commit_that_this_catalog_does_not_know_keeps_the_topic_for_it_can_be_another_homes(tmp_path: Path) -> None:
    metadata = one_ahead(tmp_path)
    with pytest.raises(StalePlan, match=rf"{metadata.name} is one commit ahead of this catalog.* Nothing was deleted"):
        store_at(tmp_path).delete_topic(TOPIC, NOW_MS)
    assert (store_at(tmp_path).topics(), store_at(tmp_path).being_deleted()) == ([TOPIC], [])
    shutil.copy(tmp_path / "newer.db", tmp_path / "catalog.db")
    assert [value for *_, value in values(store_at(tmp_path))] == [b"1", b"2"]


@pytest.mark.parametrize("damage", ["rot", "gone"])
@pytest.mark.parametrize("what", ["*-m0.avro", "snap-*.avro"], ids=["manifest", "manifest list"])
def test_it_keeps_the_topic_too_if_it_was_damaged_since(tmp_path: Path, what: str, damage: str) -> None:
    metadata = one_ahead(tmp_path)
    newest = max((tmp_path / "warehouse").rglob(what), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink() if damage == "gone" else newest.write_bytes(b"rot")
    before = files_below(tmp_path / "warehouse")
    with pytest.raises(StalePlan, match=rf"{metadata.name} is one commit ahead of this catalog.* Nothing was deleted"):
        store_at(tmp_path).delete_topic(TOPIC, NOW_MS)
    assert files_below(tmp_path / "warehouse") == before


def test_it_is_deleted_once_the_file_that_the_error_names_is_moved_aside(tmp_path: Path) -> None:
    metadata = one_ahead(tmp_path)
    shutil.move(metadata, tmp_path)
    assert sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS).unfinished is None
    assert files_below(tmp_path) == []


def test_an_attempt_that_can_not_have_landed_keeps_nothing(tmp_path: Path) -> None:
    """Its segment was discarded, as that of a refused commit is."""
    one_ahead(tmp_path)
    newest = max((tmp_path / "warehouse").rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    assert sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS).unfinished is None
    assert files_below(tmp_path) == []


def test_a_commit_that_lands_while_it_is_looked_at_is_no_sign_of_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_ahead(tmp_path)
    whole_attempts = ahead._whole_attempts

    def landing(*given: Any) -> list[str]:
        monkeypatch.undo()
        found = whole_attempts(*given)
        (tmp_path / "newer.db").replace(tmp_path / "catalog.db")
        return found

    store = sealing_store(tmp_path)
    monkeypatch.setattr(ahead, "_whole_attempts", landing)
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    assert files_below(tmp_path) == []
