"""A catalog whose metadata file has a name of another program's own purges and deletes nothing of who went on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.errors import LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create, store_at, values
from tests.table.test_metadata_elsewhere import put_elsewhere

LATER_MS = 3 * DAY_MS


def registered(home: Path, metadata: Path) -> LogStore:
    """A home in whose catalog somebody has registered a copy of a metadata file, to look at it."""
    home.mkdir()
    catalog = open_catalog(home)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    catalog.register_table((NAMESPACE, TOPIC), f"file://{metadata}")
    return store_at(home)


def commit_plainly(home: Path) -> None:
    """As a program that names its metadata without a checksum does: that alone can be copied under another name."""
    keptlog = open_catalog(home)
    plain = SqlCatalog(keptlog.name, uri=keptlog.properties["uri"], warehouse=keptlog.properties["warehouse"])
    with plain.load_table((NAMESPACE, TOPIC)).transaction() as transaction:
        transaction.set_properties({"comment": "of another program"})


@pytest.fixture(params=["inside", "outside"])
def original(request: pytest.FixtureRequest, tmp_path: Path) -> LogStore:
    """Its metadata lies inside of the topic's folder, or outside."""
    store = create(tmp_path / "original")
    append_each(store, [("a", "1")])
    if request.param == "outside":
        put_elsewhere(tmp_path / "original", "beside")
    commit_plainly(tmp_path / "original")
    return store


@pytest.fixture
def copy(tmp_path: Path, original: LogStore) -> Path:
    location = table_of(tmp_path / "original", TOPIC).metadata_location.removeprefix("file://")
    return Path(shutil.copy(location, tmp_path / "users.metadata.json"))


def test_who_registered_a_copy_deletes_nothing_of_who_goes_on(tmp_path: Path, original: LogStore, copy: Path) -> None:
    other = registered(tmp_path / "other", copy)
    append_each(original, [("b", "2")], [("c", "3")])
    before = values(original)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        other.purge(TOPIC, clock_ms() + LATER_MS)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        other.delete_topic(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(tmp_path / "original")) == before


def test_what_a_commit_behind_the_file_of_that_name_refers_to_is_spared(tmp_path: Path, copy: Path) -> None:
    """Of one commit nobody can tell whether it has landed elsewhere, or its process died."""
    registered(tmp_path / "other", copy)
    shutil.copy(tmp_path / "other" / "catalog.db", tmp_path / "backup.db")
    append_each(store_at(tmp_path / "other"), [("b", "2")])
    shutil.copy(tmp_path / "other" / "catalog.db", tmp_path / "newer.db")
    shutil.copy(tmp_path / "backup.db", tmp_path / "other" / "catalog.db")
    store_at(tmp_path / "other").purge(TOPIC, clock_ms() + LATER_MS)
    shutil.copy(tmp_path / "newer.db", tmp_path / "other" / "catalog.db")
    assert values(store_at(tmp_path / "other")) == [(0, 0, b"1"), (0, 1, b"2")]


def test_where_nobody_goes_on_a_purge_goes_on_too(tmp_path: Path, copy: Path) -> None:
    other = registered(tmp_path / "other", copy)
    assert other.purge(TOPIC, clock_ms() + LATER_MS)
    append_each(other, [("a", "2")])
    clean(other)
    assert other.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(other) == [(0, 1, b"2")]


def test_a_copy_of_what_keptlog_has_written_counts_too(tmp_path: Path) -> None:
    """Its files bear a checksum of their name, so that it can be copied under its own name only."""
    store = create(tmp_path / "original")
    append_each(store, [("a", "1")])
    head = head_of(tmp_path / "original")
    registered(tmp_path / "other", copied_beside(head, tmp_path / "safe" / head.name)).purge(
        TOPIC, clock_ms() + LATER_MS
    )
    assert values(store_at(tmp_path / "original")) == [(0, 0, b"1")]


@pytest.mark.parametrize("original", ["inside"], indirect=True)  # a purge sweeps the topic's own folder alone
def test_the_original_leaves_a_copy_that_lies_in_its_folder(tmp_path: Path, original: LogStore) -> None:
    head = head_of(tmp_path / "original")
    other = registered(tmp_path / "other", copied_beside(head, head.parent / "backup" / head.name))
    original.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(other) == [(0, 0, b"1")]


def copied_beside(path: Path, copy: Path) -> Path:
    """A copy, and the folder for it."""
    copy.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(path, copy))


def head_of(home: Path) -> Path:
    return Path(table_of(home, TOPIC).metadata_location.removeprefix("file://"))


@pytest.mark.parametrize("start", ["users", "00002-copy", "00003-copy", "00009-copy", None])
def test_who_registered_a_copy_leaves_the_file_that_was_copied(
    tmp_path: Path, original: LogStore, start: str | None
) -> None:
    """The original's catalog names it, and at rest it has no later one; a copy may bear its name in another folder."""
    head = head_of(tmp_path / "original")
    name = f"{start}.metadata.json" if start else head.name
    other = registered(tmp_path / "other", copied_beside(head, tmp_path / "safe" / name))
    other.purge(TOPIC, clock_ms() + LATER_MS)
    assert head.exists()
    with pytest.raises(LogCorrupt, match=f"{head.name} has what a metadata file in the history of this catalog has"):
        other.delete_topic(TOPIC, clock_ms() + LATER_MS)
    append_each(original, [("b", "2")])
    assert values(store_at(tmp_path / "original")) == [(0, 0, b"1"), (0, 1, b"2")]


@pytest.mark.parametrize("start", ["users", "00009-copy", None])
def test_who_goes_on_behind_a_registered_copy_leaves_what_the_file_that_was_copied_shows(
    tmp_path: Path, original: LogStore, start: str | None
) -> None:
    """Also when its own snapshots of then have expired, and by later purges, which don't know them any more."""
    head = head_of(tmp_path / "original")
    name = f"{start}.metadata.json" if start else head.name
    other = registered(tmp_path / "other", copied_beside(head, tmp_path / "safe" / name))
    append_each(other, [("a", "2")])
    clean(other)
    for number in range(1, 4):
        other.purge(TOPIC, clock_ms() + number * LATER_MS)
        assert values(store_at(tmp_path / "original")) == [(0, 0, b"1")]
    assert len(table_of(tmp_path / "other", TOPIC).metadata.snapshots) == 1
    with pytest.raises(LogCorrupt, match=f"{head.name} has what a metadata file in the history of this catalog has"):
        other.delete_topic(TOPIC, clock_ms())
    assert values(store_at(tmp_path / "original")) == [(0, 0, b"1")]


def test_who_goes_on_with_numbers_below_that_of_a_registered_copy_loses_nothing(
    tmp_path: Path, original: LogStore
) -> None:
    head = head_of(tmp_path / "original")
    other = registered(tmp_path / "other", Path(shutil.copy(head, tmp_path / "00009-copy.metadata.json")))
    append_each(original, [("b", "2")], [("c", "3")])
    before = values(original)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        other.purge(TOPIC, clock_ms() + LATER_MS)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        other.delete_topic(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(tmp_path / "original")) == before


def test_a_topic_whose_copied_file_was_moved_away_can_be_deleted(
    tmp_path: Path, copy: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = registered(tmp_path / "other", copy)
    head_of(tmp_path / "original").rename(tmp_path_factory.mktemp("away") / copy.name)
    other.delete_topic(TOPIC, clock_ms() + LATER_MS)
    assert other.topics() == []


@pytest.mark.parametrize("original", ["inside"], indirect=True)  # a purge sweeps the topic's own folder alone
@pytest.mark.parametrize("commits", [1, 3, 25])
def test_who_goes_on_behind_a_copy_and_counts_anew_is_not_hindered_by_the_file_that_was_copied(
    tmp_path: Path, original: LogStore, commits: int
) -> None:
    append_each(original, *[[("a", "x")]] * 4)
    commit_plainly(tmp_path / "original")
    head = head_of(tmp_path / "original")
    other = registered(tmp_path / "other", Path(shutil.copy(head, tmp_path / "users.metadata.json")))
    append_each(other, *[[("b", "2")]] * commits)
    assert head_of(tmp_path / "other").name.startswith(f"{commits - 1:05}-")
    other.purge(TOPIC, clock_ms() + LATER_MS)
    assert head.exists() == (commits < 20)


def test_an_original_that_goes_on_when_the_copy_has_gone_on_too_is_seen_by_both(
    tmp_path: Path, original: LogStore, copy: Path
) -> None:
    other = registered(tmp_path / "other", copy)
    append_each(other, [("b", "2")])
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        original.purge(TOPIC, clock_ms() + LATER_MS)
    append_each(original, [("c", "3")])
    append_each(other, [("b", "4")], [("b", "5")], [("b", "6")], [("b", "7")])
    for each in (original, other):
        with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
            each.purge(TOPIC, clock_ms() + LATER_MS)
        with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
            each.delete_topic(TOPIC, clock_ms() + LATER_MS)


def test_a_copy_in_the_topics_own_folder_is_left_by_the_original(tmp_path: Path, original: LogStore) -> None:
    head = head_of(tmp_path / "original")
    other = registered(tmp_path / "other", Path(shutil.copy(head, head.parent / "copy.metadata.json")))
    original.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(other) == [(0, 0, b"1")]
