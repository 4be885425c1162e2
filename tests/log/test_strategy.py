"""Which record of a key is the latest."""

from __future__ import annotations

import struct

import pytest

from keptlog.log.record import Header, Record
from keptlog.log.strategy import Strategy, StrategyKind, version_in

BY_OFFSET = Strategy()
BY_TIMESTAMP = Strategy(StrategyKind.TIMESTAMP)
BY_HEADER = Strategy(StrategyKind.HEADER, "version")


def record(offset: int, *headers: Header, time_ms: int = 0) -> Record:
    return Record(offset, b"k", b"v", time_ms, headers=headers)


def version(number: int, name: str = "version") -> Header:
    return name, struct.pack(">q", number)


def latest(strategy: Strategy, *records: Record) -> int:
    """The offset of the latest of these records."""
    return max(records, key=strategy.order_of).offset


def test_by_offset_the_last_one_is_the_latest() -> None:
    assert latest(BY_OFFSET, record(0, version(9), time_ms=9), record(1, version(1), time_ms=1)) == 1


def test_by_timestamp_the_highest_is_the_latest_and_the_later_of_two_equal_ones() -> None:
    assert latest(BY_TIMESTAMP, record(0, time_ms=5), record(1, time_ms=5), record(2, time_ms=4)) == 1


def test_a_record_without_a_timestamp_is_older_than_any_with_one() -> None:
    assert latest(BY_TIMESTAMP, record(0, time_ms=0), record(1, time_ms=-1)) == 0


def test_by_header_the_highest_version_is_the_latest_and_the_later_of_two_equal_ones() -> None:
    assert latest(BY_HEADER, record(0, version(7)), record(1, version(7)), record(2, version(6))) == 1


def test_versions_are_signed() -> None:
    assert latest(BY_HEADER, record(0, version(0)), record(1, version(-1))) == 0
    assert latest(BY_HEADER, record(0, version(-1)), record(1)) == 0
    assert latest(BY_HEADER, record(0, version(1)), record(1, version(0))) == 0


def test_a_record_with_a_version_is_later_than_any_without_one() -> None:
    assert latest(BY_HEADER, record(0, version(-(2**63))), record(1)) == 0
    assert latest(BY_HEADER, record(0), record(1)) == 1


def test_of_a_header_that_occurs_twice_the_last_one_counts() -> None:
    assert BY_HEADER.version_of(record(0, version(9), version(4))) == 4
    assert BY_HEADER.version_of(record(0, version(9), ("version", b"short"))) is None


def test_the_name_of_the_header_is_compared_as_it_is_written() -> None:
    assert BY_HEADER.version_of(record(0, version(9, "Version"), version(8, " version"))) is None
    assert BY_HEADER.version_of(record(0, version(9, "versions"))) is None


@pytest.mark.parametrize("value", [None, b"", b"1234567", b"123456789"])
def test_what_is_no_long_is_no_version_and_is_noticed(value: bytes | None) -> None:
    assert version_in(value) is None
    assert BY_HEADER.is_malformed(record(0, ("version", value)))


def test_only_a_header_that_is_there_can_be_malformed() -> None:
    assert not BY_HEADER.is_malformed(record(0))
    assert not BY_HEADER.is_malformed(record(0, ("a", b"?"), ("z", b"?")))
    assert not BY_HEADER.is_malformed(record(0, ("version", b"?"), version(1)))
    assert not BY_TIMESTAMP.is_malformed(record(0, ("version", b"?")))


def test_a_version_is_a_big_endian_long() -> None:
    assert version_in(b"\0\0\0\0\0\0\1\2") == 258
    assert version_in(b"\xff" * 8) == -1


def test_a_strategy_is_written_as_it_is_configured() -> None:
    assert [str(each) for each in (BY_OFFSET, BY_TIMESTAMP, BY_HEADER)] == ["offset", "timestamp", "header:version"]
    assert [each.has_versions for each in (BY_OFFSET, BY_TIMESTAMP, BY_HEADER)] == [False, True, True]
