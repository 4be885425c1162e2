"""Reads one snapshot, in offset order, segment by segment and row group by row group; as tables or record by record.

Which segments are read is decided once, at the start, so that a reader sees the log before a clean or after it and
never a mix. A purge may delete a replaced segment under a reader that is slower than ``file.delete.delay.ms``; then the
read ends with an error, never with a gap. What is damaged, or missing though it is live, is another error (``lost``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import StorageUnavailable
from keptlog.kernels.offset_map import latest_of_parts
from keptlog.kernels.offset_set import OffsetSet, set_of
from keptlog.log.given.given import whole_number
from keptlog.log.record import Record
from keptlog.log.segment import Log, Segment
from keptlog.log.watermark import NO_OFFSET
from keptlog.storage.schema import from_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.versions import version_columns, with_versions
from keptlog.storage.watermark_file import read_watermark_file
from keptlog.table.io.files import TableFiles
from keptlog.table.reading.lost import LostFiles
from keptlog.table.waiting.reaching import reaching


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the logs of one snapshot of one topic."""

    files: TableFiles
    logs: Sequence[Log]
    logs_now: Callable[[], Sequence[Log]]
    """All logs of the topic as they are when it is called."""
    snapshot_id: int | None = None
    """The snapshot's; null for a topic that has none yet."""

    @property
    def topic_id(self) -> str | None:
        """Tells the topic that is read from a later one of its name (``Log.topic_id``).

        Whoever writes down how far he has read does it for the topic of this id, and for no other.
        """
        return next((log.topic_id for log in self.logs), None)

    def records(self, from_offset: int, *, latest: bool) -> Iterator[tuple[int, Record]]:
        """Partition and record, by partition and offset, from an offset on and never below the log start.

        ``latest`` leaves only the latest record of each key, by the topic's strategy, and none for a deleted key.

        Raises:
            InvalidConfig: ``from_offset`` is no whole number.
            StorageUnavailable: a segment was purged meanwhile, or storage can't be reached.
            LogCorrupt: a file is damaged, or is lost.
        """
        for log in self.logs:
            for table in self.tables(log, from_offset, latest=latest):
                for record in from_arrow(table.to_batches()):
                    yield log.topic_partition.partition, record

    def tables(
        self, log: Log, from_offset: int = 0, *, latest: bool = False, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The same of one of the logs as tables of ``keptlog.storage.schema.SCHEMA``, a row group each, none empty.

        ``columns`` leaves only these, in their order.

        Raises:
            InvalidConfig: ``from_offset`` is no whole number.
            StorageUnavailable, LogCorrupt: as for records.
        """
        first_offset = max(whole_number(from_offset, "the offset to read from"), log.log_start_offset)
        winners = self._latest_offsets(log, first_offset) if latest else None
        needed = {"offset", "value"} if latest else {"offset"}
        read_columns = None if columns is None else [*columns, *sorted(needed.difference(columns))]
        segments = (segment for segment in log.segments if segment.last_offset >= first_offset)
        for table in self._tables(segments, read_columns):
            wanted = pc.greater_equal(table["offset"], first_offset)
            if winners is not None:
                wanted = pc.and_(wanted, pc.and_(winners.has(table["offset"]), table["value"].is_valid()))
            read = table.filter(wanted)
            if read.num_rows:
                yield read if columns is None else read.select(list(columns))

    def _latest_offsets(self, log: Log, first_offset: int) -> OffsetSet:
        """Offsets of the latest record of each key; memory is that of the keys.

        By offset, what lies before ``first_offset`` can't be the latest. By version it can, and so can a deleted key's
        watermark, at no offset.
        """
        if log.config.strategy.has_versions:
            first_offset = log.log_start_offset
        offsets = latest_of_parts(self._keys(log, first_offset))["offset"].to_numpy()
        return set_of(offsets[offsets != NO_OFFSET])

    def _keys(self, log: Log, first_offset: int) -> Iterator[pa.Table]:
        """Watermarks, and then what says of each record from an offset on whether it is the latest of its key."""
        strategy = log.config.strategy
        columns = ["key", "offset", "version"] if strategy.has_versions else ["key", "offset"]
        watermarks = self._watermarks(log).select(columns)
        yield watermarks
        segments = (segment for segment in log.segments if segment.last_offset >= first_offset)
        for table in self._tables(segments, ["key", "offset", *version_columns(strategy)]):
            read = table.filter(pc.greater_equal(table["offset"], first_offset))
            judged = with_versions(read, strategy) if strategy.has_versions else read
            yield judged.select(columns).cast(watermarks.schema)

    def _watermarks(self, log: Log) -> pa.Table:
        """Those of the log, as if they were records."""
        with self._telling_lost(log.watermarks_path, f"{log.topic_partition}: its watermarks"):
            topic = log.topic_partition.topic
            watermarks = read_watermark_file(self.files, log.watermarks_path, log.config.strategy, topic)
        offsets = pa.repeat(pa.scalar(NO_OFFSET, pa.int64()), watermarks.num_rows)
        return watermarks.append_column("offset", offsets)

    def _tables(self, segments: Iterable[Segment], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        for segment in segments:
            with self._telling_lost(segment.path, f"segment {segment.path}"):
                yield from read_row_groups(self.files, segment, columns)

    @contextmanager
    def _telling_lost(self, path: str | None, what: str) -> Iterator[None]:
        """Read a file, and say why, if it is not there."""
        try:
            with reaching(f"{what} can't be read"):
                yield
        except StorageUnavailable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            now = self.logs_now()
            lost = LostFiles.among(self.files, now).first([path or ""])
            raise lost or StorageUnavailable(f"{what} can't be read: {self._why_gone(now)}") from error

    def _why_gone(self, now: Sequence[Log]) -> str:
        """How a file went that was live when this read began."""
        before, after = ({log.topic_id for log in logs if log.topic_id} for logs in (self.logs, now))
        if before and after and before != after:
            topic = self.logs[0].topic_partition.topic
            return f"topic {topic} was deleted under this read, and made anew; read again, from the new one's beginning"
        return (
            "it is no part of the log any more, since records were cleaned, retained or deleted, and a purge deleted "
            "it under this read; read again, or raise file.delete.delay.ms"
        )
