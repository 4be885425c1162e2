"""A marker that is lost in what is corrupt or missing may have ended a transaction: what was taken for true is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import scan_log
from keptlog.table.store import LogStore
from tests.ingest.directories import (
    FIRST_MS,
    flipped,
    records_of,
    run_import,
    some_batch,
    some_records,
    write_first_dirty,
    write_log,
)
from tests.sources.kafka_log.encoder import ABORT, COMMIT, BatchOptions, batch, marker

OF_A_TRANSACTION = BatchOptions(producer_id=7, is_transactional=True)


def transaction(offset: int) -> bytes:
    """Five records of one."""
    return some_batch(offset, 5, OF_A_TRANSACTION)


@pytest.mark.parametrize(
    ("lost", "next_marker", "taken_for"), [(COMMIT, ABORT, "aborted"), (ABORT, COMMIT, "committed")]
)
def test_records_whose_marker_is_corrupt_are_decided_by_the_next_one_and_told(
    store: LogStore, there: Path, lost: int, next_marker: int, taken_for: str
) -> None:
    second = [transaction(11), marker(16, 7, next_marker)]
    write_log(there, "t-0", [some_batch(0, 5), transaction(5), flipped(marker(10, 7, lost)), *second])
    assert run_import(store, there, "1", skip_corrupt=True).warnings == (
        "t-0: what is lost from offset 10 on may have ended the transaction that begins at 5: its records are taken "
        f"for {taken_for}, as the next marker of its producer says, at 16; compare with the broker, and read on from a "
        "whole copy (keptlog truncate t-0 5)",
    )
    assert (len(records_of(store, "t")) == 5) == (taken_for == "aborted")
    assert run_import(store, there, "2", skip_corrupt=True).warnings == ()


def test_a_transaction_that_waits_for_its_end_says_that_it_may_be_lost(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0, 5), transaction(5), flipped(marker(10, 7, COMMIT)), some_batch(11)])
    [warning] = run_import(store, there, "1", skip_corrupt=True).warnings
    assert warning.startswith(
        "t-0: a transaction is open from offset 5 on, and what is lost from offset 10 on may have ended it; offsets up "
        "to 20 stay out until a copy"
    )


def test_nothing_is_said_of_producers_that_had_no_transaction_there(store: LogStore, there: Path) -> None:
    first = [transaction(0), marker(5, 7, COMMIT)]
    write_log(there, "t-0", [*first, flipped(some_batch(6)), transaction(16), marker(21, 7, ABORT)])
    assert run_import(store, there, "1", skip_corrupt=True).warnings == ()


def test_a_segment_that_is_missing_may_have_held_a_marker(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [transaction(0)])
    write_log(there, "t-0", [transaction(20), marker(25, 7, ABORT)], base_offset=20)
    told = [line for line in run_import(store, there, "1").warnings if "may have ended the transaction" in line]
    assert ["keptlog truncate t-0 0" in line for line in told] == [True]


def test_a_gap_that_the_cleaner_left_has_lost_no_marker(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [transaction(0)])
    write_log(there, "t-0", [transaction(20), marker(25, 7, ABORT)], base_offset=20)
    write_first_dirty(there, "t", 26)
    assert run_import(store, there, "1").warnings == ()


def came_in_whole(store: LogStore, there: Path) -> None:
    """A transaction, its marker in the segment behind it, and more."""
    write_log(there, "t-0", [some_batch(0, 5), transaction(5)])
    write_log(there, "t-0", [marker(10, 7, COMMIT), some_batch(11)], base_offset=10)
    write_log(there, "t-0", [some_batch(21)], base_offset=21)
    first = run_import(store, there, "1")
    assert (first.failed, first.warnings, store.logs("t")[0].log_end_offset) == ({}, (), 31)


def lose_marker(there: Path, *, is_missing: bool) -> None:
    if is_missing:
        (there / "t-0" / f"{10:020d}.log").unlink()
    else:
        write_log(there, "t-0", [flipped(marker(10, 7, COMMIT)), some_batch(11)], base_offset=10)


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_marker_that_is_lost_in_a_later_copy_opens_no_transaction_that_came_in_before(
    store: LogStore, there: Path, *, is_missing: bool
) -> None:
    """The log stopped as one that was cut off, and the advice was to remove what came in behind the transaction."""
    came_in_whole(store, there)
    lose_marker(there, is_missing=is_missing)
    write_log(there, "t-0", [some_batch(21), some_batch(31)], base_offset=21)
    second = run_import(store, there, "2", skip_corrupt=not is_missing)
    assert (second.failed, second.warnings) == ({}, ())
    assert [each.offset for each in records_of(store, "t")] == [*range(10), *range(11, 41)]


def test_the_next_marker_of_its_producer_decides_nothing_about_it(store: LogStore, there: Path) -> None:
    came_in_whole(store, there)
    lose_marker(there, is_missing=True)
    more = [some_batch(21), some_batch(31), transaction(41), marker(46, 7, ABORT), some_batch(47)]
    write_log(there, "t-0", more, base_offset=21)
    second = run_import(store, there, "2")
    assert (second.failed, second.warnings) == ({}, ())
    assert [each.offset for each in records_of(store, "t")] == [*range(10), *range(11, 41), *range(47, 57)]


def test_a_transaction_that_begins_behind_what_came_in_waits_for_its_end(store: LogStore, there: Path) -> None:
    came_in_whole(store, there)
    lose_marker(there, is_missing=True)
    write_log(there, "t-0", [some_batch(21), some_batch(31), transaction(41)], base_offset=21)
    [warning] = run_import(store, there, "2").warnings
    assert warning.startswith("t-0: a transaction is open from offset 41 on; offsets up to 45 stay out")


def test_a_log_that_was_cut_off_within_a_transaction_is_stopped_still(store: LogStore, there: Path) -> None:
    """Nothing is lost there: it is another log, or an older copy."""
    came_in_whole(store, there)
    for each in (there / "t-0").glob("*.log"):
        each.unlink()
    write_log(there, "t-0", [some_batch(0, 5), transaction(5), some_batch(10)])
    assert "it ends at offset 31 here and at 5 at its source" in str(run_import(store, there, "2").failed["t-0"])


def test_a_log_that_stopped_inside_of_a_transaction_and_lost_its_marker_then_waits_and_is_not_cut_off(
    store: LogStore, there: Path
) -> None:
    """It stopped at a record that no table can hold, and the advice was to remove what lies before that here."""
    records = some_records(5, 5)
    records[2] = replace(records[2], timestamp_ms=FIRST_MS * 10**6)
    odd = batch(records, OF_A_TRANSACTION)
    write_log(there, "t-0", [some_batch(0, 5), odd, marker(10, 7, COMMIT), some_batch(11)])
    assert "the record at offset 7" in str(run_import(store, there, "1").failed["t-0"])
    assert store.source_of("t").positions == (7,)

    write_log(there, "t-0", [some_batch(0, 5), odd, flipped(marker(10, 7, COMMIT)), some_batch(11)])
    second = run_import(store, there, "2", skip_corrupt=True)
    assert second.failed == {}
    [warning] = second.warnings
    assert warning.startswith("t-0: a transaction is open from offset 7 on, and what is lost from offset 10 on may")
    assert store.source_of("t").positions == (7,)

    write_log(there, "t-0", [some_batch(0, 5), odd, marker(10, 7, COMMIT), some_batch(11)])
    assert run_import(store, there, "3", skip_corrupt=True).failed == {}
    assert [each.offset for each in records_of(store, "t")] == [0, 1, 2, 3, 4, 5, 6, 8, 9, *range(11, 21)]


def test_a_batch_that_the_position_lies_in_is_of_no_transaction_whose_marker_was_lost_before_it(there: Path) -> None:
    lost = [transaction(0), flipped(marker(5, 7, COMMIT)), some_batch(6, 2)]
    write_log(there, "t-0", [*lost, transaction(8), some_batch(13, 2), marker(15, 7, ABORT)])
    scan = scan_log(segments_to_read(there / "t-0"), position=10, skip_corrupt=True)
    assert [(each.first_offset, each.marker_offset) for each in scan.aborted] == [(8, 15)]
