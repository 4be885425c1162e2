"""A log as one Parquet file: what a record is to those who produced it, and where it stood.

    key, value    binary, null where the record has none
    timestamp     microseconds, UTC
    headers       list of key and value, in their order; never null
    partition, offset

Tables go through as they are read, a row group each, so memory is bounded and no record becomes an object.
Pages have checksums, so that an ``append`` of such a file refuses one that was damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from keptlog.storage.schema import SCHEMA

COLUMNS = ("key", "value", "timestamp", "headers", "partition", "offset")
_FILE_SCHEMA = pa.schema([SCHEMA.field(name) for name in COLUMNS])
_OPTIONS = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}


def write_parquet(sink: BinaryIO, tables: Iterable[pa.Table]) -> None:
    """Write tables of ``SCHEMA``; without any, a file with the columns and no rows."""
    with pq.ParquetWriter(sink, _FILE_SCHEMA, **_OPTIONS) as parquet:
        for table in tables:
            parquet.write_table(table.select(COLUMNS).cast(_FILE_SCHEMA), row_group_size=table.num_rows)
