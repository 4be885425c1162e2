"""The records of one snapshot as an Arrow stream, for engines that read Arrow.

    for batch in stream.batches(): …        a row group at a time, whatever the size of the topic
    duckdb.from_arrow(stream)               whoever knows Arrow's C interface reads it by itself

Each time it is read it begins anew, with the same records: those of its snapshot. So it may be joined with itself, or
queried twice. Memory is that of one row group, and, for the latest records, of the keys of one log.

Spark's workers can't be handed a stream; they are handed its ``logs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from keptlog.log.segment import Log
from keptlog.storage.schema import SCHEMA
from keptlog.table.io.files import TableFiles
from keptlog.table.reading.read import Reader


@dataclass(frozen=True)
class LogRecords:
    """The records of one log. Pickles."""

    files: TableFiles
    log: Log
    latest: bool
    columns: tuple[str, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its records, by offset.

        Raises:
            StorageUnavailable: a segment is gone, or storage can't be reached.
            LogCorrupt: a file is damaged.
        """
        # Whether a file that is gone is lost or was purged, only the catalog knows, which is not asked from a task.
        yield from _batches(Reader(self.files, [self.log], tuple), self.columns, latest=self.latest)


@dataclass(frozen=True)
class RecordStream:
    """What a reader reads, as Arrow."""

    reader: Reader
    latest: bool = True
    """Only the latest record of each key, and none for a deleted key."""
    columns: tuple[str, ...] = tuple(SCHEMA.names)
    """Of ``keptlog.storage.schema.SCHEMA``, in the order in which they come."""

    @property
    def schema(self) -> pa.Schema:
        return _schema(self.columns)

    @property
    def logs(self) -> list[LogRecords]:
        """The same, log by log."""
        return [LogRecords(self.reader.files, log, self.latest, self.columns) for log in self.reader.logs]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The records by partition and offset; ``columns`` leaves only some of the stream's.

        Raises:
            StorageUnavailable: a segment was purged meanwhile, or storage can't be reached.
            LogCorrupt: a file is damaged, or is lost.
        """
        yield from _batches(self.reader, self.columns if columns is None else columns, latest=self.latest)

    def to_reader(self) -> pa.RecordBatchReader:
        """The same as Arrow's reader, which can be read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()


def _schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in columns])


def _batches(reader: Reader, columns: Sequence[str], *, latest: bool) -> Iterator[pa.RecordBatch]:
    schema = _schema(columns)
    for log in reader.logs:
        for table in reader.tables(log, latest=latest, columns=columns):
            yield from pa.Table.from_arrays(table.columns, schema=schema).to_batches()
