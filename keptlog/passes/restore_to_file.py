"""State out, into a file: one snapshot, partition by partition, in order, with tombstones and headers.

Memory is bounded: JSON lines are written record by record, Parquet a row group at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from keptlog.log.words.counted import counted
from keptlog.progress import Progress
from keptlog.sinks.parquet_file import write_parquet
from keptlog.sources.json_lines import to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from keptlog.table.reading.read import Reader

_PROGRESS_EVERY = 100_000


def restore_to_json_lines(reader: Reader, sink: BinaryIO, progress: Progress, *, latest: bool = False) -> int:
    """Write all records as JSON lines, in the form that ``keptlog append`` takes; gives their number.

    ``latest`` leaves only the latest record of each key, and none for a deleted key.

    Raises:
        StorageUnavailable: a segment was purged meanwhile, or storage can't be reached.
    """
    count, most = 0, _most(reader)
    for partition, record in reader.records(0, latest=latest):
        sink.write(to_json(partition, record).encode() + b"\n")
        count += 1
        if count % _PROGRESS_EVERY == 0:
            progress(_told(count, most))
    return count


def restore_to_parquet(reader: Reader, sink: BinaryIO, progress: Progress, *, latest: bool = False) -> int:
    """The same as a Parquet file (``keptlog.sinks.parquet_file``)."""
    count, most = 0, _most(reader)

    def told(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            yield table
            before, count = count, count + table.num_rows
            if before // _PROGRESS_EVERY < count // _PROGRESS_EVERY:
                progress(_told(count, most))

    write_parquet(sink, told(table for log in reader.logs for table in reader.tables(log, latest=latest)))
    return count


def _most(reader: Reader) -> int:
    """How many records there can be: below the log start, or of keys that have a later one, some are left out."""
    return sum(segment.record_count for log in reader.logs for segment in log.segments)


def _told(count: int, most: int) -> str:
    return f"wrote {counted(count, 'record')} of at most {most} ({count / most:.0%})"
