"""Retention and the deletion of records: whole segments from the head, readers begin at the log start, CAS holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, InvariantViolated, StalePlan, UnknownTopic
from keptlog.log.plan import make_retention_plan
from keptlog.log.sections import GIVEN_UP
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.store import LogStore
from tests.table.foreign import set_properties
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    clean,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_over,
    values,
)

DAY_MS = 24 * 3_600_000
BOTH = {"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)}
LOG = TopicPartition(TOPIC, 0)
LATER_MS = NOW_MS + DAY_MS + 1


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Three segments, a=1 b=2 | a=3 c=4 | d=5, all older than a day at ``LATER_MS`` but the last."""
    store = create(tmp_path, config=BOTH)
    append_each(store, [("a", "1"), ("b", "2")], [("a", "3"), ("c", "4")])
    late = [replace(record, timestamp_ms=LATER_MS) for record in new_records(("d", "5"), partition=0)]
    store.append(TOPIC, late, new_id(), LATER_MS)
    return store


def planned(store: LogStore, now_ms: int = LATER_MS) -> list[Retain]:
    return list(make_retention_plan(store.logs(TOPIC), now_ms).steps)


def start_and_checkpoint(store: LogStore) -> tuple[int, int | None]:
    [log] = store.logs(TOPIC)
    return log.log_start_offset, log.checkpoint


def test_old_segments_go_and_the_log_begins_at_the_first_that_stays(store: LogStore) -> None:
    store.retain(TOPIC, planned(store), new_id())
    assert values(store) == [(0, 4, b"5")]
    assert values(store, from_offset=0) == values(store)
    assert start_and_checkpoint(store) == (4, None)
    assert store.logs(TOPIC)[0].log_end_offset == 5
    assert planned(store) == []


def test_a_checkpoint_below_the_new_log_start_moves_with_it(store: LogStore) -> None:
    step = step_for(store.logs(TOPIC)[0])
    store.swap(TOPIC, [rewritten(store, replace(step, segments=step.segments[:1], end_offset=2))], new_id())
    store.retain(TOPIC, planned(store), new_id())
    assert start_and_checkpoint(store) == (4, 4)


def test_a_checkpoint_above_the_new_log_start_stays(store: LogStore) -> None:
    clean(store)
    store.delete_records(LOG, 2, new_id())
    assert start_and_checkpoint(store) == (2, 5)


def test_what_retention_removed_is_off_the_storage_after_the_delay(store: LogStore, tmp_path: Path) -> None:
    store.retain(TOPIC, planned(store), new_id())
    store.purge(TOPIC, time.time_ns() // 1_000_000 + 60_001)
    assert len(files_below(tmp_path)) == 1


def test_a_log_that_is_wholly_old_begins_where_it_ends_and_goes_on_there(store: LogStore) -> None:
    store.retain(TOPIC, planned(store, LATER_MS + DAY_MS + 1), new_id())
    assert values(store) == []
    assert start_and_checkpoint(store) == (5, None)
    append_each(store, [("e", "6")])
    assert values(store) == [(0, 5, b"6")]


def test_all_logs_of_a_topic_are_retained_in_one_commit(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=2, config=BOTH)
    for number in range(2):
        store.append(TOPIC, new_records(("a", "1"), partition=number), new_id(), NOW_MS)
    store.retain(TOPIC, planned(store), new_id())
    assert values(store) == []
    assert [log.log_start_offset for log in store.logs(TOPIC)] == [1, 1]
    assert len(store.load_table(TOPIC).metadata.snapshots) == 3


def _retained_by_another(store: LogStore) -> None:
    store.retain(TOPIC, planned(store), new_id())


def _cleaned(store: LogStore) -> None:
    clean(store)


def _records_deleted(store: LogStore) -> None:
    store.delete_records(LOG, 1, new_id())


def _kept_for_longer(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"retention.ms": str(2 * DAY_MS)})


def _no_longer_deleted(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"cleanup.policy": "compact"})


def _topic_deleted(store: LogStore) -> None:
    store.delete_topic(TOPIC, NOW_MS)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (_retained_by_another, "log start offset 0, now they are None and 4"),
        (_cleaned, "first dirty offset was None"),
        (_records_deleted, "now they are None and 1"),
        (_kept_for_longer, "its settings keep it now"),
        (_no_longer_deleted, "its settings keep it now"),
        (_topic_deleted, "was deleted"),
    ],
)
def test_a_retention_plan_that_the_log_or_its_settings_left_behind_is_stale(
    store: LogStore, meanwhile: Callable[[LogStore], None], said: str
) -> None:
    steps = planned(store)
    meanwhile(store)
    before = store.metadata_locations()
    with pytest.raises(StalePlan, match=said):
        store.retain(TOPIC, steps, new_id())
    assert store.metadata_locations() == before


def test_appends_that_came_after_the_plan_do_not_disturb(store: LogStore) -> None:
    steps = planned(store)
    append_each(store, [("e", "6")])
    store.retain(TOPIC, steps, new_id())
    assert values(store) == [(0, 4, b"5"), (0, 5, b"6")]


def test_the_same_retention_again_is_done_already(store: LogStore) -> None:
    steps = planned(store)
    store.retain(TOPIC, steps, "run")
    after = store.metadata_locations()
    store.retain(TOPIC, steps, "run")
    assert store.metadata_locations() == after


def test_a_step_that_removes_nothing_is_refused(store: LogStore) -> None:
    [step] = planned(store)
    with pytest.raises(InvariantViolated, match="I1"):
        store.retain(TOPIC, [replace(step, segments=())], new_id())


def test_records_are_deleted_up_to_the_middle_of_a_segment(store: LogStore, tmp_path: Path) -> None:
    deleted = store.delete_records(LOG, 1, new_id())
    assert (deleted.log_start_offset, deleted.segments, deleted.bytes) == (1, 0, 0)
    assert [offset for _, offset, _ in values(store)] == [1, 2, 3, 4]
    assert values(store, from_offset=0, latest=True)[0] == (0, 1, b"2")
    assert len(files_below(tmp_path)) == 3


def test_segments_below_a_deletion_go_with_it_whatever_the_policy(store: LogStore) -> None:
    store.alter_topic(TOPIC, {"cleanup.policy": "compact"})
    deleted = store.delete_records(LOG, 3, new_id())
    assert deleted.segments == 1
    assert [segment.base_offset for segment in store.logs(TOPIC)[0].segments] == [2, 4]
    assert values(store) == [(0, 3, b"4"), (0, 4, b"5")]


def test_all_records_can_be_deleted_and_the_offsets_go_on(store: LogStore) -> None:
    assert store.delete_records(LOG, -1, new_id()).log_start_offset == 5
    append_each(store, [("e", "6")])
    assert values(store) == [(0, 5, b"6")]


def test_a_deletion_that_moves_nothing_commits_nothing(store: LogStore) -> None:
    store.delete_records(LOG, 3, new_id())
    before = store.metadata_locations()
    assert store.delete_records(LOG, 3, None).log_start_offset == 3
    assert store.metadata_locations() == before


def test_a_deletion_that_moved_nothing_is_done_too_and_its_run_id_deletes_nothing_later(store: LogStore) -> None:
    store.delete_records(LOG, -1, new_id())
    first = store.delete_records(LOG, -1, "run")
    append_each(store, [("e", "6")])
    again = store.delete_records(LOG, -1, "run")
    assert (first.log_start_offset, first.is_repeated) == (again.log_start_offset, False) == (5, False)
    assert again.is_repeated
    assert values(store) == [(0, 5, b"6")]


@pytest.mark.parametrize("offset", [6, -2])
def test_an_offset_outside_of_the_log_is_refused(store: LogStore, offset: int) -> None:
    store.delete_records(LOG, 1, new_id())
    with pytest.raises(InvalidConfig, match="offsets up to 5, or -1 for all"):
        store.delete_records(LOG, offset, new_id())
    with pytest.raises(UnknownTopic, match="no partition 7"):
        store.delete_records(TopicPartition(TOPIC, 7), 0, new_id())


def test_a_clean_under_way_while_records_are_deleted_is_stale(store: LogStore) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.delete_records(LOG, 1, new_id())
    with pytest.raises(StalePlan, match="log start offset 0, now they are None and 1"):
        store.swap(TOPIC, [outcome], new_id())


def test_a_clean_whose_commit_meets_a_deletion_is_stale_too(store: LogStore, tmp_path: Path) -> None:
    """The deletion comes after the clean has checked the log, and before its commit: no file goes, yet it counts."""
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def after_a_deletion(commit: Callable[[], object]) -> object:
        store.delete_records(LOG, 1, new_id())
        return commit()

    faulty.faults = [after_a_deletion]  # type: ignore[list-item]
    with pytest.raises(StalePlan, match="log start offset"):
        store_over(faulty).swap(TOPIC, [outcome], new_id())
    assert start_and_checkpoint(store) == (1, None)


def test_two_deletions_at_once_leave_the_higher_log_start(store: LogStore, tmp_path: Path) -> None:
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def after_a_higher_one(commit: Callable[[], object]) -> object:
        store.delete_records(LOG, 3, new_id())
        return commit()

    faulty.faults = [after_a_higher_one]  # type: ignore[list-item]
    late = store_over(faulty).delete_records(LOG, 1, new_id())
    assert (late.log_start_offset, late.segments) == (3, 0)
    assert start_and_checkpoint(store) == (3, None)


def test_an_offset_below_the_log_start_deletes_nothing(store: LogStore) -> None:
    store.delete_records(LOG, 3, new_id())
    nothing = store.delete_records(LOG, 0, new_id())
    assert (nothing.log_start_offset, nothing.segments) == (3, 0)
    assert start_and_checkpoint(store) == (3, None)


def test_a_deletion_that_moves_nothing_leaves_an_uncleanable_log_as_it_is(store: LogStore) -> None:
    """Found by the state machine: with nothing dirty left it healed the log, though nothing had been done."""
    store.delete_records(LOG, -1, new_id())
    store.mark_uncleanable(TOPIC, [Failure(LOG, "segment 1 is broken", None)], NOW_MS, Backoff(15_000, 3_600_000))
    store.delete_records(LOG, -1, new_id())
    assert store.logs(TOPIC)[0].uncleanable is not None


def test_a_deletion_whose_run_id_another_process_has_landed_meanwhile_tells_what_that_did(
    store: LogStore, tmp_path: Path
) -> None:
    """It lands between this one's look and its commit, on a log that has grown."""
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def after_the_other(commit: Callable[[], object]) -> object:
        append_each(store, [("e", "6"), ("f", "7")])
        assert not store.delete_records(LOG, -1, "run").is_repeated
        return commit()

    faulty.faults = [after_the_other]  # type: ignore[list-item]
    told = store_over(faulty).delete_records(LOG, -1, "run")
    assert (told.log_start_offset, told.segments, told.is_repeated) == (7, 4, True)


def test_a_deletion_whose_answer_was_lost_is_not_told_as_another_ones(store: LogStore, tmp_path: Path) -> None:
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def without_an_answer(commit: Callable[[], object]) -> object:
        commit()
        raise OSError("no answer")

    faulty.faults = [without_an_answer]  # type: ignore[list-item]
    told = store_over(faulty).delete_records(LOG, -1, "run")
    assert (told.log_start_offset, told.segments, told.is_repeated) == (5, 3, False)


def test_the_same_deletion_again_says_where_the_log_begins(store: LogStore) -> None:
    store.delete_records(LOG, 3, "run")
    assert store.delete_records(LOG, 3, "run").log_start_offset == 3


def test_retention_goes_on_for_an_uncleanable_log_and_heals_it_when_nothing_dirty_is_left(store: LogStore) -> None:
    store.mark_uncleanable(TOPIC, [Failure(LOG, "segment 1 is broken", None)], NOW_MS, Backoff(15_000, 3_600_000))
    store.retain(TOPIC, planned(store), new_id())
    assert store.logs(TOPIC)[0].uncleanable is not None
    store.retain(TOPIC, planned(store, LATER_MS + DAY_MS + 1), new_id())
    assert store.logs(TOPIC)[0].uncleanable is None


def test_a_mark_stays_while_a_log_whose_checkpoint_a_repair_gave_up_has_something_to_clean(
    store: LogStore, tmp_path: Path
) -> None:
    set_properties(tmp_path, {"log.p0.first-dirty-offset": str(GIVEN_UP)})
    store.mark_uncleanable(TOPIC, [Failure(LOG, "segment 1 is broken", GIVEN_UP)], NOW_MS, Backoff(15_000, 3_600_000))
    store.retain(TOPIC, planned(store), new_id())
    assert store.logs(TOPIC)[0].uncleanable is not None
    store.retain(TOPIC, planned(store, LATER_MS + DAY_MS + 1), new_id())
    assert store.logs(TOPIC)[0].uncleanable is None
