"""A copy of a log directory that lacks a segment, or the end of one, does not pass for a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.home import new_id
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.truncate import Truncation
from keptlog.table.store import LogStore
from tests.ingest.directories import (
    records_of,
    run_import,
    some_batch,
    some_records,
    write_first_dirty,
    write_high_watermarks,
    write_log,
)

LACKING = (
    "users-0: offsets 20 to 29 are in no segment, and nothing notes that the broker's cleaner has come there: if a "
    "file is missing or was cut off, its records did not come in, and no later import brings them; compare with the "
    "broker, and read on from a whole copy (keptlog truncate users-0 20)"
)


def write_users(there: Path, bases: Sequence[int], indexes: Sequence[int] = ()) -> None:
    for base in bases:
        write_log(there, "users-0", [some_batch(base)], base_offset=base)
    for base in indexes:
        write_index(there, base)


def write_index(there: Path, base: int, kind: str = "index") -> Path:
    path = there / "users-0" / f"{base:020}.{kind}"
    path.touch()
    return path


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("lost", [0, 20, 40])
def test_a_segment_of_which_only_an_index_is_left_stops_its_log_until_it_is_back(
    store: LogStore, there: Path, lost: int, kind: str
) -> None:
    write_users(there, [base for base in range(0, 50, 10) if base != lost])
    write_index(there, lost, kind)
    write_log(there, "orders-0", [some_batch(0)])
    stopped = run_import(store, there, "1")
    assert list(stopped.failed) == ["users-0"]
    assert isinstance(stopped.failed["users-0"], LogCorrupt)
    assert f"{lost:020}.{kind} lies there without {lost:020}.log" in str(stopped.failed["users-0"])
    assert len(records_of(store, "orders")) == 10
    write_users(there, [lost])
    assert not run_import(store, there, "2").failed
    assert records_of(store, "users") == some_records(0, 50)


def test_what_is_lost_may_be_skipped_and_is_told(store: LogStore, there: Path) -> None:
    write_users(there, [0, 10, 30], [0, 10, 20, 30])
    skipped = run_import(store, there, "1", skip_corrupt=True)
    folder = there / "users-0"
    lone = f"users-0: {folder / f'{20:020}.index'} lies there without {20:020}.log, whose records are missing"
    assert (skipped.failed, skipped.warnings) == ({}, (LACKING, lone))


def test_the_index_of_a_segment_that_a_clean_was_replacing_is_no_loss(store: LogStore, there: Path) -> None:
    write_users(there, [20], [0, 10, 20])
    write_log(there, "users-0", [some_batch(0, 20)]).rename(there / "users-0" / f"{0:020}.log.swap")
    write_index(there, 0, "index.deleted")
    assert run_import(store, there, "1").failed == {}
    assert records_of(store, "users") == some_records(0, 30)


def test_offsets_between_segments_where_no_cleaner_has_come_are_told_once(store: LogStore, there: Path) -> None:
    write_users(there, [0, 10, 30])
    assert run_import(store, there, "1").warnings == (LACKING,)
    write_users(there, [40])
    assert run_import(store, there, "2").warnings == ()


def test_a_truncation_to_where_it_lacked_something_brings_it_in_from_a_whole_copy(store: LogStore, there: Path) -> None:
    write_users(there, [0, 10, 30])
    run_import(store, there, "1")
    write_users(there, [20])
    Truncation(TopicPartition("users", 0), 20, new_id(), new_id).commit(store.committer, store.files)
    assert run_import(store, there, "3").warnings == ()
    assert records_of(store, "users") == some_records(0, 40)


@pytest.mark.parametrize(("first_dirty", "told"), [(30, ()), (20, (LACKING,)), (0, (LACKING,))])
def test_what_the_cleaner_may_have_removed_is_not_told(
    store: LogStore, there: Path, first_dirty: int, told: tuple[str, ...]
) -> None:
    write_users(there, [0, 10, 30])
    write_first_dirty(there, "users", first_dirty)
    assert run_import(store, there, "1").warnings == told


def test_a_log_that_ends_below_what_its_broker_noted_says_so_until_a_copy_has_the_rest(
    store: LogStore, there: Path
) -> None:
    write_users(there, [0, 10])
    write_high_watermarks(there, users=25)
    told = (
        "users-0: it ends at 20, and the broker noted that all replicas have what lies below 25: what lies between is "
        "not in this copy, and comes in with one that has it"
    )
    assert run_import(store, there, "1").warnings == (told,)
    assert run_import(store, there, "2").warnings == (told,)
    write_high_watermarks(there, users=30)
    write_users(there, [20])
    assert run_import(store, there, "3").warnings == ()
    assert records_of(store, "users") == some_records(0, 30)
