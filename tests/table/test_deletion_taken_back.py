"""A deletion that was begun and taken back, as by a catalog that was put back: no purge goes on with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.journal import DeletedFile, journal_folder, read_journal, taken_back_folder, write_journal
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.search import searched_files
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, receipts
from tests.table.stores import TOPIC, append_each, create, store_at, values
from tests.table.test_metadata_elsewhere import put_elsewhere

KEPT = ("readers/search/4f/0-3.json", "runs/1.json")


@pytest.fixture
def back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """The deletion was killed right behind its journal, and the topic is there again."""
    store = cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)
    for name in KEPT:
        store.files.write_bytes(f"{store.describe_topic(TOPIC).location}/metadata/receipts/{name}", b"{}")

    take_back(store, tmp_path, monkeypatch)
    return store_at(tmp_path)


def take_back(store: LogStore, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            store.delete_topic(TOPIC, clock_ms())
    open_catalog(home).rename_table((DELETING, TOPIC), (NAMESPACE, TOPIC))


def listed(store: LogStore) -> set[str]:
    return {file.path for file in store.files.list(store.describe_topic(TOPIC).location)}


def test_a_purge_deletes_nothing_by_its_journal_and_sets_it_aside(
    back: LogStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location, before, told = back.describe_topic(TOPIC).location, listed(back), receipts(tmp_path)
    [journal] = [path for path in before if path.startswith(journal_folder(location))]
    live = values(back)
    purged = back.purge(TOPIC, clock_ms())
    aside = taken_back_folder(location) + journal.rpartition("/")[2]
    assert listed(back) == before - {journal} | {aside}
    assert f"{journal} is the journal of a deletion that was taken back" in caplog.text
    assert (purged.deleted_metadata, purged.receipts) == ((), ())
    assert receipts(tmp_path) == told
    assert values(back) == live


def test_nothing_of_it_is_counted_as_due(back: LogStore) -> None:
    preview = preview_purge(back, TOPIC, clock_ms(), DAY_MS)
    assert not preview.deletes_anything


def test_it_can_be_deleted_all_the_same(back: LogStore, tmp_path: Path) -> None:
    location = back.describe_topic(TOPIC).location
    back.purge(TOPIC, clock_ms())
    assert back.delete_topic(TOPIC, clock_ms()).is_over
    left = [file.path for file in back.files.list(location)]
    assert all(path.startswith(f"{location}/metadata/receipts/") for path in left)


def test_what_it_names_outside_of_the_folder_is_told_until_somebody_has_deleted_that(
    back: LogStore, tmp_path: Path
) -> None:
    """It took that over from purges, whose journals went with it."""
    location = back.describe_topic(TOPIC).location
    [path] = [each for each in listed(back) if each.startswith(journal_folder(location))]
    beside = tmp_path / "beside.parquet"
    beside.write_bytes(b"a value")
    journal = read_journal(back.files, path)
    named = (*journal.metadata, DeletedFile(f"file://{beside}", 7), DeletedFile(f"file://{beside}-gone", 7))
    write_journal(back.files, path, replace(journal, metadata=named))
    for _ in range(2):
        left = back.purge(TOPIC, clock_ms()).not_deleted
        assert [each.path for each in left] == [f"file://{beside}"]
        assert f"file://{beside}" in {each.path for each in searched_files(lambda: back.load_table(TOPIC), back.files)}
    told = receipts(tmp_path)
    beside.unlink()
    assert back.purge(TOPIC, clock_ms()).not_deleted == ()
    [receipt] = [each for each in receipts(tmp_path) if each not in told]
    assert [file["path"] for file in receipt["files"]] == [f"file://{beside}"]
    assert not [each for each in listed(back) if each.startswith(journal_folder(location))]


def test_what_lies_outside_of_the_folder_and_is_live_is_not_told_as_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(create(tmp_path), [("a", "1")])
    put_elsewhere(tmp_path, "beside")
    append_each(store_at(tmp_path), [("a", "2")])
    take_back(store_at(tmp_path), tmp_path, monkeypatch)
    store = store_at(tmp_path)
    location = store.describe_topic(TOPIC).location
    [path] = [each for each in listed(store) if each.startswith(journal_folder(location))]
    assert any("/beside/" in each for each in read_journal(store.files, path).paths)
    assert store.purge(TOPIC, clock_ms()).not_deleted == ()
    assert not [each for each in listed(store) if each.startswith(journal_folder(location))]


def test_what_is_no_journal_beside_it_is_looked_through(back: LogStore) -> None:
    location = back.describe_topic(TOPIC).location
    back.purge(TOPIC, clock_ms())
    back.files.write_bytes(planted := f"{taken_back_folder(location)}copy.json", b"a value")
    kinds = {
        each.path: each.is_metadata
        for each in searched_files(lambda: back.load_table(TOPIC), back.files)
        if each.path.startswith(taken_back_folder(location))
    }
    assert len(kinds) == 2
    assert [path for path, is_metadata in kinds.items() if not is_metadata] == [planted]
