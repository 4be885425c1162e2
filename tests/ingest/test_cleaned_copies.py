"""A newer copy of a log directory that its broker has cleaned meanwhile: what is gone there is not missed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from keptlog.table.store import LogStore
from tests.ingest.directories import (
    records_of,
    run_import,
    some_batch,
    write_first_dirty,
    write_high_watermarks,
    write_log,
)


@pytest.mark.parametrize(
    ("first_dirty", "stops"), [(None, True), (15, True), (10, False)], ids=["not noted", "beyond", "up to the position"]
)
def test_a_newer_copy_that_was_cleaned_beyond_the_position_stops_if_it_is_too_new(
    store: LogStore, there: Path, first_dirty: int | None, stops: bool
) -> None:
    """The first copy is two days old; how long its broker keeps tombstones no directory says."""
    file = write_log(there, "t-0", [some_batch(0)])
    two_days_ago = time.time() - 2 * 86_400
    os.utime(file, (two_days_ago, two_days_ago))
    assert run_import(store, there, "1").warnings == ()
    write_log(there, "t-0", [some_batch(0), some_batch(12, 8)])
    if first_dirty is not None:
        write_first_dirty(there, "t", first_dirty)
    result = run_import(store, there, "2")
    assert [*result.failed] == (["t-0"] if stops else [])
    told = "delete.retention.ms=86400000, as it is here and may be at its source"
    assert [told in str(error) for error in result.failed.values()] == [True] * stops
    assert len(records_of(store, "t")) == (10 if stops else 18)
    reconciled = run_import(store, there, "3", reconcile=True)
    assert [each.reconciled for each in reconciled.committed] == [0] * stops


def test_a_copy_ends_as_of_the_time_of_its_last_segment_and_not_of_one_that_was_copied_later(
    store: LogStore, there: Path
) -> None:
    """A copy takes long, and in any order: what was written behind the end meanwhile is of the time between."""
    earlier = write_log(there, "t-0", [some_batch(0)])
    last = write_log(there, "t-0", [some_batch(10)], base_offset=10)
    two_days_ago, just_now = time.time() - 2 * 86_400, time.time()
    os.utime(last, (two_days_ago, two_days_ago))
    os.utime(earlier, (just_now, just_now))
    assert not run_import(store, there, "1").failed
    assert store.source_of("t").as_of_ms == {0: last.stat().st_mtime_ns // 1_000_000}
    write_log(there, "t-0", [some_batch(10), some_batch(22, 8)], base_offset=10)
    assert [*run_import(store, there, "2").failed] == ["t-0"]


def test_an_old_copy_in_which_nothing_is_new_does_not_make_the_position_older(store: LogStore, there: Path) -> None:
    file = write_log(there, "t-0", [some_batch(0)])
    assert not run_import(store, there, "1").failed
    known = store.source_of("t").as_of_ms
    assert known == {0: file.stat().st_mtime_ns // 1_000_000}
    two_days_ago = time.time() - 2 * 86_400
    os.utime(file, (two_days_ago, two_days_ago))
    assert not run_import(store, there, "2").failed
    assert store.source_of("t").as_of_ms == known
    write_log(there, "t-0", [some_batch(0), some_batch(12, 8)])
    assert not run_import(store, there, "3").failed


def test_a_copy_with_the_time_of_copying_is_put_right_by_comparing_with_one_that_kept_its_times(
    store: LogStore, there: Path
) -> None:
    """The false time stayed, and the next import went on over deletions that it could not see."""
    file = write_log(there, "t-0", [some_batch(0)])
    assert not run_import(store, there, "1").failed
    two_days_ago = time.time() - 2 * 86_400
    os.utime(file, (two_days_ago, two_days_ago))
    assert not run_import(store, there, "2", reconcile=True).failed
    assert store.source_of("t").as_of_ms == {0: file.stat().st_mtime_ns // 1_000_000}
    write_log(there, "t-0", [some_batch(0), some_batch(12, 8)])
    assert [*run_import(store, there, "3").failed] == ["t-0"]


def test_what_ends_at_its_high_watermark_does_so_as_of_when_that_was_noted(store: LogStore, there: Path) -> None:
    """The note is copied long before the segments: a cleaner can have come beyond it in between."""
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    write_high_watermarks(there, t=10)
    two_days_ago = time.time() - 2 * 86_400
    os.utime(there / "replication-offset-checkpoint", (two_days_ago, two_days_ago))
    assert not run_import(store, there, "1").failed
    assert store.source_of("t").as_of_ms == {0: int(two_days_ago * 1000)}
    write_high_watermarks(there, t=30)
    write_log(there, "t-0", [some_batch(0), some_batch(12, 8)])
    assert [*run_import(store, there, "2").failed] == ["t-0"]
