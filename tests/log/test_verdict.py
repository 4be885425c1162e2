"""What becomes of one record."""

import pytest

from keptlog.log.record import LARGEST_TIMESTAMP_MS, Record
from keptlog.log.reference import clean_records
from keptlog.log.verdict import CleanBounds, Verdict, verdict

HORIZON_MS = 1000
BOUNDS = CleanBounds(end_offset=100, now_ms=HORIZON_MS, delete_retention_ms=60)


def value(offset: int) -> Record:
    return Record(offset, b"k", b"v", timestamp_ms=0)


def tombstone(offset: int, horizon_ms: int | None = None) -> Record:
    return Record(offset, b"k", None, timestamp_ms=0, delete_horizon_ms=horizon_ms)


def unkeyed(offset: int) -> Record:
    return Record(offset, None, b"v", timestamp_ms=0)


@pytest.mark.parametrize(
    ("record", "latest_offset", "expected"),
    [
        (value(5), 5, Verdict.KEPT),
        (value(5), 4, Verdict.SUPERSEDED),
        (value(5), -1, Verdict.SUPERSEDED),
        (value(5), None, Verdict.KEPT),
        (value(5), 6, Verdict.SUPERSEDED),
        (value(100), 200, Verdict.KEPT),
        (value(99), 200, Verdict.SUPERSEDED),
        (tombstone(5), 5, Verdict.STAMPED),
        (tombstone(5), None, Verdict.STAMPED),
        (tombstone(5), 6, Verdict.SUPERSEDED),
        (tombstone(100), None, Verdict.KEPT),
        (tombstone(5, HORIZON_MS + 1), 5, Verdict.KEPT),
        (tombstone(5, HORIZON_MS), 5, Verdict.EXPIRED),
        (tombstone(5, HORIZON_MS - 1), None, Verdict.EXPIRED),
        (tombstone(5, HORIZON_MS - 1), 6, Verdict.SUPERSEDED),
        (tombstone(100, HORIZON_MS - 1), None, Verdict.KEPT),
        (unkeyed(5), None, Verdict.UNKEYED),
        (unkeyed(100), None, Verdict.KEPT),
    ],
)
def test_the_verdict_on_a_record(record: Record, latest_offset: int | None, expected: Verdict) -> None:
    assert verdict(record, latest_offset, BOUNDS) is expected


def test_an_empty_value_is_a_value() -> None:
    assert verdict(Record(5, b"k", b"", timestamp_ms=0), 5, BOUNDS) is Verdict.KEPT


def test_an_empty_key_is_a_key() -> None:
    assert verdict(Record(5, b"", b"v", timestamp_ms=0), 6, BOUNDS) is Verdict.SUPERSEDED


def test_a_tombstone_is_not_removed_by_the_clean_that_stamps_it_even_without_retention() -> None:
    at_once = CleanBounds(end_offset=100, now_ms=HORIZON_MS, delete_retention_ms=0)
    assert verdict(tombstone(5), 5, at_once) is Verdict.STAMPED
    assert verdict(tombstone(5, at_once.new_delete_horizon_ms), None, at_once) is Verdict.EXPIRED


def test_the_delete_horizon_is_the_time_of_the_clean_plus_the_retention() -> None:
    assert BOUNDS.new_delete_horizon_ms == HORIZON_MS + 60


def test_a_retention_of_never_gives_the_last_time_that_a_table_holds_in_the_rules_as_in_the_specification() -> None:
    never = CleanBounds(end_offset=100, now_ms=HORIZON_MS, delete_retention_ms=2**63 - 1)
    assert never.new_delete_horizon_ms == LARGEST_TIMESTAMP_MS
    [left] = clean_records([], [tombstone(5)], HORIZON_MS, 2**63 - 1)
    assert left.delete_horizon_ms == LARGEST_TIMESTAMP_MS


@pytest.mark.parametrize("each", Verdict)
def test_only_kept_and_stamped_records_remain(each: Verdict) -> None:
    assert each.is_retained is (each in {Verdict.KEPT, Verdict.STAMPED})
