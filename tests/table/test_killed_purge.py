"""A purge, or the deletion of a topic, that dies before any of its effects: all that went is in one receipt, once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.passes.purge import Purger
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.table.killed import Act, killed_before, put_back, sealing_store
from tests.table.purges import (
    DAY_MS,
    cleaned,
    clock_ms,
    files_sealed,
    live_paths,
    paths_of_values,
    sealed,
    stored_paths,
    unreferenced,
)
from tests.table.stores import TOPIC, append_each, clean, new_id, values

LATER_MS = 2 * DAY_MS
STUCK = "y.parquet"


def purge(store: LogStore) -> None:
    store.purge(TOPIC, clock_ms() + LATER_MS)


def purge_with_a_stuck_file(store: LogStore) -> None:
    """One orphan and one retired segment can't be deleted."""
    real = TableFiles.delete
    stuck = min(paths_of_values(store) - live_paths(store) - {_orphan(store, name) for name in ("x", "y")})

    def refusing(files: TableFiles, path: str) -> None:
        if path == stuck or path.endswith(STUCK):
            raise PermissionError(1, "Operation not permitted")
        real(files, path)

    TableFiles.delete = refusing  # type: ignore[method-assign, assignment]
    purge(store)


def refusing_segments(real: Callable[[TableFiles, str], None]) -> Callable[[TableFiles, str], None]:
    def refusing(files: TableFiles, path: str) -> None:
        if "/data/" in path:
            raise PermissionError(1, "Operation not permitted")
        real(files, path)

    return refusing


def _orphan(store: LogStore, name: str) -> str:
    return f"{store.data_location(TOPIC)}/partition=0/{name}.parquet"


def delete(store: LogStore) -> None:
    store.delete_topic(TOPIC, clock_ms())


def each_kill(home: Path, act: Act) -> Iterator[int]:
    """Die before each effect in turn, at the home as it is now; yields each time, and puts the home back."""
    saved = home.parent / f"saved-{new_id()}"
    shutil.copytree(home, saved)
    number = 0
    while killed_before(home, act, number):
        yield number
        put_back(saved, home)
        number += 1
    assert number > 10


@pytest.mark.parametrize("act", [purge, purge_with_a_stuck_file])
def test_what_a_killed_purge_and_the_next_ones_delete_is_in_one_receipt_each(tmp_path: Path, act: Act) -> None:
    home = tmp_path / "home"
    store = cleaned(home)
    for name in ("x", "y"):
        store.files.write_bytes(_orphan(store, name), b"staged by a run that died")
    retired = paths_of_values(store) - live_paths(store) - {_orphan(store, name) for name in ("x", "y")}
    orphans = {_orphan(store, name) for name in ("x", "y")}
    live = live_paths(store)
    for number in each_kill(home, act):
        for _ in range(2):
            purge(sealing_store(home))
        chain = home / "chain"
        counts = Counter(files_sealed(chain))
        assert set(counts.values()) == {1}, (number, counts)
        assert set(files_sealed(chain, "retired")) >= retired, number
        assert set(files_sealed(chain, "orphan")) >= orphans, number
        assert not live & set(counts), number
        assert paths_of_values(sealing_store(home)) == live, number
        assert unreferenced(home) == set(), number
        assert not list(home.rglob("receipts/*.json")), number
        assert len(values(sealing_store(home))) == 2, number


def test_what_a_killed_purge_named_is_in_one_receipt_when_its_topic_is_deleted_though_not_all_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    cleaned(home)
    before = paths_of_values(sealing_store(home))
    for number in each_kill(home, purge_with_a_stuck_file):
        with monkeypatch.context() as patch:
            patch.setattr(TableFiles, "delete", refusing_segments(TableFiles.delete))
            left = {file.path for file in sealing_store(home).delete_topic(TOPIC, clock_ms()).not_deleted}
        assert left == {path for path in before if Path(path.removeprefix("file://")).exists()}, number
        [told] = [each for each in sealed(home / "chain") if each["kind"] == "topic-delete"]
        assert {file["path"] for file in told["content"]["not_deleted"]} == left, number
        delete(sealing_store(home))
        counts = Counter(files_sealed(home / "chain"))
        assert set(counts.values()) == {1}, (number, counts)
        assert before <= set(counts), number


def test_what_a_purge_could_not_delete_is_in_one_receipt_whenever_the_deletion_of_its_topic_is_killed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    cleaned(home)
    before = paths_of_values(sealing_store(home))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableFiles, "delete", refusing_segments(TableFiles.delete))
        purge(sealing_store(home))
    for number in each_kill(home, delete):
        store = sealing_store(home)
        if store.topics() or store.being_deleted():
            delete(store)
        counts = Counter(files_sealed(home / "chain"))
        assert set(counts.values()) == {1}, (number, counts)
        assert before <= set(counts), number


@pytest.mark.parametrize("finish", [delete, lambda store: Purger(store).purge(now_ms=clock_ms())])
def test_what_a_killed_deletion_of_a_topic_and_its_end_delete_is_in_one_receipt_each(
    tmp_path: Path, finish: Callable[[LogStore], object]
) -> None:
    home = tmp_path / "home"
    store = cleaned(home)
    [earlier] = store.purge(TOPIC, clock_ms() + LATER_MS).receipts  # which nobody has sealed
    append_each(store, [("b", "5")])
    clean(store)
    store.files.write_bytes(_orphan(store, "x"), b"staged by a run that died")
    shutil.rmtree(home / "chain", ignore_errors=True)
    before = stored_paths(home)
    for number in each_kill(home, delete):
        if sealing_store(home).topics():
            assert before <= stored_paths(home), number
            delete(sealing_store(home))
        elif sealing_store(home).being_deleted():
            finish(sealing_store(home))
        assert (sealing_store(home).topics(), sealing_store(home).being_deleted()) == ([], []), number
        receipts = sealed(home / "chain")
        last = {path for each in receipts for path in each["content"].get("deleted_after_sealing", ())}
        counts = Counter(files_sealed(home / "chain", "topic-delete"))
        assert set(counts.values()) == {1}, (number, counts)
        assert before - last <= set(counts), number
        assert [each["id"] for each in receipts if each["kind"] == "purge"] == [earlier], number
        left = [path for path in (home / "warehouse").rglob("*") if path.is_file()]
        assert [path.name.endswith(".metadata.json") for path in left] in ([], [True]), (number, left)
