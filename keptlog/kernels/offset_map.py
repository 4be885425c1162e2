"""The offset map: of every key in the dirty section, the offset of its latest record.

    offset  key                    key  latest offset
    7       a                      a    9
    8       b          ->          b    8
    9       a

Kafka's ``SkimpyOffsetMap`` keeps hashes; here keys are compared as keys, so no collision can drop a record. Only the
key and offset columns are read. Records without a key are not in the map.

A large dirty section is mapped in parts, which are merged: the map of a whole is the latest of its parts. Records go
through one hash table as they are read, so memory is that of the distinct keys: 0.13 to 0.2 GB for a million of them
while the map is made, 25 bytes a key after. Where the keys themselves have gigabytes, there are several hash tables
(``keptlog.storage.keys``).

Two complications. A map **may be full**: then records are folded into it in offset order, a million or more at a time,
up to the row where it is, and the pass ends before the next record that has a key (``keptlog.log.offset_map``). And
where records have **versions**, the map has a column for them, and the latest of a key may after all be a clean record,
or a watermark: ``rivals``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, keys_schema, read_keys
from keptlog.kernels.offset_set import OffsetSet, set_of
from keptlog.log.offset_map import UNBOUNDED, end_of_full_map
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy
from keptlog.storage.files import Files
from keptlog.storage.keys import are_among, grouped_by_key, key_bytes, rows_of
from keptlog.storage.versions import latest_by_offset, latest_of_each_key

RECORD_BYTES = 40
"""About what a record costs in a lookup or a fold; records with longer keys cost their keys. So the numbers of records
below stand for bytes.
"""
FOLD_RECORDS = 1_000_000
"""Records that wait before they are folded into the map; more cost memory, fewer cost time."""
LOOKUP_RECORDS, MOST_LOOKUP_RECORDS = 3_000_000, 8_000_000
"""Records looked up at once; up to the second number, as many as the map has keys. A lookup hashes the whole map anew,
so it is large where that is.
"""

_T = TypeVar("_T")


@dataclass(frozen=True)
class OffsetMap:
    """Of every mapped key its latest dirty record."""

    latest: pa.Table
    """Columns ``key`` (binary), ``offset`` (int64) and, with versions, ``version`` (int64, null for none); a row a key,
    in any order. Keys are distinct, keys and offsets without nulls.
    """

    def __len__(self) -> int:
        return int(self.latest.num_rows)

    @cached_property
    def weight(self) -> int:
        """As ``weight_of`` its keys."""
        return weight_of(self.latest)

    @property
    def winners(self) -> int:
        """Keys of which a record is the latest."""
        return len(self)

    def winners_between(self, first_offset: int, last_offset: int) -> int:
        """How many of these records lie in this range, both ends included."""
        return self._offsets.count_between(first_offset, last_offset)

    @classmethod
    def empty(cls, strategy: Strategy) -> OffsetMap:
        """The map of no record."""
        return cls(_without_malformed(keys_schema(strategy).empty_table()))

    def latest_offset_of(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each key (binary) its latest offset (int64); null for a key that the map lacks, and for no key."""
        return pc.take(self.latest["offset"], self.rows_of(keys))

    def has_keys(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each key (binary) whether it is in the map; no key is not."""
        return are_among(keys, self.latest["key"])

    def rows_of(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each key (binary) its row in ``latest``; null for a key that the map lacks, and for no key."""
        return rows_of(keys, self.latest["key"])

    def has_offsets(self, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
        """A mask: for each of these offsets (int64, rising, no nulls) whether it is the latest of a key."""
        return self._offsets.has(offsets)

    @cached_property
    def _offsets(self) -> OffsetSet:
        return set_of(self.latest["offset"].to_numpy())

    def write(self, files: Files, path: str) -> None:
        """Store the map as an Arrow IPC file."""
        with files.open_output(path) as sink, pa.ipc.new_file(sink, self.latest.schema) as writer:
            writer.write_table(self.latest)

    @classmethod
    def read(cls, files: Files, paths: Sequence[str]) -> OffsetMap:
        """Read what ``write`` stored; several are maps of parts, in any order, which are merged as they are read.

        Raises:
            FileNotFoundError: a file is gone.
        """
        parts = (part for path in paths for part in _stored(files, path))
        return cls(pa.concat_tables(parts) if len(paths) == 1 else latest_of_parts(parts))


@dataclass(frozen=True, slots=True)
class DirtyMap:
    """A part of the dirty section, mapped up to ``end_offset``, which is exclusive."""

    offset_map: OffsetMap
    end_offset: int
    malformed: int
    """Records whose version header holds no version."""


def map_dirty(files: Files, step: Compact, segments: Sequence[Segment], max_keys: int = UNBOUNDED.max_keys) -> DirtyMap:
    """Map the dirty records of these segments, which are in offset order, until the map has ``max_keys`` keys.

    Raises:
        StalePlan: a segment is gone.
    """
    tables = read_keys(files, step, segments, Between.dirty(step))
    if not step.strategy.has_versions and sum(segment.record_count for segment in segments) <= max_keys:
        return DirtyMap(OffsetMap(latest_by_offset(tables)), step.end_offset, 0)
    latest, malformed = OffsetMap.empty(step.strategy).latest, 0
    previous_offset = step.first_dirty_offset - 1
    while records := next_joined(tables, weight_of(latest)):
        folded = latest_of_each_key([latest, _without_malformed(records)])
        row = _row_after_full(latest, records, max_keys) if folded.num_rows >= max_keys else None
        if row is not None:
            inside = records.slice(0, row)
            previous_offset = inside["offset"][-1].as_py() if row else previous_offset
            bases = [segment.base_offset for segment in segments]
            end_offset = end_of_full_map(previous_offset, records["offset"][row].as_py(), bases)
            latest = latest_of_each_key([latest, _without_malformed(inside)])
            return DirtyMap(OffsetMap(latest), end_offset, malformed + _malformed(inside))
        latest, malformed = folded, malformed + _malformed(records)
        previous_offset = records["offset"][-1].as_py()
    return DirtyMap(OffsetMap(latest), step.end_offset, malformed)


def weight_of(records: pa.Table) -> int:
    """How many bytes these records count for in a lookup or a fold; without their keys, where these are not read."""
    keys = key_bytes(records["key"]) if "key" in records.column_names else 0
    return max(int(records.num_rows) * RECORD_BYTES, keys)


def fits_one_lookup(weight: int, map_weight: int) -> bool:
    """Whether records of this weight are looked up at once in a map of that weight."""
    return weight <= max(LOOKUP_RECORDS * RECORD_BYTES, min(map_weight, MOST_LOOKUP_RECORDS * RECORD_BYTES))


def grouped_for_lookup(
    pieces: Iterable[_T], records_of: Callable[[_T], pa.Table], map_weight: int
) -> Iterator[list[_T]]:
    """The pieces in their order, as many in a group as are looked up at once, and at least one."""
    group: list[_T] = []
    weight = 0
    for piece in pieces:
        weight_of_piece = weight_of(records_of(piece))
        if group and not fits_one_lookup(weight + weight_of_piece, map_weight):
            yield group
            group, weight = [], 0
        group.append(piece)
        weight += weight_of_piece
    if group:
        yield group


def _row_after_full(latest: pa.Table, records: pa.Table, max_keys: int) -> int | None:
    """The row of the first record with a key after the one by which the map is full; null if there is none.

    ``latest`` has at most ``max_keys`` keys; ``records`` come behind what it was made of, and with theirs there are at
    least so many. With ``a`` mapped, and room for 2:

        row               0   1   2   3   4   5   6
        key               a   b   b   -   c   -   a    new keys begin in rows 1 (b) and 4 (c)
        row that fills                    ^            the 2nd smallest of these
        row after                                 ^    the next one with a key, even one that is mapped
    """
    keys = records["key"]
    # Without room the map was full before the first of these records: the first one with a key is the row after.
    room, row_that_fills = max_keys - latest.num_rows, -1
    if room > 0:
        is_new = pc.and_(pc.is_valid(keys), pc.invert(are_among(keys, latest["key"])))
        new = pa.table({"key": keys, "row": np.arange(len(keys))}).filter(is_new)
        first_rows = grouped_by_key(new, [("row", "min")])["row_min"]
        # The n-th key begins at the n-th smallest of the rows where keys begin; partition puts it where sorting would.
        row_that_fills = np.partition(first_rows.to_numpy(), room - 1)[room - 1]
    # Rows that have a key rise, so those behind a row are found by a search.
    with_key = np.flatnonzero(pc.is_valid(keys).to_numpy())
    after = with_key[np.searchsorted(with_key, row_that_fills, side="right") :]
    return int(after[0]) if len(after) else None


def _stored(files: Files, path: str) -> Iterator[pa.Table]:
    """A stored map in pieces, the first of which is empty: a map without a key has its columns too."""
    with files.open_input(path) as source:
        stored = pa.ipc.open_file(source)
        yield stored.schema.empty_table()
        for number in range(stored.num_record_batches):
            yield pa.Table.from_batches([stored.get_batch(number)])


def latest_of_parts(parts: Iterator[pa.Table]) -> pa.Table:
    """Of every key its latest record, of tables as ``latest_of_each_key`` takes them; each is read when its turn comes.

    The first one says which columns there are; without versions it is empty.
    """
    latest = next(parts)
    if "version" not in latest.column_names:
        return latest_by_offset(parts)
    while records := next_joined(parts, weight_of(latest)):
        latest = latest_of_each_key([latest, records])
    return latest


def next_joined(tables: Iterator[pa.Table], map_weight: int) -> pa.Table | None:
    """The next of the tables together, as many as pay for one look at a map of this weight; null after the last.

    A fold costs as much as the map is large, so what waits for it grows with the map.
    """
    waiting: list[pa.Table] = []
    weight = 0
    for table in tables:
        if table.num_rows:
            waiting.append(table)
            weight += weight_of(table)
        if weight >= max(FOLD_RECORDS * RECORD_BYTES, map_weight):
            break
    return pa.concat_tables(waiting) if waiting else None


def _without_malformed(records: pa.Table) -> pa.Table:
    return records.drop_columns(["is_malformed"]) if "is_malformed" in records.column_names else records


def _malformed(records: pa.Table) -> int:
    return int(pc.sum(records["is_malformed"]).as_py() or 0) if "is_malformed" in records.column_names else 0
