"""Swaps: whole or not at all, and only on the log that was planned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvariantViolated, StalePlan
from keptlog.log.result import RewriteResult
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    append_each,
    clean,
    create,
    expiry_for,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    values,
)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A log of three segments: a=1 b=2 | a=3 | c=4 b=null."""
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2")], [("a", "3")], [("c", "4"), ("b", None)])
    return store


def _planned(store: LogStore) -> RewriteResult:
    return rewritten(store, step_for(store.logs(TOPIC)[0]))


def test_a_swap_replaces_segments_and_moves_the_checkpoint(store: LogStore) -> None:
    outcome = clean(store)
    [log] = store.logs(TOPIC)
    assert log.segments == outcome.added
    assert (log.checkpoint, log.log_start_offset, log.log_end_offset) == (5, 0, 5)
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4"), (0, 4, None)]


def test_what_the_metrics_tell_of_a_swapped_segment_is_what_its_writer_counted(store: LogStore) -> None:
    records = [replace(record, delete_horizon_ms=NOW_MS + 7) for _, record in store.read(TOPIC) if record.value is None]
    step = step_for(store.logs(TOPIC)[0])
    added = staged(store, TOPIC, 0, records)
    store.swap(TOPIC, [replace(rewritten(store, step), added=tuple(added))], new_id())
    [segment] = store.logs(TOPIC)[0].segments
    assert [segment] == added
    assert (segment.stamped_count, segment.tombstone_count, segment.earliest_delete_horizon_ms) == (1, 1, NOW_MS + 7)


def test_appends_that_came_after_the_plan_do_not_disturb(store: LogStore) -> None:
    outcome = _planned(store)
    append_each(store, [("a", "5")])
    store.swap(TOPIC, [outcome], new_id())
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4"), (0, 4, None), (0, 5, b"5")]
    assert store.logs(TOPIC)[0].log_end_offset == 6


def test_a_log_that_is_cleaned_empty_keeps_its_end(store: LogStore) -> None:
    outcome = replace(_planned(store), added=())
    store.swap(TOPIC, [outcome], new_id())
    [log] = store.logs(TOPIC)
    assert (log.segments, log.checkpoint, log.log_end_offset) == ((), 5, 5)
    append_each(store, [("d", "6")])
    assert values(store) == [(0, 5, b"6")]


def test_an_expiry_leaves_the_checkpoint_where_it_is(store: LogStore) -> None:
    clean(store)
    append_each(store, [("e", "7")])
    [log] = store.logs(TOPIC)
    step = expiry_for(log, log.segments[:1])
    outcome = rewritten(store, step, keep=lambda record: record.value is not None)
    store.swap(TOPIC, [outcome], new_id())
    assert store.logs(TOPIC)[0].checkpoint == 5
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4"), (0, 5, b"7")]


def test_all_logs_of_a_topic_move_in_one_commit(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=3)
    for number in range(3):
        store.append(TOPIC, new_records(("a", "1"), ("a", "2"), partition=number), new_id(), NOW_MS)
    outcomes = [rewritten(store, step_for(log)) for log in store.logs(TOPIC)]
    before = store.describe_topic(TOPIC).snapshot_id
    store.swap(TOPIC, outcomes, new_id())
    assert values(store) == [(number, 1, b"2") for number in range(3)]
    assert [log.checkpoint for log in store.logs(TOPIC)] == [2, 2, 2]
    assert len(values(store, snapshot_id=before)) == 6


def _cleaned_by_another(store: LogStore) -> None:
    clean(store)


def _no_longer_compacted(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"cleanup.policy": "delete"})


def _another_strategy(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"compaction.strategy": "timestamp"})


def _protected_by_the_minimum_lag(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"min.compaction.lag.ms": str(60 * 24 * 3_600_000)})


def _topic_deleted(store: LogStore) -> None:
    store.delete_topic(TOPIC, NOW_MS)


def _deleted_and_created_again(store: LogStore) -> None:
    store.delete_topic(TOPIC, NOW_MS)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1"), ("b", "2")])


def _purged_as_an_orphan(store: LogStore) -> None:
    for file in list(store.files.list(store.data_location(TOPIC))):
        if "-staged-" in file.path:
            store.files.delete(file.path)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (_cleaned_by_another, "first dirty offset was None .* now they are 5"),
        (_no_longer_compacted, "no longer compacted"),
        (_another_strategy, "compaction.strategy was offset, now it is timestamp"),
        (_protected_by_the_minimum_lag, "its settings were altered and protect what lies behind offset 0"),
        (_topic_deleted, "was deleted while it was cleaned"),
        (_deleted_and_created_again, "was deleted and created again"),
        (_purged_as_an_orphan, "is gone"),
    ],
)
def test_a_plan_that_the_log_has_left_behind_is_stale_and_changes_nothing(
    store: LogStore, meanwhile: Callable[[LogStore], None], said: str
) -> None:
    outcome = _planned(store)
    meanwhile(store)
    before = store.metadata_locations()
    with pytest.raises(StalePlan, match=said):
        store.swap(TOPIC, [outcome], new_id())
    assert store.metadata_locations() == before


def test_settings_that_do_not_protect_what_was_cleaned_may_be_altered_meanwhile(store: LogStore) -> None:
    outcome = _planned(store)
    store.alter_topic(TOPIC, {"delete.retention.ms": "7", "cleanup.policy": "compact,delete"})
    append_each(store, [("a", "5")])
    store.swap(TOPIC, [outcome], new_id())
    assert store.logs(TOPIC)[0].checkpoint == 5


def test_a_zombie_whose_state_is_right_but_whose_inputs_are_dead_is_stale(store: LogStore) -> None:
    clean(store)
    [log] = store.logs(TOPIC)
    append_each(store, [("e", "7")])
    step = expiry_for(store.logs(TOPIC)[0], log.segments)
    first, zombie = rewritten(store, step), rewritten(store, step)
    store.swap(TOPIC, [first], new_id())
    with pytest.raises(StalePlan, match="is no longer live"):
        store.swap(TOPIC, [zombie], new_id())
    assert store.logs(TOPIC)[0].segments[0] == first.added[0]


def test_a_segment_that_the_plan_did_not_know_makes_it_stale(store: LogStore) -> None:
    step = step_for(store.logs(TOPIC)[0])
    blind = rewritten(store, replace(step, segments=step.segments[:1]))
    with pytest.raises(StalePlan, match="came into the range"):
        store.swap(TOPIC, [blind], new_id())


def test_one_stale_log_keeps_the_whole_commit_from_landing(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=2)
    for number in range(2):
        store.append(TOPIC, new_records(("a", "1"), ("a", "2"), partition=number), new_id(), NOW_MS)
    both = [rewritten(store, step_for(log)) for log in store.logs(TOPIC)]
    store.swap(TOPIC, [rewritten(store, step_for(store.logs(TOPIC)[1]))], new_id())
    with pytest.raises(StalePlan, match=f"{TOPIC}-1") as told:
        store.swap(TOPIC, both, new_id())
    assert [log.checkpoint for log in store.logs(TOPIC)] == [None, 2]
    assert list(told.value.logs or ()) == [f"{TOPIC}-1"]


def test_the_same_run_again_is_done_already(store: LogStore) -> None:
    outcome = _planned(store)
    store.swap(TOPIC, [outcome], "run")
    after = store.metadata_locations()
    store.swap(TOPIC, [outcome], "run")
    assert store.metadata_locations() == after


def test_another_swap_of_the_same_run_is_judged_by_itself(store: LogStore) -> None:
    first = _planned(store)
    second = _planned(store)
    store.swap(TOPIC, [first], "run")
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [second], "run")
    append_each(store, [("a", "5")])
    store.swap(TOPIC, [_planned(store)], "run")
    assert store.logs(TOPIC)[0].checkpoint == 6


def test_a_checkpoint_does_not_move_without_the_removal_of_a_segment(store: LogStore) -> None:
    outcome = replace(_planned(store), removed=(), added=())
    with pytest.raises(InvariantViolated, match="I1"):
        store.swap(TOPIC, [outcome], new_id())
    assert store.logs(TOPIC)[0].checkpoint is None


def test_a_path_is_not_used_twice(store: LogStore) -> None:
    outcome = _planned(store)
    again = replace(outcome, added=outcome.step.segments[:1])
    with pytest.raises(InvariantViolated, match="I2"):
        store.swap(TOPIC, [again], new_id())


def test_segments_that_would_overlap_are_refused(store: LogStore) -> None:
    outcome = _planned(store)
    with pytest.raises(InvariantViolated, match="overlap"):
        store.swap(TOPIC, [replace(outcome, removed=outcome.removed[:1])], new_id())


def test_outcomes_of_another_topic_are_refused(store: LogStore) -> None:
    store.create_topic("other", 1, COMPACTED)
    with pytest.raises(InvariantViolated, match="must be of the topic"):
        store.swap("other", [_planned(store)], new_id())


def _watermarks(store: LogStore, name: str) -> str:
    path = f"{store.data_location(TOPIC)}/partition=0/{name}"
    store.files.write_bytes(path, b"watermarks")
    return path


def test_a_swap_sets_replaces_and_clears_the_watermarks(store: LogStore) -> None:
    first = _watermarks(store, "first")
    store.swap(TOPIC, [replace(_planned(store), watermarks_path=first)], new_id())
    assert store.logs(TOPIC)[0].watermarks_path == first
    append_each(store, [("a", "5")])
    store.swap(TOPIC, [replace(_planned(store), watermarks_path=first)], new_id())
    assert store.logs(TOPIC)[0].watermarks_path == first
    append_each(store, [("a", "6")])
    store.swap(TOPIC, [replace(_planned(store), watermarks_path=None)], new_id())
    assert store.logs(TOPIC)[0].watermarks_path is None


def test_watermarks_that_another_clean_has_replaced_make_the_plan_stale(store: LogStore) -> None:
    outcome = _planned(store)
    path = _watermarks(store, "others")
    store.load_table(TOPIC).transaction().set_properties({"log.p0.watermarks": path}).commit_transaction()
    with pytest.raises(StalePlan, match="its watermarks were None"):
        store.swap(TOPIC, [outcome], new_id())


def test_staged_watermarks_that_are_gone_make_the_plan_stale(store: LogStore) -> None:
    outcome = replace(_planned(store), watermarks_path=f"{store.data_location(TOPIC)}/partition=0/never-written")
    with pytest.raises(StalePlan, match="never-written is gone"):
        store.swap(TOPIC, [outcome], new_id())


def test_a_second_store_sees_the_swap_although_it_has_read_before(store: LogStore, tmp_path: Path) -> None:
    other = store_at(tmp_path)
    assert len(other.logs(TOPIC)[0].segments) == 3
    outcome = clean(store)
    assert other.logs(TOPIC)[0].segments == outcome.added
