"""Offsets that are marked are found as those that are listed are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.kernels.judged_offsets import MarkedOffsets, are_listed
from keptlog.kernels.offset_map import OffsetMap

_OFFSETS = st.lists(st.integers(1_000, 1_100), max_size=60, unique=True)


def _chunked(offsets: list[int], chunks: int) -> pa.ChunkedArray:
    parts = np.array_split(np.array(sorted(offsets), np.int64), chunks)
    return pa.chunked_array([pa.array(part) for part in parts], pa.int64())


@given(_OFFSETS, _OFFSETS, st.integers(1, 4))
def test_marks_say_of_each_offset_what_a_list_says(mapped: list[int], asked: list[int], chunks: int) -> None:
    numbers = np.array(mapped, np.int64)
    offsets = _chunked(asked, chunks)
    listed = are_listed(offsets, np.sort(numbers))
    assert [offset.as_py() in mapped for offset in offsets] == listed.to_pylist()
    marked = MarkedOffsets.of(numbers)
    assert marked is None or marked.has(offsets).to_pylist() == listed.to_pylist()


def test_offsets_that_lie_close_are_marked_and_others_are_not() -> None:
    assert MarkedOffsets.of(np.array([7, 40, 12], np.int64)) is not None
    assert MarkedOffsets.of(np.array([7, 2**62], np.int64)) is None


def test_of_no_offsets_none_is_found() -> None:
    nothing = MarkedOffsets.of(np.array([], np.int64))
    assert nothing is not None
    assert nothing.has(pa.chunked_array([[0, 7]], pa.int64())).to_pylist() == [False, False]


@pytest.mark.parametrize("last", [9, 2**62])
def test_a_map_finds_its_offsets_however_far_apart_they_lie(last: int) -> None:
    mapped = OffsetMap(pa.table({"key": [b"b", b"a", b"c"], "offset": [last, 5, 7]}))
    asked = pa.chunked_array([[4, 5], [6, 7, last], [last + 1]], pa.int64())
    assert mapped.has_offsets(asked).to_pylist() == [False, True, False, True, True, False]
