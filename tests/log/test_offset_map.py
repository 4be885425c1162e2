"""How many keys a pass maps, and where it ends."""

import pytest

from keptlog.log.offset_map import MapRange, end_of_full_map, end_of_mapping, keys_in, slot_bytes_for, slots_in
from keptlog.log.record import Record
from keptlog.log.strategy import Strategy, StrategyKind


def test_a_map_has_a_slot_for_each_24_bytes_and_fills_to_its_load_factor() -> None:
    assert slots_in(134_217_728) == 5_592_405
    assert keys_in(5_592_405, 0.9) == 5_033_164
    assert keys_in(4, 0.75) == 3


def test_a_key_with_a_version_takes_8_bytes_more() -> None:
    assert slot_bytes_for(Strategy()) == 24
    assert slot_bytes_for(Strategy(StrategyKind.TIMESTAMP)) == 32


def test_no_map_is_larger_than_two_gibibytes() -> None:
    assert slots_in(2**40) == (2**31 - 1) // 24
    assert slots_in(2**40, 32) == 2**31 // 32 - 1


def end(keys: str, max_keys: int, *, bases: list[int] | None = None, first: int = 0, until: int | None = None) -> int:
    """Where the pass ends; ``keys`` has one letter an offset, ``-`` for no key and a blank for a gap."""
    records = [
        Record(offset, None if key == "-" else key.encode(), b"", 0) for offset, key in enumerate(keys) if key != " "
    ]
    return end_of_mapping(MapRange(first, len(keys) if until is None else until, max_keys), records, bases or [0])


@pytest.mark.parametrize(
    ("keys", "max_keys", "expected"),
    [
        ("abc", 3, 3),
        ("abc", 2, 2),
        ("ab", 2, 2),
        ("aaaab", 1, 1),
        ("aba", 2, 2),
        ("", 1, 0),
    ],
)
def test_the_pass_ends_at_the_record_that_the_full_map_meets_though_it_has_its_key(
    keys: str, max_keys: int, expected: int
) -> None:
    assert end(keys, max_keys) == expected


def test_a_record_without_a_key_takes_no_room_and_ends_nothing() -> None:
    assert end("-a-b", 1) == 3
    assert end("-a--", 1) == 4


def test_a_gap_before_the_record_that_ends_the_pass_is_not_crossed() -> None:
    assert end("a  b", 1) == 1


def test_a_segment_that_was_mapped_whole_carries_the_end_to_the_next_one() -> None:
    assert end("a  b", 1, bases=[0, 3]) == 3
    assert end("a  b c", 2, bases=[0, 3]) == 4
    assert end("a  -b", 1, bases=[0, 3]) == 4


def test_what_is_clean_or_not_cleanable_takes_no_room() -> None:
    assert end("abcab", 2, first=3) == 5
    assert end("abcd", 2, first=1, until=3) == 3
    assert end("a    b", 1, until=5) == 5
    assert end("a    b", 1, until=3) == 3


def test_the_end_of_a_full_map_lies_in_the_segment_of_the_record_that_ended_it() -> None:
    assert end_of_full_map(4, 5, [0, 10]) == 5
    assert end_of_full_map(4, 10, [0, 10, 20]) == 10
    assert end_of_full_map(12, 15, [0, 10, 20]) == 13
