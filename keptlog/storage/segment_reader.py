"""Reads segment files, row group by row group and only the columns asked for, in bounded memory.

Nobody else opens a segment, so none is read unchecked. When it is opened its size, its footer's checksum and its number
of records must be what was written and what the table says; when pages are read, so must their checksums. What is not
so is ``LogCorrupt``, with the file's name. A segment of before format 1.1 has no checksums, and is read without
(``checksums``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from keptlog.errors import LogCorrupt
from keptlog.log.segment import Segment
from keptlog.log.words.counted import counted
from keptlog.storage.checksums import checksums_text, footer_bytes, pages_checksum
from keptlog.storage.crc32 import crc32
from keptlog.storage.damage import PIECE_BYTES, damaged, decoded, opened
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.value_views import VIEWED_SCHEMA

_OURS = {field.name: field for field in SCHEMA}
_TAIL_BYTES = 64 * 2**10
"""What is read of a file's end at once; in it is the footer of up to sixty row groups."""
VIEWED_FILE_BYTES = 2**20
"""Of a file that is at least so large values are read as views; a small one is not worth a second reader."""


class SegmentFile:
    """A segment that is open. What can't be decoded is LogCorrupt, OSError what the storage does not give."""

    def __init__(self, path: str, source: pa.NativeFile, parquet: pq.ParquetFile, pages: int | None) -> None:
        self._path = path
        self._source = source
        self._parquet = parquet
        self._pages = pages
        metadata = parquet.metadata
        self.row_groups: tuple[int, ...] = tuple(metadata.row_group(n).num_rows for n in range(metadata.num_row_groups))
        """How many records each row group has."""

    @property
    def is_at_hand(self) -> bool:
        """Whether to read from it is no request to a store."""
        return _is_at_hand(self._source)

    @property
    def has_checksums(self) -> bool:
        """Whether damage can be seen; else it was written before format 1.1."""
        return self._pages is not None

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as it has them."""
        return self._parquet.schema_arrow

    def read(self, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A row group, of ``SCHEMA``, with the given columns or all, in the file's order."""
        return self._read(lambda: self._parquet, row_group, columns)

    def read_for_rewrite(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """A row group as ``read`` gives it, but of a large file ``value`` comes last, and as views.

        From a store all columns are one request, so there they are read together.
        """
        is_worth_it = _is_at_hand(self._source) and self._source.size() >= VIEWED_FILE_BYTES
        if "value" not in columns or not is_worth_it:
            return self.read(row_group, columns)
        table = self.read(row_group, [name for name in columns if name != "value"])
        values = self._read(lambda: self._views, row_group, ["value"])["value"]
        # Another program's file may say by itself as what its values are to be read.
        return table.append_column(VIEWED_SCHEMA.field("value"), values.cast(pa.binary_view()))

    @cached_property
    def _views(self) -> pq.ParquetFile:
        """The same file with values left in the pieces that they are decoded into, in place of one array that grows."""
        kind = pa.binary_view()
        metadata = self._parquet.metadata
        return pq.ParquetFile(self._source, metadata=metadata, binary_type=kind, page_checksum_verification=True)

    def _read(self, parquet: Callable[[], pq.ParquetFile], row_group: int, columns: Sequence[str] | None) -> pa.Table:
        def decode() -> pa.Table:
            return parquet().read_row_group(row_group, columns=columns, use_threads=False)

        table = decoded(self._source, self._path, decode)
        missing = set(columns or ()) - set(table.column_names)
        if missing:
            raise damaged(self._path, f"has no column {', '.join(sorted(missing))}")
        if table.num_rows != self.row_groups[row_group]:
            records = counted(table.num_rows, "record")
            what = f"has {records} in row group {row_group}, not {self.row_groups[row_group]}"
            raise damaged(self._path, what)
        # The checksums, or what another program has put there: nothing of a record's.
        table = table.replace_schema_metadata(None)
        return table if self.has_checksums else _as_written_here(table)

    def null_count(self, row_group: int, column: str) -> int:
        """How many nulls a column has, from the file's statistics if it has them."""
        metadata = self._parquet.metadata.row_group(row_group)
        for index in range(metadata.num_columns):
            chunk = metadata.column(index)
            if chunk.path_in_schema == column and chunk.statistics is not None and chunk.statistics.has_null_count:
                return int(chunk.statistics.null_count)
        return int(self.read(row_group, [column])[column].null_count)

    def key_range(self, row_group: int) -> tuple[bytes, bytes] | None:
        """The smallest and the largest key, or bounds of them; null if the file does not tell, or a record has none."""
        metadata = self._parquet.metadata.row_group(row_group)
        for index in range(metadata.num_columns):
            chunk = metadata.column(index)
            if chunk.path_in_schema == "key":
                told = chunk.statistics
                if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
                    return None
                return bytes(told.min_raw), bytes(told.max_raw)
        return None

    def read_through(self) -> None:
        """Read every byte, and find whatever is not as it was written; without checksums, what can't be decoded."""
        if self._pages is None:
            for row_group in range(len(self.row_groups)):
                self.read(row_group)
            return
        found, left, position = 0, _footer_at(self._source), 0
        while left:
            piece = self._source.read_at(min(left, PIECE_BYTES), position)
            found, left, position = crc32(piece, found), left - len(piece), position + len(piece)
        if found != self._pages:
            raise damaged(self._path, "does not have the checksum that was written with it")


@contextmanager
def open_segment(files: Files, segment: Segment) -> Iterator[SegmentFile]:
    """A segment's file, open.

    Raises:
        FileNotFoundError: it is not there: a purge has deleted it, or it is lost.
        LogCorrupt: it is not what was written.
        OSError: the storage does not give it, or gives it only when it is asked again.
    """
    try:
        with _open_segment(files, segment, segment.size_bytes) as file:
            yield file
    except LogCorrupt as error:
        if segment.path in str(error):
            _require_damage_again(files, segment)
        raise


def _require_damage_again(files: Files, segment: Segment) -> None:
    """Ask a store once more for a file that came damaged.

    Arrow takes a page with status 200 for a part of it. Where no length is told, it is first asked of who looks at what
    the answer is.

    Raises:
        OSError: it is not given, or is as it was written.
    """
    try:
        with _open_segment(files, segment, None) as file:
            if file.is_at_hand:
                return
            file.read_through()
    except LogCorrupt:
        return
    raise OSError(f"{segment.path} came damaged from the storage, and whole when it was asked again: try again")


@contextmanager
def _open_segment(files: Files, segment: Segment, told_bytes: int | None) -> Iterator[SegmentFile]:
    with opened(files, segment.path, told_bytes) as source:
        size_bytes = source.size()
        if size_bytes != segment.size_bytes:
            raise damaged(segment.path, f"has {size_bytes} bytes, not {segment.size_bytes}")
        with opened_segment(source, segment.path) as segment_file:
            records = sum(segment_file.row_groups)
            if records != segment.record_count:
                raise damaged(segment.path, f"has {counted(records, 'record')}, not {segment.record_count}")
            yield segment_file


@contextmanager
def opened_segment(source: pa.NativeFile, path: str) -> Iterator[SegmentFile]:
    """An open file as a segment, of which no table says how long it is: one that nobody refers to, for example.

    Raises:
        LogCorrupt: it is not what was written, or no Parquet.
        OSError: the storage does not give it.
    """
    footer = _footer(source)
    pages = decoded(source, path, lambda: pages_checksum(footer))
    with decoded(source, path, lambda: _opened(source, footer)) as parquet:
        yield SegmentFile(path, source, parquet, pages)


def _as_written_here(table: pa.Table) -> pa.Table:
    """The same columns, with what may be null in them as it is in ours: other programs write each as one that may be.

    Tables that differ in that can't be joined. One with nulls where none may be is given as it is, for who looks for
    them.
    """
    wanted = pa.schema(
        field if ours is None else ours.with_type(field.type) if pa.types.is_binary_view(field.type) else ours
        for field, ours in ((field, _OURS.get(field.name)) for field in table.schema)
    )
    try:
        return table if table.schema.equals(wanted) else table.cast(wanted)
    except (ValueError, TypeError, pa.ArrowNotImplementedError):
        return table


def stored_checksums(files: Files, path: str) -> str | None:
    """The checksums that were written with a segment, as they stand in its footer; null where they can't be had.

    One look at the file's end. They are what a receipt names it by, not what it is judged by: nothing is compared.
    """
    try:
        with files.open_input(path) as source:
            return checksums_text(_footer(source))
    except (OSError, ValueError):
        return None


def _opened(source: pa.NativeFile, footer: bytes) -> pq.ParquetFile:
    # Requests to an object store are worth sending at once and ahead; from a local disk, or from memory, that costs a
    # tenth. The footer is there already: another request for it is worth saving, but to hand it on costs more than to
    # read it here.
    if _is_at_hand(source):
        return pq.ParquetFile(source, page_checksum_verification=True)
    metadata = pq.read_metadata(pa.BufferReader(footer))
    return pq.ParquetFile(source, metadata=metadata, pre_buffer=True, page_checksum_verification=True)


def _is_at_hand(source: pa.NativeFile) -> bool:
    """Whether to read from it is no request to a store."""
    return isinstance(source, pa.OSFile | pa.BufferReader)


def _footer(source: pa.NativeFile) -> bytes:
    """The footer, with its length and the magic bytes; less of it if the length is more than there can be."""
    size_bytes = source.size()
    read_bytes = min(size_bytes, _TAIL_BYTES)
    tail = source.read_at(read_bytes, size_bytes - read_bytes)
    wanted_bytes = min(footer_bytes(tail), size_bytes)
    if wanted_bytes > read_bytes:
        tail = source.read_at(wanted_bytes, size_bytes - wanted_bytes)
    return bytes(tail[-wanted_bytes:])


def _footer_at(source: pa.NativeFile) -> int:
    """Where the footer begins, in bytes."""
    return int(source.size()) - len(_footer(source))


def read_row_groups(files: Files, segment: Segment, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of a segment in offset order, of ``SCHEMA``, with the given columns or all.

    Raises:
        FileNotFoundError, LogCorrupt, OSError: as ``open_segment`` does.
    """
    with open_segment(files, segment) as segment_file:
        for row_group in range(len(segment_file.row_groups)):
            yield segment_file.read(row_group, columns)
