"""Purges: what was replaced long enough ago is off the storage, whatever happens on the way, and nothing else is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import Committer
from keptlog.table.io.files import TableFiles
from tests.table.purges import (
    DAY_MS,
    MINUTE_MS,
    cleaned,
    clock_ms,
    live_paths,
    proved,
    receipts,
    stored_paths,
    unreferenced,
)
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    append_each,
    clean,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)


def test_replaced_segments_are_off_the_storage_after_the_delay_and_not_before(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    assert store.purge(TOPIC, clock_ms()).deleted_files == ()
    assert len(files_below(tmp_path)) == 4
    receipt = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert len(receipt.deleted_files) == 3
    assert len(receipt.expired_snapshots) == 3
    assert {file.path for file in receipt.deleted_files}.isdisjoint(live_paths(store))
    assert {f"file://{path}" for path in files_below(tmp_path)} == live_paths(store)
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]


def test_the_delay_counts_from_when_a_snapshot_was_replaced(tmp_path: Path) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "3000"})
    append_each(store, [("a", "1")], [("a", "2")])
    made_ms = clock_ms()
    while clock_ms() < made_ms + 50:
        time.sleep(0.01)
    replaced_after_ms = clock_ms()
    clean(store)
    assert store.purge(TOPIC, replaced_after_ms - 1 + 3000).deleted_files == ()
    assert len(store.purge(TOPIC, clock_ms() + 3001).deleted_files) == 2


def test_a_purge_leaves_nothing_that_nobody_refers_to(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert unreferenced(tmp_path) == set()


def test_the_receipt_stays_as_proof(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    now_ms = clock_ms() + MINUTE_MS + 1
    receipt = store.purge(TOPIC, now_ms)
    [kept] = (tmp_path / "warehouse").rglob("receipts/*.json")
    [proof] = receipts(tmp_path)
    assert (proof["at_ms"], proof["kind"], (proof["id"],)) == (now_ms, "purge", receipt.receipts)
    assert (proof["topic"], proof["table_uuid"]) == (TOPIC, store.describe_topic(TOPIC).id)
    assert proved(tmp_path) == sorted(file.path for file in receipt.deleted_files)
    assert receipt.deleted_bytes >= sum(file.bytes for file in receipt.deleted_files) > 0
    store.purge(TOPIC, now_ms + 2 * DAY_MS)
    assert kept.exists()


def test_a_second_purge_finds_nothing_to_do(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    later_ms = clock_ms() + 2 * DAY_MS
    store.purge(TOPIC, later_ms)
    before, stored = store.metadata_locations(), stored_paths(tmp_path)
    receipt = store.purge(TOPIC, later_ms)
    assert (receipt.expired_snapshots, receipt.deleted_files, receipt.deleted_orphans) == ((), (), ())
    assert (store.metadata_locations(), stored_paths(tmp_path)) == (before, stored)


def test_a_topic_without_a_record_can_be_purged(tmp_path: Path) -> None:
    assert create(tmp_path).purge(TOPIC, clock_ms() + DAY_MS).deleted_files == ()


def test_segments_that_a_tag_holds_stay(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    tagged = store.describe_topic(TOPIC).snapshot_id
    assert tagged is not None
    open_catalog(tmp_path).load_table(("keptlog", TOPIC)).manage_snapshots().create_tag(tagged, "audit").commit()
    clean(store)
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert values(store, snapshot_id=tagged) == [(0, 0, b"1"), (0, 1, b"2")]


def test_orphans_go_after_the_grace_time_and_not_before(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    records = [record for _, record in store.read(TOPIC)]
    [orphan] = staged(store, TOPIC, 0, records)
    assert store.purge(TOPIC, clock_ms() + DAY_MS - MINUTE_MS).deleted_orphans == ()
    receipt = store.purge(TOPIC, clock_ms() + DAY_MS + MINUTE_MS)
    assert orphan.path in {file.path for file in receipt.deleted_orphans}
    assert not store.files.exists(orphan.path)
    assert len(values(store)) == len(records)


def test_a_run_whose_staged_files_were_swept_is_refused(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.purge(TOPIC, clock_ms() + MINUTE_MS, orphan_grace_ms=0)
    with pytest.raises(StalePlan, match="swept"):
        store.swap(TOPIC, [outcome], new_id())
    assert len(values(store)) == 2


def test_a_topic_is_not_swept_by_the_purge_of_one_whose_name_begins_its_own(tmp_path: Path) -> None:
    store = create(tmp_path)
    store.create_topic(TOPIC + "-x", 1, {})
    store.append(TOPIC + "-x", new_records(("a", "1")), "run", NOW_MS)
    store.purge(TOPIC, clock_ms() + 9 * DAY_MS)
    assert len(values(store, TOPIC + "-x")) == 1


def test_a_rollback_between_the_look_and_the_commit_keeps_the_purge_from_expiring_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cleaned(tmp_path)
    before = files_below(tmp_path)
    catalog = open_catalog(tmp_path)
    first = catalog.load_table(("keptlog", TOPIC)).metadata.snapshots[0].snapshot_id
    real = type(catalog).commit_table
    rolled_back: list[bool] = []

    def racing(self: object, table: object, requirements: object, updates: object) -> object:
        if not rolled_back:
            rolled_back.append(True)
            table_now = open_catalog(tmp_path).load_table(("keptlog", TOPIC))
            table_now.manage_snapshots().rollback_to_snapshot(first).commit()
        return real(self, table, requirements, updates)  # type: ignore[arg-type]

    monkeypatch.setattr(type(catalog), "commit_table", racing)
    with pytest.raises(LogCorrupt, match="it was rolled back"):
        store_over(catalog).purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    monkeypatch.undo()
    assert open_catalog(tmp_path).load_table(("keptlog", TOPIC)).metadata.current_snapshot_id == first
    assert files_below(tmp_path) == before
    assert len(list(store.files.list(store.data_location(TOPIC)))) == len(before)


def _kill_at(home: Path, patch: Callable[[], None]) -> None:
    patch()
    store_at(home).purge(TOPIC, clock_ms() + MINUTE_MS + 1)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _in_the_journal() -> None:
    def write_half(self: TableFiles, path: str, content: bytes) -> None:
        Path(path.removeprefix("file://")).parent.mkdir(parents=True)
        Path(path.removeprefix("file://")).write_bytes(content[: len(content) // 2])
        _die()

    TableFiles.write_bytes = write_half  # type: ignore[method-assign]


def _after_the_journal() -> None:
    real = TableFiles.write_bytes

    def write_and_die(self: TableFiles, path: str, content: bytes) -> None:
        real(self, path, content)
        _die()

    TableFiles.write_bytes = write_and_die  # type: ignore[method-assign]


def _after_the_commit() -> None:
    real = Committer.commit

    def commit_and_die(self: Committer, *arguments: object) -> None:
        real(self, *arguments)  # type: ignore[arg-type]
        _die()

    Committer.commit = commit_and_die  # type: ignore[method-assign, assignment]


def _in_the_deletes() -> None:
    real = TableFiles.delete
    deleted: list[str] = []

    def delete_two(self: TableFiles, path: str) -> None:
        if len(deleted) == 2:
            _die()
        real(self, path)
        deleted.append(path)

    TableFiles.delete = delete_two  # type: ignore[method-assign]


@pytest.mark.parametrize("moment", [_in_the_journal, _after_the_journal, _after_the_commit, _in_the_deletes])
def test_a_purge_that_was_killed_is_finished_by_the_next_one(tmp_path: Path, moment: Callable[[], None]) -> None:
    store = cleaned(tmp_path)
    before = values(store)
    process = multiprocessing.get_context("spawn").Process(target=_kill_at, args=(tmp_path, moment))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert values(store_at(tmp_path)) == before
    receipt = store_at(tmp_path).purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert len(receipt.deleted_files) == 3
    assert len(files_below(tmp_path)) == 1
    assert values(store_at(tmp_path)) == before
    store_at(tmp_path).purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert unreferenced(tmp_path) == set()
    assert proved(tmp_path) == sorted(file.path for file in receipt.deleted_files)


def test_two_purges_at_once_do_the_work_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = cleaned(tmp_path)
    real = Committer.commit
    nested: list[bool] = []

    def commit_behind_another(self: Committer, *arguments: object) -> object:
        if not nested:
            nested.append(True)
            store_at(tmp_path).purge(TOPIC, clock_ms() + MINUTE_MS + 1)
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "commit", commit_behind_another)
    assert store.purge(TOPIC, clock_ms() + MINUTE_MS + 1).deleted_files == ()
    assert len(files_below(tmp_path)) == 1
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]


def test_watermarks_are_spared_while_a_log_refers_to_them_and_swept_when_replaced(tmp_path: Path) -> None:
    store = create(tmp_path)
    folder = f"{store.data_location(TOPIC)}/partition=0"
    for name in ("first", "second"):
        store.files.write_bytes(f"{folder}/{name}", b"watermarks")
        append_each(store, [("a", "1"), ("a", "2")])
        outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
        store.swap(TOPIC, [replace(outcome, watermarks_path=f"{folder}/{name}")], new_id())
        assert not [each for each in store.purge(TOPIC, clock_ms()).deleted_orphans if name in each.path]
    swept = store.purge(TOPIC, clock_ms() + DAY_MS + 1).deleted_orphans
    assert f"{folder}/first" in {each.path for each in swept}
    assert store.files.exists(f"{folder}/second")
