"""The offset map: of every key in the dirty section, the offset of its latest record.

    offset  key                    key  latest offset
    7       a                      a    9
    8       b          ->          b    8
    9       a

Kafka's ``SkimpyOffsetMap`` keeps hashes; here keys are compared as keys, so no collision can drop a record. Only the
key and offset columns are read. Records without a key are not in the map.

A large dirty section is mapped in parts, which are merged: the map of a whole is the latest of its parts. Memory is
that of the distinct keys, about 0.2 GB for a million of them while the map is made, 25 bytes a key after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.log.plan import Step
from keptlog.log.segment import Segment
from keptlog.spark.inputs import open_input
from keptlog.storage.files import Files

_SCHEMA = pa.schema([pa.field("key", pa.binary()), pa.field("offset", pa.int64())])
_FOLD_RECORDS = 1_000_000
"""Records that wait before they are folded into the map; more cost memory, fewer cost time."""


@dataclass(frozen=True)
class OffsetMap:
    """Columns ``key`` (binary, distinct, no nulls) and ``offset`` (int64)."""

    latest: pa.Table

    def __len__(self) -> int:
        return int(self.latest.num_rows)

    @classmethod
    def empty(cls) -> OffsetMap:
        return cls(_SCHEMA.empty_table())

    @classmethod
    def of(cls, files: Files, step: Step, segments: Iterable[Segment]) -> OffsetMap:
        """Map the records of these segments that lie in the step's ``[first_dirty_offset, end_offset)``.

        Raises:
            StalePlan: a segment is gone.
        """
        return cls._folded(_keyed_records(files, step, segments))

    @classmethod
    def merged(cls, parts: Iterable[OffsetMap]) -> OffsetMap:
        """The map of the whole from maps of its parts, in any order."""
        return cls._folded(part.latest for part in parts)

    @classmethod
    def _folded(cls, tables: Iterable[pa.Table]) -> OffsetMap:
        latest, waiting, waiting_rows = _SCHEMA.empty_table(), [], 0
        for table in tables:
            waiting.append(table)
            waiting_rows += table.num_rows
            # A fold costs as much as the map is large, so what waits grows with the map.
            if waiting_rows >= max(_FOLD_RECORDS, latest.num_rows):
                latest, waiting, waiting_rows = _latest_of_each_key([latest, *waiting]), [], 0
        return cls(_latest_of_each_key([latest, *waiting]) if waiting else latest)

    def latest_offset_of(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each key its latest offset; null for a key that the map lacks, and for no key."""
        return pc.take(self.latest["offset"], pc.index_in(keys, value_set=self.latest["key"]))

    def offsets_between(self, first_offset: int, last_offset: int) -> pa.ChunkedArray:
        """The latest offsets that lie in this range, both ends included, in no order."""
        offsets = self.latest["offset"]
        return offsets.filter(pc.and_(pc.greater_equal(offsets, first_offset), pc.less_equal(offsets, last_offset)))

    def write(self, files: Files, path: str) -> None:
        """Store the map as an Arrow IPC file."""
        with files.open_output(path) as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_table(self.latest)

    @classmethod
    def read(cls, files: Files, path: str) -> OffsetMap:
        """Read what ``write`` stored."""
        with files.open_input(path) as source:
            return cls(pa.ipc.open_file(source).read_all())


def _keyed_records(files: Files, step: Step, segments: Iterable[Segment]) -> Iterator[pa.Table]:
    for segment in segments:
        straddles = segment.base_offset < step.first_dirty_offset or segment.last_offset >= step.end_offset
        with open_input(files, step, segment) as parquet:
            for index in range(parquet.num_row_groups):
                table = parquet.read_row_group(index, columns=["key", "offset"], use_threads=False)
                if straddles:
                    offset = pc.field("offset")
                    table = table.filter((offset >= step.first_dirty_offset) & (offset < step.end_offset))
                if table["key"].null_count:
                    table = table.filter(pc.field("key").is_valid())
                yield table.select(["key", "offset"]).cast(_SCHEMA)


def _latest_of_each_key(tables: list[pa.Table]) -> pa.Table:
    grouped = pa.TableGroupBy(pa.concat_tables(tables), ["key"], use_threads=False).aggregate([("offset", "max")])
    return grouped.select(["key", "offset_max"]).rename_columns(["key", "offset"])
