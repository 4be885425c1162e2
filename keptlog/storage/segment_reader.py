"""Reads segment files, row group by row group and only the columns asked for, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from keptlog.log.segment import Segment
from keptlog.storage.files import Files


@contextmanager
def open_segment(files: Files, segment: Segment) -> Iterator[pq.ParquetFile]:
    """A segment's Parquet file, open.

    Raises:
        FileNotFoundError: a purge has deleted it; the reader's snapshot is older than ``file.delete.delay.ms``.
    """
    with files.open_input(segment.path) as source:
        # Requests to an object store are worth sending at once and ahead; from a local disk that costs a tenth.
        is_remote = not isinstance(source, pa.OSFile)
        with pq.ParquetFile(source, pre_buffer=is_remote) as parquet:
            yield parquet


def read_row_groups(files: Files, segment: Segment, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of a segment in offset order, of ``SCHEMA``, with the given columns or all.

    Raises:
        FileNotFoundError: a purge has deleted it.
    """
    with open_segment(files, segment) as parquet:
        for index in range(parquet.num_row_groups):
            yield parquet.read_row_group(index, columns=columns, use_threads=False)
