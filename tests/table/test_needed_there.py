"""A folder without a topic, in which a topic has live files: nobody is told to delete it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.table.doctor.needed_there import unowned_and_needed
from keptlog.table.store import LogStore
from tests.table.foreign import expire, set_location, table_of
from tests.table.stores import TOPIC, append_each, create
from tests.table.test_unowned import drop, unopened


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")])
    return store


def meanwhile_of(store: LogStore, home: Path) -> None:
    """A table that was moved for a while; another program has expired what told of that, and the records are there."""
    own = home / "warehouse/keptlog" / TOPIC
    set_location(home, own.parent / "meanwhile")
    append_each(store, [("a", "2")])
    set_location(home, own)
    append_each(store, *[[("b", str(number))] for number in range(30)])
    expire(home, *[each.snapshot_id for each in table_of(home).metadata.snapshots[:-1]])


def test_where_its_table_lay_for_a_while(store: LogStore, tmp_path: Path) -> None:
    meanwhile_of(store, tmp_path)
    (folder,) = unowned_and_needed(store)
    assert folder.name == "meanwhile"
    assert (
        folder.todo
        == f"leave it as long as live files of {TOPIC} lie there; then delete the folder, if nobody needs it"
    )
    assert unowned_and_needed(unopened(tmp_path)) == [folder]


def test_where_another_program_took_files_of_a_topic_that_is_none_any_more(store: LogStore, tmp_path: Path) -> None:
    store.create_topic("other", 1, {})
    segment = next((tmp_path / "warehouse/keptlog" / TOPIC / "data").rglob("*.parquet"))
    table_of(tmp_path, "other").add_files([f"file://{segment}"])
    drop(tmp_path)
    (folder,) = unowned_and_needed(store)
    assert (folder.name, folder.needed_by) == (TOPIC, ("other",))
    assert folder.todo.startswith("leave it as long as live files of other lie there; then put the topic back")


def test_of_one_that_no_topic_needs_nothing_is_said(store: LogStore, tmp_path: Path) -> None:
    store.create_topic("other", 1, {})
    drop(tmp_path)
    (folder,) = unowned_and_needed(store)
    assert folder.needed_by == ()


def test_whoever_is_told_to_delete_a_folder_is_told_of_a_topic_that_cannot_be_read(
    store: LogStore, tmp_path: Path
) -> None:
    meanwhile_of(store, tmp_path)
    snapshot = table_of(tmp_path).current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list.removeprefix("file://")).write_bytes(b"damaged")
    (folder,) = unowned_and_needed(store)
    assert folder.todo.startswith(f"leave it until {TOPIC} can be read, which may need files there; then delete")
