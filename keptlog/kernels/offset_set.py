"""A set of offsets that records are looked up in, chunk by chunk: marks where they lie close together, else a list.

    offsets        14  10  11
    as marks       10  11  12  13  14      one for each that lies between the first and the last of them
                    x   x           x
    as a list      10  11  14              sorted

To ask a mark is to look at its place: nothing is sorted, and nothing searched. Where few of the offsets between first
and last are there, marks would take much memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MARKS_AN_OFFSET = 16
"""So many bytes of marks are worth an offset, which takes eight where it is listed."""


class OffsetSet(Protocol):
    """Offsets of records, each once."""

    def has(self, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each of these offsets (int64, no nulls) whether it is in the set. Each chunk rises."""
        ...

    def count_between(self, first: int, last: int) -> int:
        """How many of the set lie in this range, both ends included."""
        ...


def set_of(offsets: npt.NDArray[np.int64]) -> OffsetSet:
    """The set of these offsets, in any order, each once."""
    first, last = (int(offsets.min()), int(offsets.max())) if len(offsets) else (0, -1)
    if last - first >= _MARKS_AN_OFFSET * len(offsets) > 0:
        return ListedOffsets(np.sort(offsets))
    marks = np.zeros(last - first + 1, dtype=bool)
    marks[offsets - first] = True
    return MarkedOffsets(first, marks)


@dataclass(frozen=True, slots=True)
class MarkedOffsets:
    """A mark for each offset from the first one on."""

    first: int
    marks: npt.NDArray[np.bool_]

    def has(self, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """As ``OffsetSet`` says."""
        chunks = []
        for chunk in offsets.chunks:
            numbers = chunk.to_numpy()
            begin, end = np.searchsorted(numbers, [self.first, self.first + len(self.marks)])
            is_marked = np.zeros(len(numbers), dtype=bool)
            is_marked[begin:end] = self.marks[numbers[begin:end] - self.first]
            chunks.append(pa.array(is_marked))
        return pa.chunked_array(chunks, pa.bool_())

    def count_between(self, first: int, last: int) -> int:
        """As ``OffsetSet`` says."""
        begin, end = max(first - self.first, 0), max(last - self.first + 1, 0)
        return int(np.count_nonzero(self.marks[begin:end]))


@dataclass(frozen=True, slots=True)
class ListedOffsets:
    """Offsets that rise.

    They are looked up among the chunk's, and not the other way round: a tenth of the time of a hash table, and hardly
    any memory, for each chunk is looked at where it lies.

        numbers   10  11  14  15       the chunk
        between   11  13               the part of the list that lies within it; 13 was cleaned away
        rows       1   2               where each would stand among the numbers; at 2 stands 14, which is not 13
    """

    listed: npt.NDArray[np.int64]

    def has(self, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """As ``OffsetSet`` says."""
        chunks = []
        for chunk in offsets.chunks:
            numbers = chunk.to_numpy()
            is_listed = np.zeros(len(numbers), dtype=bool)
            if len(numbers):
                end = np.searchsorted(self.listed, numbers[-1], side="right")
                between = self.listed[np.searchsorted(self.listed, numbers[0]) : end]
                # Nothing in ``between`` is above the last number, so every row is one of the chunk's.
                rows = np.searchsorted(numbers, between)
                is_listed[rows[numbers[rows] == between]] = True
            chunks.append(pa.array(is_listed))
        return pa.chunked_array(chunks, pa.bool_())

    def count_between(self, first: int, last: int) -> int:
        """As ``OffsetSet`` says."""
        return int(np.searchsorted(self.listed, last, side="right") - np.searchsorted(self.listed, first))
