"""Writes records into segment files that roll at a size, in bounded memory.

Tables go in, in offset order, of any length; files come out. Records wait until a row group is full (``ROW_GROUP_ROWS``
or ``ROW_GROUP_BYTES``, whichever comes first), are written, and a file is closed after the row group that brought it to
its target, so that no file is larger than target + one row group, and no more than about two row groups are in memory.

Offsets must rise from record to record: the writer checks it, because nothing behind it could repair a log that is out
of order.

The encodings are measured choices: zstd at level 1 (level 3 costs twice the time for nothing), no dictionaries for
columns that rarely repeat, deltas for offsets and times. Pages and footer have checksums (``checksums``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from keptlog.errors import InvariantViolated
from keptlog.log.segment import Segment
from keptlog.storage.checksums import METADATA, ChecksumSink
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.storage.schema import US_PER_MS
from keptlog.storage.value_views import VIEWED_SCHEMA, bytes_of, with_views

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 32 * 2**20


WRITER_OPTIONS = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["partition", "timestamp_type"],
    "column_encoding": {
        "offset": "DELTA_BINARY_PACKED",
        "timestamp": "DELTA_BINARY_PACKED",
        "delete_horizon": "DELTA_BINARY_PACKED",
    },
    "write_statistics": ["partition", "offset", "timestamp", "delete_horizon", "key", "value"],
    "store_schema": False,
    "write_page_checksum": True,
}
"""How pyarrow's writer encodes a segment."""
_PAGE_BYTES = 2**20
"""Pyarrow ends a page that has so much."""
_MOST_BATCH_ROWS = 8192


@dataclass
class _OpenSegment:
    """The file that is being written, and the metrics that will describe it."""

    path: str
    parquet: pq.ParquetWriter
    checksums: ChecksumSink
    sink: pa.NativeFile
    closing: ExitStack
    base_offset: int
    last_offset: int = -1
    first_timestamp_us: int = 2**63 - 1
    largest_timestamp_us: int = -(2**63)
    record_count: int = 0
    tombstone_count: int = 0
    unkeyed_count: int = 0
    stamped_count: int = 0
    earliest_horizon_us: int | None = None

    def add(self, table: pa.Table) -> None:
        """Write a row group: at least one record of ``VIEWED_SCHEMA``."""
        times = pc.min_max(table["timestamp"].cast(pa.int64())).as_py()
        horizon = pc.min(table["delete_horizon"].cast(pa.int64())).as_py()
        self.first_timestamp_us = min(self.first_timestamp_us, times["min"])
        self.largest_timestamp_us = max(self.largest_timestamp_us, times["max"])
        self.last_offset = table["offset"][-1].as_py()
        self.record_count += table.num_rows
        self.tombstone_count += table["value"].null_count
        self.unkeyed_count += table["key"].null_count
        self.stamped_count += table.num_rows - table["delete_horizon"].null_count
        if horizon is not None:
            earliest_us = self.earliest_horizon_us
            self.earliest_horizon_us = horizon if earliest_us is None else min(horizon, earliest_us)
        self.parquet.write_table(table, row_group_size=table.num_rows)

    def finish(self) -> Segment:
        self.parquet.add_key_value_metadata(METADATA)
        self.checksums.hold_footer()
        self.parquet.close()
        self.checksums.write_footer()
        size_bytes = self.sink.tell()
        self.closing.close()
        return Segment(
            path=self.path,
            base_offset=self.base_offset,
            last_offset=self.last_offset,
            first_timestamp_ms=self.first_timestamp_us // US_PER_MS,
            largest_timestamp_ms=self.largest_timestamp_us // US_PER_MS,
            record_count=self.record_count,
            size_bytes=size_bytes,
            tombstone_count=self.tombstone_count,
            unkeyed_count=self.unkeyed_count,
            stamped_count=self.stamped_count,
            earliest_delete_horizon_ms=None
            if self.earliest_horizon_us is None
            else self.earliest_horizon_us // US_PER_MS,
        )


@dataclass
class SegmentWriter:
    """Writes one topic-partition's records, in offset order, into one or more segments.

    Leave it through ``finish``; after an error, ``abandon`` it: that deletes what it has written. Only of a writer that
    is killed are files left, never live, for a purge to sweep.
    """

    files: Files
    path_for: Callable[[int], str]
    """The path of a new segment from its base offset; must never return the same path twice (invariant I2)."""
    target_bytes: int
    """A file is closed after the row group that brought it there."""
    row_group_bytes: int = field(default_factory=lambda: ROW_GROUP_BYTES)
    """Bytes of records that wait, at most, for their row group to be written."""
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_rows: int = 0
    _waiting_bytes: int = 0
    _last_offset: int = -1
    _open: _OpenSegment | None = None
    _finished: list[Segment] = field(default_factory=list)

    def write(self, table: pa.Table) -> None:
        """Take records of ``SCHEMA``, or of ``VIEWED_SCHEMA``; offsets rise, within a table and from one to the next.

        Raises:
            InvariantViolated: an offset does not rise.
        """
        if table.num_rows == 0:
            return
        self._check_offsets(table["offset"])
        for piece, piece_bytes in _pieces(with_views(table), self.row_group_bytes):
            self._waiting.append(piece)
            self._waiting_rows += piece.num_rows
            self._waiting_bytes += piece_bytes
            while self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= self.row_group_bytes:
                self._write_row_group()

    @property
    def waiting_bytes(self) -> int:
        """Memory of the records that wait for their row group to be full."""
        return self._waiting_bytes

    def flush(self) -> None:
        """Write what waits, full row group or not, to free its memory."""
        while self._waiting_rows:
            self._write_row_group()

    def finish(self) -> list[Segment]:
        """Write what waits, close the last file, and return all segments in offset order."""
        self.flush()
        self._close()
        return self._finished

    def abandon(self) -> None:
        """Give up after an error: close the open file, and delete all files, as far as the storage lets."""
        paths = [segment.path for segment in self._finished]
        if self._open:
            paths.append(self._open.path)
            with suppress(OSError):
                self._open.parquet.close()
            self._open.closing.pop_all()
            with suppress(OSError):
                self._open.sink.close()
            self._open = None
        self._finished = []
        discard(self.files, paths)

    def _check_offsets(self, offsets: pa.ChunkedArray) -> None:
        """``offsets`` is int64 without nulls, of at least one record."""
        numbers = offsets.to_numpy()
        if numbers[0] <= self._last_offset or (numbers[1:] <= numbers[:-1]).any():
            raise InvariantViolated(
                f"offsets do not rise after {self._last_offset} in records to be written ({numbers[0]}..{numbers[-1]}) "
                "(G2); nothing was committed, please report this"
            )
        self._last_offset = int(numbers[-1])

    def _write_row_group(self) -> None:
        waiting = pa.concat_tables(self._waiting)
        group, rest = waiting.slice(0, ROW_GROUP_ROWS), waiting.slice(ROW_GROUP_ROWS)
        self._waiting = [rest] if rest.num_rows else []
        self._waiting_rows, self._waiting_bytes = rest.num_rows, bytes_of(rest)
        if self._open is None:
            self._open = self._create(group)
        with _naming(self._open.path):
            self._open.add(group)
        if self._open.sink.tell() >= self.target_bytes:
            self._close()

    def _create(self, first_group: pa.Table) -> _OpenSegment:
        base_offset = first_group["offset"][0].as_py()
        path = self.path_for(base_offset)
        with _naming(path), ExitStack() as opening:  # a file begins with bytes of its own
            sink = opening.enter_context(self.files.open_output(path))
            checksums = ChecksumSink(sink)
            file, at_once = pa.PythonFile(checksums, mode="w"), batch_rows(first_group.num_rows, bytes_of(first_group))
            parquet = pq.ParquetWriter(file, VIEWED_SCHEMA, write_batch_size=at_once, **WRITER_OPTIONS)
            return _OpenSegment(path, parquet, checksums, sink, opening.pop_all(), base_offset)

    def _close(self) -> None:
        if self._open:
            with _naming(self._open.path):
                self._finished.append(self._open.finish())
            self._open = None


def batch_rows(records: int, records_bytes: int) -> int:
    """How many records pyarrow is to encode at once: about a page of them, for it ends a page behind a batch.

    Fewer cost a twentieth of the time to encode, more would make larger pages.
    """
    return max(1, min(_MOST_BATCH_ROWS, _PAGE_BYTES * records // max(records_bytes, 1)))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in an error of the operating system; Arrow does not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # with a name and no number an error would say neither of them, nor what it says
            error.filename = error.filename or path
        raise


def _pieces(table: pa.Table, row_group_bytes: int) -> Iterator[tuple[pa.Table, int]]:
    """The table in slices of about a row group's bytes, for values may be large; with the bytes of each.

    It is of ``VIEWED_SCHEMA``. Slices have equal numbers of rows, as if all were of a size: 1,000 rows of 100 MiB and
    row groups of 32 MiB give slices of 320.
    """
    table_bytes = bytes_of(table)
    if table_bytes <= row_group_bytes:
        yield table, table_bytes
        return
    rows = max(1, min(ROW_GROUP_ROWS, table.num_rows * row_group_bytes // table_bytes))
    for start in range(0, table.num_rows, rows):
        piece = table.slice(start, rows)
        yield piece, bytes_of(piece)
