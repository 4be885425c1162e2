"""Records from Parquet files: a row is a record, whatever its columns are called.

    id | document | changed_at          --column key=id --column value=document --column timestamp=changed_at
    ---+----------+-----------
    7  | {...}    | 2026-11-21          a record with key 7
    8  | null     | 2026-11-21          a tombstone

A column with the name of a field (key, value, timestamp, headers, partition) is taken for it unless another one is
named; a field without a name (``headers=``) is left out. Only ``offset`` must be asked for: a record that keeps its
offset goes another way in (``keptlog.ingest.offset_files``).

What the bytes of a key are decides which records supersede each other, so nothing is guessed. Text is its UTF-8 bytes,
bytes are bytes, a whole number is its decimal digits (also its JSON form); floats, dates, decimals, UUIDs and
structs have several forms, and are refused: the query that writes the file must choose one.

Rows are read in batches of some MiB, however long a row group is. A bad row ends the reading behind the rows before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.log.words.no_text import why_packed
from keptlog.sources.parquet_columns import BadRow, Column, columns_for, to_rows
from keptlog.sources.place import Place

_BATCH_BYTES = 8 * 2**20
_BATCH_ROWS = 8192
_READ_BYTES = 2**20
_MAGIC, _MAGIC_ENCRYPTED = b"PAR1", b"PARE"
_ENCRYPTED = "it is encrypted: write it without encryption"


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """One file. ``columns`` maps fields to column names; ``now_ms`` is the timestamp of rows that have none."""

    path: str
    columns: Mapping[str, str]
    now_ms: int

    def records(self, place: Place) -> Iterator[NewRecord]:
        """Each row as a record; ``place`` goes along.

        Raises:
            InvalidRecord: what is wrong with the row at ``place``, or with the file.
        """
        for batch in self.batches(place):
            columns = (_python(batch, name) for name in ("key", "value", "timestamp", "headers", "partition"))
            rows = zip(*columns, strict=True)
            for key, value, timestamp_ms, headers, partition in rows:
                place.number += 1
                pairs = tuple((each["key"], each["value"]) for each in headers) if headers else ()
                yield NewRecord(key, value, timestamp_ms, partition, pairs)

    def batches(self, place: Place) -> Iterator[pa.RecordBatch]:
        """The rows in batches of ``ROWS``; ``place`` is the row before each, or the bad one.

        Raises:
            InvalidRecord: what is wrong with the row at ``place``, or with the file.
        """
        place.unit = "row"
        if Path(self.path).is_fifo():
            raise InvalidRecord("Parquet can't be read from a pipe, its end comes first: name a file")
        try:
            file = _opened(self.path)
        except (pa.ArrowException, OSError) as error:
            raise InvalidRecord(_why_not_opened(self.path, error)) from None
        with file:
            total_rows = max(file.metadata.num_rows, 1)
            place.share = lambda: place.number / total_rows
            columns = columns_for(file.schema_arrow, self.columns)
            rows_before = 0
            for raw in _raw_batches(file, columns):
                rows, bad = _until_bad(raw, columns, self.now_ms)
                place.number = rows_before
                yield rows
                if bad:
                    place.number = rows_before + bad.index + 1
                    raise InvalidRecord(f"{bad.why}")
                rows_before += raw.num_rows


def _why_not_opened(path: str, error: Exception) -> str:
    """What the first and the last bytes of a file say; the error if they are those of Parquet."""
    head, tail = _ends(path) if Path(path).is_file() else (_MAGIC, _MAGIC)
    if head == _MAGIC_ENCRYPTED:
        return _ENCRYPTED
    return f"it is no Parquet file ({_why_none(head, tail) or _line(error)})"


def _ends(path: str) -> tuple[bytes, bytes]:
    with Path(path).open("rb") as file:
        head = file.read(4)
        file.seek(-min(4, Path(path).stat().st_size), 2)
        return head, file.read(4)


def _why_none(head: bytes, tail: bytes) -> str | None:
    if not head:
        return "it is empty"
    if head == tail == _MAGIC:
        return None
    if head == _MAGIC:
        return "its end is missing"
    if packed := why_packed(head):
        return packed
    looks = ", but with what JSON lines begin with: say --format jsonl" if head[:1] in b"{[" else ""
    return f"it does not begin with PAR1{looks}"


def _opened(path: str) -> pq.ParquetFile:
    """Page checksums are looked at where the file has them, as one of ``restore`` does.

    Times of twelve bytes (INT96), as Spark writes them, would be nanoseconds, which end in the year 2262.
    """
    return pq.ParquetFile(
        path,
        pre_buffer=False,
        buffer_size=_READ_BYTES,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="ms",
    )


def _raw_batches(file: pq.ParquetFile, columns: Mapping[str, Column]) -> Iterator[pa.RecordBatch]:
    names = sorted({column.name for column in columns.values()})
    wanted = tuple(f"{name}." for name in names)
    paths = (f"{file.schema.column(index).path}." for index in range(file.metadata.num_columns))
    indexes = [index for index, path in enumerate(paths) if path.startswith(wanted)]
    try:
        # Arrow aborts the process that asks for the size of an encrypted column; to read one is an error. A writer
        # encrypts a column in all row groups of a file.
        next(file.iter_batches(batch_size=1, columns=names, use_threads=False), None)
        for number in range(file.num_row_groups):
            rows = _batch_rows(file.metadata.row_group(number), indexes)
            yield from file.iter_batches(batch_size=rows, row_groups=[number], columns=names, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        is_encrypted = "Cannot decrypt" in str(error)
        raise InvalidRecord(_ENCRYPTED if is_encrypted else f"it can't be read further ({_line(error)})") from None


def _batch_rows(group: pq.RowGroupMetaData, indexes: Sequence[int]) -> int:
    """So many rows as have about ``_BATCH_BYTES`` in these columns, if all are alike."""
    size_bytes = sum(group.column(index).total_uncompressed_size for index in indexes)
    rows: int = group.num_rows * _BATCH_BYTES // max(size_bytes, 1)
    return max(1, min(_BATCH_ROWS, rows))


def _until_bad(raw: pa.RecordBatch, columns: Mapping[str, Column], now_ms: int) -> tuple[pa.RecordBatch, BadRow | None]:
    """The rows before the first bad one; all of them if there is none."""
    try:
        return to_rows(raw, columns, now_ms), None
    except BadRow as bad:
        rows, earlier = _until_bad(raw.slice(0, bad.index), columns, now_ms)
        return rows, earlier or bad


def _python(batch: pa.RecordBatch, name: str) -> list[object]:
    column = batch.column(name)
    is_empty = name == "headers" and not len(column.flatten())
    return [None] * batch.num_rows if is_empty else column.to_pylist()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
