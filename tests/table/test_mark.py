"""What is remembered of a clean beside its files: that it failed, or what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff, Uncleanable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    clean,
    create,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
    store_over,
)

BACKOFF = Backoff(1000, 3000)
LOG = TopicPartition(TOPIC, 0)
LAST_PASS = LastPass(NOW_MS, 70, 1000, 200, 5, 100)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, partitions=2)
    append_each(store, [("a", "1"), ("a", "2")])
    return store


def mark(store: LogStore, reason: str = "no reason", now_ms: int = NOW_MS, checkpoint: int | None = None) -> None:
    store.mark_uncleanable(TOPIC, [Failure(LOG, reason, checkpoint)], now_ms, BACKOFF)


def test_a_mark_outlives_a_restart_and_makes_no_snapshot(store: LogStore, tmp_path: Path) -> None:
    before = store.describe_topic(TOPIC).snapshot_id
    mark(store, "segment is broken")
    marked, other = store_at(tmp_path).logs(TOPIC)
    assert marked.uncleanable == Uncleanable("segment is broken", NOW_MS, 1, NOW_MS + 1000, wait_ms=1000)
    assert other.uncleanable is None
    assert store.describe_topic(TOPIC).snapshot_id == before


def test_each_failure_doubles_the_wait_and_keeps_the_beginning(store: LogStore) -> None:
    for number in range(4):
        mark(store, f"reason {number}", NOW_MS + number)
    assert store.logs(TOPIC)[0].uncleanable == Uncleanable("reason 3", NOW_MS, 4, NOW_MS + 3 + 3000, wait_ms=3000)


@pytest.mark.parametrize("was_cleaned", [True, False])
def test_a_log_that_a_clock_far_ahead_has_tried_is_marked_for_a_clean_that_died_since(
    store: LogStore, was_cleaned: bool
) -> None:
    """It counted as tried since, until all other clocks had come as far, and each run that died was followed by one."""
    ahead_ms = NOW_MS + 100 * BACKOFF.longest_ms
    if was_cleaned:
        outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
        store.swap(TOPIC, [outcome], new_id(), {LOG: replace(LAST_PASS, ended_ms=ahead_ms)})
    else:
        mark(store, now_ms=ahead_ms)
    checkpoint = store.logs(TOPIC)[0].checkpoint
    died = Failure(LOG, "run 7 died", checkpoint, began_ms=NOW_MS - 1)

    store.mark_uncleanable(TOPIC, [died], NOW_MS, BACKOFF)

    marked = store.logs(TOPIC)[0].uncleanable
    assert marked
    assert (marked.reason, marked.failed_ms) == ("run 7 died", NOW_MS)


def test_a_clean_that_lands_clears_the_mark(store: LogStore) -> None:
    mark(store)
    clean(store)
    assert store.logs(TOPIC)[0].uncleanable is None


def test_a_log_that_was_cleaned_meanwhile_is_not_marked(store: LogStore) -> None:
    clean(store)
    mark(store, checkpoint=None)
    assert store.logs(TOPIC)[0].uncleanable is None


def test_a_mark_whose_commit_meets_a_clean_is_not_set(store: LogStore, tmp_path: Path) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def after_a_clean(commit: Callable[[], object]) -> object:
        store.swap(TOPIC, [outcome], new_id())
        return commit()

    faulty.faults = [after_a_clean]  # type: ignore[list-item]
    mark(store_over(faulty))
    assert store.logs(TOPIC)[0].uncleanable is None


def test_a_mark_that_is_set_while_a_clean_commits_is_cleared_by_it(store: LogStore, tmp_path: Path) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def after_a_mark(commit: Callable[[], object]) -> object:
        mark(store)
        return commit()

    faulty.faults = [after_a_mark]  # type: ignore[list-item]
    store_over(faulty).swap(TOPIC, [outcome], new_id())
    assert store.logs(TOPIC)[0].uncleanable is None


def test_a_mark_disturbs_neither_settings_nor_other_logs_nor_a_clean_under_way(store: LogStore) -> None:
    store.append(TOPIC, new_records(("a", "1"), ("a", "2"), partition=1), new_id(), NOW_MS)
    outcome = rewritten(store, step_for(store.logs(TOPIC)[1]))
    store.alter_topic(TOPIC, {"delete.retention.ms": "7"})
    mark(store)
    store.swap(TOPIC, [outcome], new_id())
    first, second = store.logs(TOPIC)
    assert (first.uncleanable is None, second.checkpoint) == (False, 2)
    assert store.describe_topic(TOPIC).raw_config["delete.retention.ms"] == "7"


def test_a_topic_or_a_partition_that_is_gone_is_not_marked(store: LogStore) -> None:
    store.mark_uncleanable(TOPIC, [Failure(TopicPartition(TOPIC, 9), "x", None)], NOW_MS, BACKOFF)
    with pytest.raises(UnknownTopic):
        store.mark_uncleanable("gone", [Failure(TopicPartition("gone", 0), "x", None)], NOW_MS, BACKOFF)


def test_what_a_clean_cost_is_stored_with_it(store: LogStore, tmp_path: Path) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.swap(TOPIC, [outcome], new_id(), {LOG: LAST_PASS})
    assert store_at(tmp_path).observe(TOPIC).last_passes == {LOG: LAST_PASS}


def test_marks_and_numbers_that_nobody_can_read_are_named(store: LogStore) -> None:
    store.load_table(TOPIC).transaction().set_properties({"log.p0.last-pass": "[1"}).commit_transaction()
    with pytest.raises(LogCorrupt, match="last-pass"):
        store.observe(TOPIC)
    store.load_table(TOPIC).transaction().set_properties({"log.p0.uncleanable": "yes"}).commit_transaction()
    with pytest.raises(LogCorrupt, match="uncleanable"):
        store.logs(TOPIC)
