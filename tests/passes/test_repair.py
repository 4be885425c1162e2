"""A repair loses nothing that was acknowledged; then the log goes on as if nothing had been."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.home import new_id
from keptlog.log.sections import GIVEN_UP
from keptlog.table.metadata.manifests import FileChange
from tests.passes.story import DAY_MS, HOUR_MS, LOG, SETTINGS, Story, T
from tests.table.foreign import (
    as_format_1_0,
    current_id,
    delete_rows,
    expire,
    insert,
    make_1_0,
    remove_main,
    rows_at,
    set_main,
    set_properties,
    table_of,
    update_rows,
)


def test_a_rollback_across_a_clean_is_mended_and_brings_no_deleted_key_back(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = current_id(story.home, T)
    story.clean()
    story.roll_back(before)
    assert len(story.real.records()) == 4
    proposal = story.repair()
    assert proposal.plan.came
    assert len(proposal.plan.went) == 2
    assert (proposal.lost, dict(proposal.plan.state)) == ({}, {})
    story.require_same()


def test_a_rollback_across_the_expiry_of_a_tombstone_is_mended(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    before = story.clean()
    story.clean(after_ms=2 * DAY_MS)
    assert b"a" not in {record.key for record in story.real.records()}
    story.roll_back(before)
    assert b"a" in {record.key for record in story.real.records()}
    story.repair()
    assert b"a" not in {record.key for record in story.real.records()}
    story.require_same()


def test_a_rollback_across_an_append_is_mended_and_no_acknowledged_record_is_lost(story: Story) -> None:
    before = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    story.append(("c", None))
    story.roll_back(before)
    story.repair()
    assert [record.offset for record in story.real.records()] == [0, 1, 2, 3, 4]
    story.require_same()


def test_a_rollback_across_a_deletion_of_records_is_mended(story: Story) -> None:
    before = story.append(("c", "1"))
    story.real.store.delete_records(LOG, 2, new_id())
    story.roll_back(before)
    story.repair()
    assert [segment.base_offset for segment in story.real.log.segments] == [2]


def test_a_rollback_after_a_purge_is_mended_and_a_purge_of_the_repaired_log_keeps_what_is_live(story: Story) -> None:
    story.append(("a", "2"), ("c", "1"))
    before = story.clean()
    story.append(("d", "1"))
    story.clean()
    story.real.store.purge(T, time.time_ns() // 1_000_000, 0)
    story.roll_back(before)
    with pytest.raises(LogCorrupt, match="rolled back"):
        story.real.store.purge(T, time.time_ns() // 1_000_000 + DAY_MS, 0)
    story.repair()
    story.real.store.purge(T, time.time_ns() // 1_000_000 + DAY_MS, 0)
    story.require_same()


@pytest.mark.parametrize(
    "act",
    [
        lambda home: insert(home, 7, 8, topic=T),
        lambda home: delete_rows(home, "offset = 1", T),
        lambda home: update_rows(home, [1], b"changed", T),
        lambda home: table_of(home, T).overwrite(rows_at(0, 1)),
        lambda home: table_of(home, T).delete("partition = 0"),
    ],
    ids=["insert", "delete", "update", "overwrite", "delete all"],
)
def test_what_another_program_has_written_is_undone(story: Story, act: Callable[[Path], object]) -> None:
    story.append(("a", "2"))
    story.clean()
    act(story.home)
    proposal = story.repair()
    assert proposal.plan.foreign
    story.require_same()


def test_a_rollback_and_a_foreign_insert_are_undone_together(story: Story) -> None:
    before = current_id(story.home, T)
    story.append(("c", "1"))
    story.roll_back(before)
    insert(story.home, 50, topic=T)
    story.repair()
    story.require_same()


def test_a_snapshot_of_another_branch_is_undone(story: Story) -> None:
    table_of(story.home, T).manage_snapshots().create_branch(current_id(story.home, T), "experiment").commit()
    other = insert(story.home, 50, branch="experiment", topic=T)
    story.append(("c", "1"))
    set_main(story.home, other, T)
    story.repair()
    story.require_same()


def test_a_table_without_a_current_snapshot_gets_its_records_back(story: Story) -> None:
    story.append(("c", "1"))
    story.clean()
    remove_main(story.home, T)
    with pytest.raises(LogCorrupt, match=r"has no current snapshot that could be adopted; keptlog repair t brings"):
        story.propose(adopt=True)
    story.repair()
    story.require_same()


def test_a_topic_that_only_others_have_written_to_is_empty_again(tmp_path: Path) -> None:
    story = Story(tmp_path, SETTINGS)
    insert(tmp_path, 0, 1, topic=T)
    story.repair()
    assert story.real.records() == []
    story.append(("a", "1"))
    story.require_same()


def test_the_new_snapshot_counts_what_it_holds(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"), ("c", "1"))
    story.roll_back(first)
    insert(story.home, 50, topic=T)
    story.repair()
    snapshot = table_of(story.home, T).current_snapshot()
    assert snapshot
    assert snapshot.summary
    told = snapshot.summary.additional_properties
    names = ("total-records", "total-data-files", "added-data-files", "deleted-data-files", "total-delete-files")
    assert [told[name] for name in names] == ["4", "2", "1", "1", "0"]
    assert len(table_of(story.home, T).scan().to_arrow()) == 4


@pytest.mark.parametrize("is_list", [False, True], ids=["manifest", "manifest list"])
@pytest.mark.parametrize(
    "how", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:50])], ids=["gone", "cut"]
)
def test_what_another_program_has_written_is_undone_although_its_metadata_can_not_be_read(
    story: Story, how: Callable[[Path], object], is_list: bool
) -> None:
    insert(story.home, 50, topic=T)
    table = table_of(story.home, T)
    snapshot = table.current_snapshot()
    assert snapshot
    [foreign] = [each for each in snapshot.manifests(table.io) if each.added_snapshot_id == snapshot.snapshot_id]
    path = snapshot.manifest_list if is_list else foreign.manifest_path
    how(Path(path.removeprefix("file://")))
    with pytest.raises(LogCorrupt, match=f"{path} .*; keptlog repair t brings back what was acknowledged$"):
        story.propose(adopt=True)
    assert story.repair().plan.went == (path,)
    repaired = table_of(story.home, T).current_snapshot()
    assert repaired
    assert repaired.summary
    told = repaired.summary.additional_properties
    assert (repaired.summary.operation.value, told["total-records"], told["total-data-files"]) == (
        "overwrite",
        "2",
        "1",
    )
    story.require_same()


def test_what_an_older_keptlog_appended_to_a_rolled_back_table_is_kept_too(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    story.roll_back(first)
    with as_format_1_0(story.home, T):
        story.append(("c", "1"))
    assert [record.offset for record in story.real.records()] == [0, 1, 3]
    story.repair()
    assert [record.offset for record in story.real.records()] == [0, 1, 2, 3]
    story.require_same()


def test_what_an_older_keptlog_cleaned_of_a_rolled_back_table_is_judged_again(story: Story) -> None:
    story.append(("a", None), ("b", "2"))
    first = current_id(story.home, T)
    story.append(("a", "3"), ("c", "1"))
    story.clean()
    story.roll_back(first)
    with as_format_1_0(story.home, T):
        story.append(("b", "3"), ("d", "1"))
        story.real.clean(story.now_ms + HOUR_MS)
    proposal = story.repair()
    assert proposal.plan.state == {
        "log.p0.first-dirty-offset": str(GIVEN_UP),
        "log.p0.cleaning-to": "8",
        "log.p0.nothing-given-up": "true",
    }
    assert story.real.log.checkpoint == GIVEN_UP
    assert story.real.positions(story.now_ms).first_dirty_offset == 0
    story.require_same()


@pytest.mark.parametrize("undone", ["append", "clean"])
def test_what_an_earlier_repair_has_undone_is_no_older_keptlogs(story: Story, undone: str) -> None:
    story.append(("a", None), ("b", "2"))
    story.clean()
    first = current_id(story.home, T)
    second = story.append(("a", "3"), ("c", "1")) if undone == "append" else story.clean(after_ms=2 * DAY_MS)
    story.roll_back(first)
    story.repair()
    set_main(story.home, second, T)
    proposal = story.repair()
    assert "older keptlog" not in proposal.plan.happened
    assert dict(proposal.plan.state) == {}
    story.require_same()


def test_what_an_older_keptlog_appended_behind_a_foreign_file_is_kept_without_that(story: Story) -> None:
    delete_rows(story.home, "offset = 0", T)
    with as_format_1_0(story.home, T):
        story.append(("c", "1"))
    story.repair()
    story.require_same()


def test_a_topic_of_an_older_keptlog_is_repaired_like_any_other(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    make_1_0(story.home, T)
    story.roll_back(first)
    story.repair()
    story.require_same()


def test_a_second_repair_finds_nothing_to_do(story: Story) -> None:
    assert story.propose() is None
    assert story.propose(adopt=True) is None
    insert(story.home, 50, topic=T)
    story.repair()
    assert story.propose() is None


def test_a_repair_that_was_planned_before_somebody_committed_is_stale(story: Story) -> None:
    insert(story.home, 50, topic=T)
    proposal = story.propose()
    assert proposal
    insert(story.home, 51, topic=T)
    with pytest.raises(StalePlan, match="changed since its repair was planned"):
        story.real.store.repair(proposal.plan, new_id())
    story.repair()


def test_of_two_repairs_at_once_the_second_finds_it_done(story: Story) -> None:
    insert(story.home, 50, topic=T)
    proposal = story.propose()
    assert proposal
    story.repair()
    after = current_id(story.home, T)
    story.real.store.repair(proposal.plan, new_id())
    assert current_id(story.home, T) == after


def test_a_repair_that_is_killed_has_done_nothing_and_can_be_run_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(story.home, 50, topic=T)
    at = current_id(story.home, T)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileChange, "written", killed)
        with pytest.raises(KeyboardInterrupt):
            story.repair()
    assert current_id(story.home, T) == at
    story.repair()
    story.require_same()


def test_a_clean_that_was_planned_before_the_rollback_is_stale_or_right(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    plan = story.real.cleaner.plan(["t-0"], now_ms=story.now_ms + HOUR_MS, requested=True)
    outcomes = story.real.cleaner.rewrite(plan.steps, new_id())
    story.roll_back(first)
    with pytest.raises(LogCorrupt, match="rolled back"):
        story.real.store.swap(T, outcomes, new_id())
    story.repair()
    story.real.store.swap(T, outcomes, new_id())
    story.reference.clean(story.now_ms + HOUR_MS)
    story.require_same()


def test_a_repair_names_the_files_that_are_gone(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    path = story.real.log.segments[-1].path
    Path(path.removeprefix("file://")).unlink()
    story.roll_back(first)
    with pytest.raises(LogCorrupt, match=f"these files are gone: {path}; .* keptlog repair t --adopt"):
        story.propose()


def test_metadata_of_the_snapshot_that_can_not_be_read_is_named_and_the_table_can_be_adopted(story: Story) -> None:
    first = current_id(story.home, T)
    story.append(("a", "2"))
    snapshot = table_of(story.home, T).current_snapshot()
    assert snapshot
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    story.roll_back(first)
    with pytest.raises(LogCorrupt, match=f"{snapshot.manifest_list} is gone: .*: keptlog repair t --adopt"):
        story.propose()
    proposal = story.repair(adopt=True)
    assert (proposal.lost, proposal.is_exact) == ({LOG: ((2, 2),)}, False)


def test_a_repair_says_that_the_snapshot_is_gone(story: Story) -> None:
    first = current_id(story.home, T)
    last = story.append(("a", "2"))
    story.roll_back(first)
    expire(story.home, last, topic=T)
    helps = "put back a whole backup, catalog and files, by which every topic goes back to its time, or .* --adopt"
    with pytest.raises(LogCorrupt, match=f"snapshot {last}, which its offsets belong to, was expired .*; {helps}"):
        story.propose()


def test_a_repair_does_without_a_watermark_file_that_is_gone(story: Story) -> None:
    set_properties(story.home, {"log.p0.watermarks": "file:///nowhere/marks.arrow"}, T)
    insert(story.home, 50, topic=T)
    proposal = story.propose()
    assert proposal
    assert (len(proposal.plan.went), dict(proposal.plan.state)) == (1, {})
    proposal = story.repair(adopt=True)
    assert proposal.plan.forgotten_watermarks == (0,)
    assert story.real.log.watermarks_path is None
