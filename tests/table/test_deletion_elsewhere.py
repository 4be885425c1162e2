"""What a deleted topic has outside of its folder is named by the receipt, and its deletion ends only without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.passes.purge import Purger
from keptlog.table.store import LogStore
from tests.table.foreign import current_id, insert, set_properties, table_of
from tests.table.killed import killed_before, put_back, sealing_store
from tests.table.purges import files_sealed, sealed
from tests.table.stores import NOW_MS, TOPIC, append_each, create


def elsewhere(home: Path) -> Path:
    """A file of a topic that another engine has written beside the warehouse; gives it."""
    create(home)
    append_each(sealing_store(home), [("a", "1")])
    folder = home / "beside"
    set_properties(home, {"write.data.path": f"file://{folder}"})
    insert(home, 1)
    [written] = folder.rglob("*.parquet")
    return written


def deletion_receipts(home: Path) -> list[dict[str, Any]]:
    return [each["content"] for each in sealed(home / "chain") if each["kind"] == "topic-delete"]


def not_deleted(home: Path) -> list[str]:
    return [file["path"] for content in deletion_receipts(home) for file in content["not_deleted"]]


def delete(store: LogStore) -> object:
    return store.delete_topic(TOPIC, NOW_MS)


def damage(path: str) -> None:
    Path(path.removeprefix("file://")).write_bytes(b"rot")


def test_a_file_that_lies_elsewhere_is_named_and_keeps_the_deletion_unfinished_until_somebody_deletes_it(
    tmp_path: Path,
) -> None:
    written = elsewhere(tmp_path)
    done = sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS)
    [left] = done.not_deleted
    assert (left.path, left.bytes) == (f"file://{written}", written.stat().st_size)
    assert "outside of the topic's folder" in left.reason
    assert left.path in str(done.unfinished)
    assert (written.exists(), not_deleted(tmp_path)) == (True, [left.path])
    assert left.path in str(Purger(sealing_store(tmp_path)).purge(now_ms=NOW_MS).failed[TOPIC])
    written.unlink()
    last = sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS)
    assert (last.unfinished, sealing_store(tmp_path).being_deleted()) == (None, [])
    assert files_sealed(tmp_path / "chain").count(left.path) == 1


@pytest.mark.parametrize("kind", ["tag", "branch", "older snapshot"])
def test_a_file_elsewhere_that_only_an_older_state_shows_is_named_too(tmp_path: Path, kind: str) -> None:
    written = elsewhere(tmp_path)
    changes = table_of(tmp_path).manage_snapshots()
    if kind != "older snapshot":
        made = changes.create_tag if kind == "tag" else changes.create_branch
        made(current_id(tmp_path), "audit").commit()
    table_of(tmp_path).delete("offset = 1")
    sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS)
    assert not_deleted(tmp_path) == [f"file://{written}"]


def test_a_file_elsewhere_that_is_not_there_any_more_is_in_no_receipt(tmp_path: Path) -> None:
    written = elsewhere(tmp_path)
    written.unlink()
    assert sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS).unfinished is None
    assert (not_deleted(tmp_path), f"file://{written}" in files_sealed(tmp_path / "chain")) == ([], False)


def test_whenever_a_deletion_is_killed_one_receipt_names_what_lies_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    written = elsewhere(home)
    put_back(home, tmp_path / "saved")
    number = 0
    while killed_before(home, delete, number):
        again = sealing_store(home).delete_topic(TOPIC, NOW_MS)
        assert [left.path for left in again.not_deleted] == [f"file://{written}"], number
        assert set(not_deleted(home)) == {f"file://{written}"}, number
        told = files_sealed(home / "chain")
        assert len(told) == len(set(told)), number
        put_back(tmp_path / "saved", home)
        number += 1
    assert number > 5


def manifest_of(home: Path) -> str:
    current = table_of(home).current_snapshot()
    assert current
    return current.manifests(table_of(home).io)[0].manifest_path


def list_of(home: Path) -> str:
    current = table_of(home).current_snapshot()
    assert current
    return current.manifest_list


@pytest.mark.parametrize("damaged", [manifest_of, list_of])
def test_a_manifest_that_can_not_be_read_is_named_as_not_looked_at_and_costs_only_what_it_names(
    tmp_path: Path, damaged: Callable[[Path], str]
) -> None:
    written = elsewhere(tmp_path)
    set_properties(tmp_path, {"write.data.path": None})
    insert(tmp_path, 2)
    path = damaged(tmp_path)
    damage(path)
    sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS)
    [content] = deletion_receipts(tmp_path)
    [line] = content["not_looked_at"]
    assert path in line
    assert content["held_files"] is None
    assert [file["path"] for file in content["not_deleted"]] == [f"file://{written}"]


def test_whenever_a_deletion_is_killed_what_could_not_be_read_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create(home)
    append_each(sealing_store(home), [("a", "1")])
    path = manifest_of(home)
    damage(path)
    put_back(home, tmp_path / "saved")
    number = 0
    while killed_before(home, delete, number):
        store = sealing_store(home)
        if store.topics() or store.being_deleted():
            store.delete_topic(TOPIC, NOW_MS)
        told = [line for content in deletion_receipts(home) for line in content["not_looked_at"]]
        assert len(told) == 1, number
        assert path in told[0]
        put_back(tmp_path / "saved", home)
        number += 1
    assert number > 5


def test_a_deletion_of_which_all_could_be_read_tells_nothing_as_not_looked_at(tmp_path: Path) -> None:
    create(tmp_path)
    append_each(sealing_store(tmp_path), [("a", "1")])
    assert sealing_store(tmp_path).delete_topic(TOPIC, NOW_MS).unfinished is None
    [content] = deletion_receipts(tmp_path)
    assert (content["not_looked_at"], content["not_deleted"], content["held_files"]) == ([], [], [])
