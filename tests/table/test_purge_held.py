"""A receipt says what else may hold the values that it says are gone."""

from __future__ import annotations

from pathlib import Path

from keptlog.storage.files import StoredFile
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.removal.held import HeldFile, held_lines
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, receipts
from tests.table.stores import TOPIC, append_each, clean, create, rewritten, staged, step_for


def holders(held: tuple[HeldFile, ...]) -> dict[str, str]:
    return {file.path: file.holder for file in held}


def test_a_log_with_nothing_but_live_segments_has_nothing_held(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    assert store.purge(TOPIC, clock_ms() + MINUTE_MS + 1).held == ()


def test_the_staged_file_of_a_run_that_lost_is_named_in_the_receipt_until_it_is_swept(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    lost = rewritten(store, step_for(store.logs(TOPIC)[0]))
    clean(store)
    [left] = lost.added
    receipt = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert len(receipt.deleted_files) == 2
    assert receipt.held == (HeldFile(left.path, left.size_bytes, "staged"),)
    [stored] = receipts(tmp_path)
    assert stored["held_files"] == [{"path": left.path, "bytes": left.size_bytes, "holder": "staged"}]
    swept = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert left.path in {file.path for file in swept.deleted_orphans}
    assert swept.held == ()


def test_what_a_task_left_in_the_staging_folder_is_held_too(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    path = f"{store.describe_topic(TOPIC).location}/staging/run/map"
    store.files.write_bytes(path, b"keys")
    assert holders(store.purge(TOPIC, clock_ms()).held)[path] == "staged"


def test_retired_segments_are_held_until_the_delay_has_passed(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retired = paths_of_values(store) - live_paths(store)
    assert len(retired) == 3
    assert holders(store.purge(TOPIC, clock_ms()).held) == dict.fromkeys(retired, "retired")


def test_segments_that_tags_and_branches_keep_are_held_by_name(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    table = open_catalog(tmp_path).load_table(("keptlog", TOPIC))
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    table.manage_snapshots().create_tag(first, "audit").create_branch(second, "trial").commit()
    clean(store)
    named = holders(store.purge(TOPIC, clock_ms() + MINUTE_MS + 1).held)
    assert sorted(named.values()) == ["branch trial", "tag audit"]
    assert set(named) == paths_of_values(store) - live_paths(store)


def test_a_file_that_was_staged_and_then_became_live_is_not_held(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.swap(TOPIC, [outcome], "run")
    held = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1).held
    assert outcome.added[0].path not in holders(held)


def test_old_staged_files_are_swept_and_young_ones_are_held(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    [young] = staged(store, TOPIC, 0, [record for _, record in store.read(TOPIC)])
    [file] = [each for each in store.files.list(store.data_location(TOPIC)) if each.path == young.path]
    assert isinstance(file, StoredFile)
    receipt = store.purge(TOPIC, file.modified_ms + 5 * MINUTE_MS, orphan_grace_ms=5 * MINUTE_MS + 1)
    assert holders(receipt.held) == {young.path: "staged"}
    receipt = store.purge(TOPIC, file.modified_ms + 5 * MINUTE_MS, orphan_grace_ms=5 * MINUTE_MS)
    assert (receipt.held, [each.path for each in receipt.deleted_orphans]) == ((), [young.path])


def test_each_holder_is_one_line_for_people() -> None:
    held = [HeldFile(holder, 1, holder) for holder in ("staged", "tag audit", "retired", "staged")]
    assert held_lines(held) == [
        "1 file that older snapshots still show, until file.delete.delay.ms has passed",
        "2 files of runs that are under way, or died: nothing refers to them; deleted after the grace",
        "1 file that tag audit keeps, until it is deleted",
    ]
    assert held_lines([]) == []
