"""What a purge leaves because another catalog may need it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.erasure_register import read_erasures
from keptlog.table.store import LogStore
from tests.table.foreign import set_properties, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create, store_at
from tests.table.test_elsewhere_without_numbers import commit_plainly, copied_beside, head_of, registered
from tests.table.test_renamed_in_doubt import erase

LATER_MS = 3 * DAY_MS


@pytest.fixture
def original(tmp_path: Path) -> LogStore:
    store = create(tmp_path / "original")
    append_each(store, [("a", "1")])
    commit_plainly(tmp_path / "original")
    return store


@pytest.fixture
def other(tmp_path: Path, original: LogStore) -> LogStore:
    """A home that has registered a copy; the original is at rest."""
    assert original.topics() == [TOPIC]
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    return registered(tmp_path / "other", copy)


def go_on(store: LogStore) -> None:
    append_each(store, [("a", "2")])
    clean(store)


def purged_twice(store: LogStore) -> int:
    """When that was."""
    now_ms = clock_ms() + LATER_MS
    store.purge(TOPIC, now_ms)
    store.purge(TOPIC, now_ms + LATER_MS)
    return now_ms + LATER_MS


def test_a_purge_promises_and_tells_what_it_does(other: LogStore) -> None:
    go_on(other)
    now_ms = clock_ms() + LATER_MS
    preview = preview_purge(other, TOPIC, now_ms, DAY_MS)
    receipt = other.purge(TOPIC, now_ms)
    assert (preview.snapshots, preview.segments) == (len(receipt.expired_snapshots), len(receipt.deleted_files))
    assert (len(receipt.expired_snapshots), len(receipt.deleted_files)) == (2, 1)


def test_expired_snapshots_are_told_though_all_of_their_files_are_left(other: LogStore) -> None:
    append_each(other, [("b", "2")])
    assert len(other.purge(TOPIC, clock_ms() + LATER_MS).expired_snapshots) == 1


def test_watermarks_that_the_copied_file_names_are_left(original: LogStore, tmp_path: Path) -> None:
    marks = f"{original.describe_topic(TOPIC).location}/data/watermarks/partition=0/marks.arrow"
    original.files.write_bytes(marks, b"keys")
    set_properties(tmp_path / "original", {"log.p0.watermarks": marks})
    commit_plainly(tmp_path / "original")
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    other = registered(tmp_path / "other", copy)
    with other.load_table(TOPIC).transaction() as transaction:
        transaction.remove_properties("log.p0.watermarks")
    purged_twice(other)
    assert original.files.exists(marks)


def test_the_register_of_erasures_that_the_copied_file_names_is_left(original: LogStore, tmp_path: Path) -> None:
    erase(original)
    commit_plainly(tmp_path / "original")
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    other = registered(tmp_path / "other", copy)
    erase(other, "r2")
    purged_twice(other)
    assert [each.id for each in read_erasures(original.files, table_of(tmp_path / "original"))] == ["r1"]


def test_watermarks_of_what_is_one_ahead_are_left(original: LogStore, tmp_path: Path) -> None:
    catalog = tmp_path / "original" / "catalog.db"
    shutil.copy(catalog, tmp_path / "backup.db")
    marks = f"{original.describe_topic(TOPIC).location}/data/watermarks/partition=0/marks.arrow"
    original.files.write_bytes(marks, b"keys")
    set_properties(tmp_path / "original", {"log.p0.watermarks": marks})
    shutil.copy(tmp_path / "backup.db", catalog)
    purged_twice(store_at(tmp_path / "original"))
    assert original.files.exists(marks)
