"""Reads records of one snapshot, in offset order, segment by segment and row group by row group.

Which segments are read is decided once, at the start, so that a reader sees the log before a clean or after it and
never a mix. A purge may delete a replaced segment under a reader that is slower than ``file.delete.delay.ms``; then the
read ends with an error, never with a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import StorageUnavailable
from keptlog.log.record import Record
from keptlog.log.segment import Log, Segment
from keptlog.storage.files import Files
from keptlog.storage.schema import from_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.table.reach import reaching

_KEYS = pa.schema([("key", pa.binary()), ("offset", pa.int64()), ("is_live", pa.bool_())])


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the logs of one snapshot of one topic."""

    files: Files
    logs: Sequence[Log]

    def records(self, from_offset: int, *, latest: bool) -> Iterator[tuple[int, Record]]:
        """Partition and record, by partition and offset, from an offset on and never below the log start.

        ``latest`` leaves only the last record of each key, and none for a key whose last record is a tombstone.

        Raises:
            StorageUnavailable: a segment was purged meanwhile, or storage can't be reached.
        """
        for log in self.logs:
            first_offset = max(from_offset, log.log_start_offset)
            segments = [segment for segment in log.segments if segment.last_offset >= first_offset]
            winners = self._latest_offsets(segments) if latest else None
            for table in self._tables(segments):
                wanted = pc.greater_equal(table["offset"], first_offset)
                if winners is not None:
                    wanted = pc.and_(wanted, pc.is_in(table["offset"], winners))
                for record in from_arrow(table.filter(wanted).to_batches()):
                    yield log.topic_partition.partition, record

    def _latest_offsets(self, segments: Sequence[Segment]) -> pa.Array:
        """Offsets of the last record of each key that is not deleted; memory is that of the keys."""
        latest = _KEYS.empty_table()
        for table in self._tables(segments, ["offset", "key", "value"]):
            columns = [table["key"], table["offset"], table["value"].is_valid()]
            judged = pa.table(columns, schema=_KEYS).filter(table["key"].is_valid())
            latest = _last_of_each_key(pa.concat_tables([latest, judged]))
        return latest.filter(latest["is_live"])["offset"].combine_chunks()

    def _tables(self, segments: Sequence[Segment], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        for segment in segments:
            try:
                with reaching(f"segment {segment.path} can't be read"):
                    yield from read_row_groups(self.files, segment, columns)
            except StorageUnavailable as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    raise StorageUnavailable(
                        f"segment {segment.path} is gone: a clean replaced it, and a purge deleted it under this read; "
                        "read again, or raise file.delete.delay.ms"
                    ) from error
                raise


def _last_of_each_key(table: pa.Table) -> pa.Table:
    """The last row of each key; rows come in offset order."""
    grouped = table.group_by("key", use_threads=False).aggregate([("offset", "last"), ("is_live", "last")])
    return pa.table([grouped["key"], grouped["offset_last"], grouped["is_live_last"]], schema=_KEYS)
