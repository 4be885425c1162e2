"""The executable specification itself, on histories small enough to be checked by eye."""

import pytest

from keptlog.log.record import Record
from keptlog.log.reference import ReferenceConfig, ReferenceLog, clean_records, latest_values

A, B, C = b"a", b"b", b"c"


def record(key: bytes | None, value: bytes | None, time_ms: int = 0) -> Record:
    return Record(-1, key, value, timestamp_ms=time_ms)


def shown(log: ReferenceLog) -> str:
    """``0:a=1 2:b! 3:c!60``: offset, key, value; ``!`` is a tombstone, the number behind it its delete horizon."""
    parts = []
    for each in log.records:
        key = each.key.decode() if each.key is not None else "-"
        horizon = "" if each.delete_horizon_ms is None else str(each.delete_horizon_ms)
        parts.append(f"{each.offset}:{key}" + (f"!{horizon}" if each.value is None else f"={each.value.decode()}"))
    return " ".join(parts)


@pytest.fixture
def log() -> ReferenceLog:
    """A log whose batches are closed one millisecond after their first timestamp."""
    return ReferenceLog(ReferenceConfig(segment_ms=1, delete_retention_ms=50))


def test_appending_gives_the_next_offsets(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, b"1")])
    log.append([])
    log.append([record(A, b"2")])
    assert shown(log) == "0:a=1 1:b=1 2:a=2"
    assert (log.first_dirty_offset, log.log_end_offset) == (0, 3)


def test_ingesting_keeps_the_offsets_of_the_source(log: ReferenceLog) -> None:
    log.ingest([Record(40, A, b"1", 0), Record(42, B, b"1", 0), Record(47, A, b"2", 0)], end_offset=50)
    log.ingest([], end_offset=55)
    assert (shown(log), log.log_end_offset) == ("40:a=1 42:b=1 47:a=2", 55)
    assert log.clean(now_ms=10)
    assert shown(log) == "42:b=1 47:a=2"
    assert (log.first_dirty_offset, log.log_end_offset) == (55, 55)


def test_a_clean_keeps_the_latest_record_of_every_key_at_its_offset(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, b"1"), record(A, b"2"), record(C, b"1"), record(B, b"2")])
    assert log.clean(now_ms=10)
    assert shown(log) == "2:a=2 3:c=1 4:b=2"
    assert (log.first_dirty_offset, log.log_end_offset) == (5, 5)


def test_a_second_clean_finds_nothing(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(A, None)])
    assert log.clean(now_ms=10)
    before = shown(log)
    assert not log.clean(now_ms=1000)
    assert shown(log) == before


def test_a_clean_drops_what_it_supersedes_in_the_clean_section(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, b"1")])
    log.clean(now_ms=10)
    log.append([record(A, b"2", time_ms=20)])
    log.clean(now_ms=30)
    assert shown(log) == "1:b=1 2:a=2"


def test_a_tombstone_is_stamped_by_its_first_clean_and_removed_by_one_at_its_horizon(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, b"1"), record(A, None)])
    assert log.clean(now_ms=10)
    assert shown(log) == "1:b=1 2:a!60"
    log.append([record(C, b"1", time_ms=20)])
    log.clean(now_ms=59)
    assert shown(log) == "1:b=1 2:a!60 3:c=1"
    log.append([record(C, b"2", time_ms=58)])
    log.clean(now_ms=60)
    assert shown(log) == "1:b=1 4:c=2"


def test_a_tombstone_needs_two_passes_even_without_retention() -> None:
    log = ReferenceLog(ReferenceConfig(segment_ms=1, delete_retention_ms=0))
    log.append([record(A, None)])
    log.clean(now_ms=10)
    assert shown(log) == "0:a!10"
    assert log.expire(now_ms=10)
    assert shown(log) == ""
    assert log.log_end_offset == 1


def test_a_horizon_is_not_moved_by_later_cleans_or_settings(log: ReferenceLog) -> None:
    log.append([record(A, None)])
    log.clean(now_ms=10)
    log.config = ReferenceConfig(segment_ms=1, delete_retention_ms=9999)
    log.append([record(B, b"1", time_ms=20)])
    log.clean(now_ms=40)
    assert shown(log) == "0:a!60 1:b=1"


def test_a_tombstone_that_is_superseded_goes_at_once(log: ReferenceLog) -> None:
    log.append([record(A, None)])
    log.clean(now_ms=10)
    log.append([record(A, b"2", time_ms=20)])
    log.clean(now_ms=30)
    assert shown(log) == "1:a=2"


def test_a_second_deletion_starts_a_horizon_of_its_own(log: ReferenceLog) -> None:
    log.append([record(A, None)])
    log.clean(now_ms=10)
    log.append([record(A, None, time_ms=20)])
    log.clean(now_ms=30)
    assert shown(log) == "1:a!80"


def test_expiry_touches_neither_values_nor_unstamped_tombstones(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, None)])
    log.clean(now_ms=10)
    log.append([record(C, None, time_ms=11)])
    assert not log.expire(now_ms=59)
    assert log.expire(now_ms=60)
    assert shown(log) == "0:a=1 2:c!"
    assert not log.expire(now_ms=10**9)


def test_an_unkeyed_record_is_removed_when_it_is_cleaned(log: ReferenceLog) -> None:
    log.append([record(None, b"x"), record(A, b"1")])
    log.clean(now_ms=10)
    assert shown(log) == "1:a=1"


def test_the_active_run_is_not_cleaned(log: ReferenceLog) -> None:
    log.append([record(A, b"1", time_ms=0)])
    log.append([record(A, b"2", time_ms=1)])
    log.append([record(A, b"3", time_ms=2)])
    assert log.cleanable_batches(now_ms=2) == 2
    log.clean(now_ms=2)
    assert shown(log) == "1:a=2 2:a=3"
    assert log.first_dirty_offset == 2


def test_the_clock_closes_the_active_run(log: ReferenceLog) -> None:
    log.append([record(A, b"1", time_ms=10)])
    assert log.cleanable_batches(now_ms=11) == 0
    assert log.cleanable_batches(now_ms=12) == 1


def test_a_batch_younger_than_the_minimum_lag_waits_and_so_does_what_follows() -> None:
    log = ReferenceLog(ReferenceConfig(segment_ms=1, min_compaction_lag_ms=100))
    log.append([record(A, b"1", time_ms=0)])
    log.append([record(A, b"2", time_ms=500)])
    log.append([record(A, b"3", time_ms=0)])
    assert log.cleanable_batches(now_ms=599) == 1
    log.clean(now_ms=599)
    assert shown(log) == "0:a=1 1:a=2 2:a=3"
    assert log.cleanable_batches(now_ms=600) == 2


def test_cleaning_in_two_steps_gives_the_same_log_as_cleaning_at_once() -> None:
    first = [Record(0, A, b"1", 0), Record(1, B, b"1", 0), Record(2, A, None, 0)]
    second = [Record(3, B, None, 0), Record(4, C, b"1", 0), Record(5, C, b"2", 0)]
    in_two = clean_records(clean_records([], first, 10, 50), second, 10, 50)
    assert in_two == clean_records([], first + second, 10, 50)


def test_the_latest_values_are_the_same_before_and_after_a_clean(log: ReferenceLog) -> None:
    log.append([record(A, b"1"), record(B, b"1"), record(A, b"2"), record(B, None), record(C, b""), record(None, b"x")])
    expected = {A: b"2", C: b""}
    assert latest_values(log.records) == expected
    log.clean(now_ms=10)
    assert latest_values(log.records) == expected
    log.expire(now_ms=60)
    assert latest_values(log.records) == expected
