"""A segment that a copy lacks may hold anything: no key is deleted here because of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.ingest.result import IngestResult
from keptlog.log.record import Record
from keptlog.table.store import LogStore
from tests.ingest.directories import FIRST_MS, records_of, run_import, write_first_dirty, write_log
from tests.sources.kafka_log.encoder import batch

SEGMENTS = {0: ["ada", "bob"], 2: ["cat", "dan"], 4: ["eve"]}


def write_segments(there: Path) -> dict[int, Path]:
    return {base: write_segment(there, base, *keys) for base, keys in SEGMENTS.items()}


def write_segment(there: Path, base: int, *keys: str) -> Path:
    records = [Record(at, key.encode(), b"1", FIRST_MS) for at, key in enumerate(keys, start=base)]
    return write_log(there, "t-0", [batch(records)], base_offset=base)


def reconciled(store: LogStore, there: Path) -> IngestResult:
    return run_import(store, there, "2", skip_corrupt=True, reconcile=True)


def require_refused(store: LogStore, result: IngestResult, why: str) -> None:
    [(name, error)] = result.failed.items()
    assert (name, type(error)) == ("t-0", LogCorrupt)
    assert why in str(error)
    assert str(error).endswith("nothing is deleted here: restore the file, or go on without (--skip-lost)")
    assert [record.offset for record in records_of(store, "t")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("first_dirty", [None, 2])
def test_keys_in_a_segment_that_is_missing_where_no_cleaner_has_come_are_not_gone(
    store: LogStore, there: Path, first_dirty: int | None
) -> None:
    files = write_segments(there)
    run_import(store, there, "1")
    files[2].unlink()
    write_log(there, "t-0", [batch([Record(9, b"fay", b"1", FIRST_MS)])], base_offset=5)
    if first_dirty is not None:
        write_first_dirty(there, "t", first_dirty)
    require_refused(store, reconciled(store, there), "t-0: offsets 2 to 3 are in no segment")


def test_a_key_whose_newer_record_may_lie_in_a_missing_segment_is_not_gone(store: LogStore, there: Path) -> None:
    files = write_segments(there)
    run_import(store, there, "1")
    files[0].unlink()
    write_segment(there, 0, "bob")
    write_segment(there, 8, "fay")
    require_refused(store, reconciled(store, there), "t-0: offsets 1 to 1 are in no segment")


def test_what_a_lone_index_says_to_be_missing_counts_also_where_the_cleaner_has_been(
    store: LogStore, there: Path
) -> None:
    files = write_segments(there)
    run_import(store, there, "1")
    files[2].unlink()
    files[2].with_suffix(".index").touch()
    write_log(there, "t-0", [batch([Record(9, b"fay", b"1", FIRST_MS)])], base_offset=5)
    write_first_dirty(there, "t", 5)
    require_refused(store, reconciled(store, there), f"{files[2].with_suffix('.index')} lies there without")


def test_offsets_that_the_cleaner_may_have_taken_are_gone(store: LogStore, there: Path) -> None:
    files = write_segments(there)
    run_import(store, there, "1")
    files[2].unlink()
    write_log(there, "t-0", [batch([Record(9, b"fay", b"1", FIRST_MS)])], base_offset=5)
    write_first_dirty(there, "t", 5)
    result = reconciled(store, there)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [2]


def test_a_gap_stops_nothing_where_nothing_is_gone(store: LogStore, there: Path) -> None:
    write_segments(there)
    run_import(store, there, "1")
    write_segment(there, 8, "fay")
    result = reconciled(store, there)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [0]
