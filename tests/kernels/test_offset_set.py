"""A set of offsets finds them and counts them, whether they are marked or listed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.kernels.offset_map import OffsetMap
from keptlog.kernels.offset_set import ListedOffsets, MarkedOffsets, set_of

_OFFSETS = st.lists(st.integers(1_000, 1_100), max_size=60, unique=True)


def _chunked(offsets: list[int], chunks: int) -> pa.ChunkedArray:
    parts = np.array_split(np.array(sorted(offsets), np.int64), chunks)
    return pa.chunked_array([pa.array(part) for part in parts], pa.int64())


@given(_OFFSETS, _OFFSETS, st.integers(1, 4))
def test_both_forms_say_of_each_offset_whether_it_is_there(there: list[int], asked: list[int], chunks: int) -> None:
    numbers, offsets = np.array(there, np.int64), _chunked(asked, chunks)
    for either in (set_of(numbers), ListedOffsets(np.sort(numbers))):
        assert either.has(offsets).to_pylist() == [offset.as_py() in there for offset in offsets]


@given(_OFFSETS, st.tuples(st.integers(900, 1_200), st.integers(900, 1_200)).map(sorted))
def test_both_forms_count_what_lies_in_a_range(there: list[int], ends: list[int]) -> None:
    numbers, (first, last) = np.array(there, np.int64), ends
    for either in (set_of(numbers), ListedOffsets(np.sort(numbers))):
        assert either.count_between(first, last) == sum(first <= offset <= last for offset in there)


def test_offsets_that_lie_close_are_marked_and_others_are_listed() -> None:
    assert isinstance(set_of(np.array([7, 40, 12], np.int64)), MarkedOffsets)
    assert isinstance(set_of(np.array([7, 2**62], np.int64)), ListedOffsets)


def test_in_no_offsets_none_is_found() -> None:
    nothing = set_of(np.array([], np.int64))
    assert nothing.has(pa.chunked_array([[0, 7]], pa.int64())).to_pylist() == [False, False]
    assert nothing.count_between(0, 7) == 0


@pytest.mark.parametrize("last", [9, 2**62])
def test_a_map_finds_its_offsets_however_far_apart_they_lie(last: int) -> None:
    mapped = OffsetMap(pa.table({"key": [b"b", b"a", b"c"], "offset": [last, 5, 7]}))
    asked = pa.chunked_array([[4, 5], [6, 7, last], [last + 1]], pa.int64())
    assert mapped.has_offsets(asked).to_pylist() == [False, True, False, True, True, False]
    assert mapped.winners_between(6, last) == 2
