"""What a shuffle, or a comparison of versions, has found out about records, by offset: keys stay where they were read.

    offset   10          11        14            15
    judged   superseded  unkeyed   the latest    superseded

A record at an offset that is not listed has a key of which nothing was mapped, and stays.

From a shuffle comes what one segment run needs; from a comparison what all of the log needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.storage.files import Files

JUDGED_SCHEMA = pa.schema([("offset", pa.int64()), ("judged", pa.int8())])
"""Each offset at most once, in any order, no nulls; ``judged`` is a ``Standing``."""

_MARKS_AN_OFFSET = 16
"""So many bytes of marks are worth an offset, which takes eight where it is listed."""


class Standing(IntEnum):
    """What is known of a record."""

    LATEST = 0
    SUPERSEDED = 1
    UNKEYED = 2


@dataclass(frozen=True)
class JudgedOffsets:
    """Offsets of records in three lists, one for each of ``Standing``."""

    lists: tuple[npt.NDArray[np.int64], ...]
    """In the order of ``Standing``, whose numbers find them; each is int64 and rises, and no offset is in two."""
    winners: int
    """Keys of the whole log of which a record is the latest."""

    @classmethod
    def read(cls, files: Files, path: str | None, winners: int) -> JudgedOffsets:
        """Read an Arrow file of ``JUDGED_SCHEMA``; without one nothing is known of any record.

        Raises:
            FileNotFoundError: it is gone.
        """
        if path is None:
            table = JUDGED_SCHEMA.empty_table()
        else:
            with files.open_input(path) as source:
                table = pa.ipc.open_file(source).read_all()
        return cls.of(table, winners)

    @classmethod
    def of(cls, table: pa.Table, winners: int) -> JudgedOffsets:
        """What a table of ``JUDGED_SCHEMA``, in any order, says."""
        of_each = (table.filter(pc.field("judged") == int(judged))["offset"].to_numpy() for judged in Standing)
        return cls(tuple(np.sort(offsets) for offsets in of_each), winners)

    def has_any_between(self, first_offset: int, last_offset: int) -> bool:
        """Whether something is known of a record in this range, both ends included."""
        return any(len(self._between(judged, first_offset, last_offset)) for judged in Standing)

    def winners_between(self, first_offset: int, last_offset: int) -> int:
        """How many records in this range, both ends included, are the latest of their keys."""
        return len(self._between(Standing.LATEST, first_offset, last_offset))

    def are(self, judged: Standing, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each of these offsets (int64, rising, no nulls, at least one) whether its record is judged so."""
        listed = self._between(judged, offsets[0].as_py(), offsets[-1].as_py())
        return are_listed(offsets, listed)

    def _between(self, judged: Standing, first_offset: int, last_offset: int) -> Any:
        offsets = self.lists[judged]
        return offsets[np.searchsorted(offsets, first_offset) : np.searchsorted(offsets, last_offset, side="right")]


def are_listed(offsets: pa.ChunkedArray, listed: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """A mask: for each of these offsets (int64, no nulls) whether it is listed. Each chunk rises, and so does the list.

    The list is looked up among the offsets, and not the other way round: a tenth of the time of a hash table, and
    hardly any memory, for each chunk of offsets is looked at where it lies.

        numbers   10  11  14  15       the chunk
        between   11  13               the part of the list that lies within it; 13 was cleaned away
        rows       1   2               where each would stand among the numbers; at 2 stands 14, which is not 13
    """
    chunks = []
    for chunk in offsets.chunks:
        numbers = chunk.to_numpy()
        is_listed = np.zeros(len(numbers), dtype=bool)
        if len(numbers):
            end = np.searchsorted(listed, numbers[-1], side="right")
            between = listed[np.searchsorted(listed, numbers[0]) : end]
            # Nothing in ``between`` is above the last number, so every row is one of the chunk's.
            rows = np.searchsorted(numbers, between)
            is_listed[rows[numbers[rows] == between]] = True
        chunks.append(pa.array(is_listed))
    return pa.chunked_array(chunks, pa.bool_())


@dataclass(frozen=True, slots=True)
class MarkedOffsets:
    """Offsets, in any order, as one mark for each that lies between the first and the last of them.

        offsets   14  10  11
        marks     10  11  12  13  14
                   x   x           x

    To ask a mark is to look at its place: no list is sorted, and none searched.
    """

    first: int
    marks: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, offsets: npt.NDArray[np.int64]) -> MarkedOffsets | None:
        """Null where so few of the offsets between first and last are among them that marks would take much memory."""
        first, last = (int(offsets.min()), int(offsets.max())) if len(offsets) else (0, -1)
        if last - first >= _MARKS_AN_OFFSET * len(offsets):
            return None
        marks = np.zeros(last - first + 1, dtype=bool)
        marks[offsets - first] = True
        return cls(first, marks)

    def has(self, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each of these offsets (int64, no nulls) whether it is marked. Each chunk rises."""
        chunks = []
        for chunk in offsets.chunks:
            numbers = chunk.to_numpy()
            begin, end = np.searchsorted(numbers, [self.first, self.first + len(self.marks)])
            is_marked = np.zeros(len(numbers), dtype=bool)
            is_marked[begin:end] = self.marks[numbers[begin:end] - self.first]
            chunks.append(pa.array(is_marked))
        return pa.chunked_array(chunks, pa.bool_())
