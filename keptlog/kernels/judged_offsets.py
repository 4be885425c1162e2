"""What a shuffle, or a comparison of versions, has found out about records, by offset: keys stay where they were read.

    offset   10          11        14            15
    judged   superseded  unkeyed   the latest    superseded

A record at an offset that is not listed has a key of which nothing was mapped, and stays.

From a shuffle comes what one segment run needs; from a comparison what all of the log needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from keptlog.kernels.offset_set import OffsetSet, set_of
from keptlog.storage.files import Files

JUDGED_SCHEMA = pa.schema([("offset", pa.int64()), ("judged", pa.int8())])
"""Each offset at most once, in any order, no nulls; ``judged`` is a ``Standing``."""


class Standing(IntEnum):
    """What is known of a record."""

    LATEST = 0
    SUPERSEDED = 1
    UNKEYED = 2


@dataclass(frozen=True)
class JudgedOffsets:
    """Offsets of records in three sets, one for each of ``Standing``."""

    sets: tuple[OffsetSet, ...]
    """In the order of ``Standing``, whose numbers find them; no offset is in two."""
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
        offsets, judged = table["offset"].to_numpy(), table["judged"].to_numpy()
        return cls(tuple(set_of(offsets[judged == standing]) for standing in Standing), winners)

    def has_any_between(self, first_offset: int, last_offset: int) -> bool:
        """Whether something is known of a record in this range, both ends included."""
        return any(each.count_between(first_offset, last_offset) for each in self.sets)

    def winners_between(self, first_offset: int, last_offset: int) -> int:
        """How many records in this range, both ends included, are the latest of their keys."""
        return self.sets[Standing.LATEST].count_between(first_offset, last_offset)

    def are(self, judged: Standing, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each of these offsets (int64, no nulls; each chunk rises) whether its record is judged so."""
        return self.sets[judged].has(offsets)
