"""Whether a result is right: a digest of records, and that of what a contender has left.

A digest covers offset, timestamp, key, value, headers and delete horizon of every record, in order. It is made column
by column, so that it is the same however the records are cut into tables and files:

    offsets      8 bytes each
    keys         4 bytes of length each (-1 for null), and apart from them all bytes one after the other
    ...

What is to be left is known from how the log was made (``generated_log``), not from another engine.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from keptlog.storage.schema import SCHEMA

_NULL_TIME = -(2**63)
_PARTS = (
    "offset",
    "timestamp",
    "delete_horizon",
    "key lengths",
    "key",
    "value lengths",
    "value",
    "headers of a record",
    "header key lengths",
    "header key",
    "header value lengths",
    "header value",
)


class Digest:
    """Takes tables of records in order; only the columns of ``SCHEMA`` that a record's reader sees count."""

    def __init__(self) -> None:
        self._parts = {part: hashlib.blake2b(digest_size=16) for part in _PARTS}

    def update(self, table: pa.Table) -> None:
        for name in ("offset", "timestamp", "delete_horizon"):
            self._add_numbers(name, pc.fill_null(table[name].cast(pa.int64()), _NULL_TIME).to_numpy())
        self._add_bytes("key", table["key"])
        self._add_bytes("value", table["value"])
        headers = table["headers"]
        self._add_numbers("headers of a record", pc.list_value_length(headers).to_numpy().astype(np.int32))
        entries = pc.list_flatten(headers)
        self._add_bytes("header key", pc.struct_field(entries, "key").cast(pa.binary()))
        self._add_bytes("header value", pc.struct_field(entries, "value"))

    def hexdigest(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        for part in self._parts.values():
            whole.update(part.digest())
        return whole.hexdigest()

    def _add_numbers(self, name: str, numbers: npt.NDArray[Any]) -> None:
        self._parts[name].update(numbers.tobytes())

    def _add_bytes(self, name: str, column: pa.ChunkedArray) -> None:
        lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy()
        self._add_numbers(f"{name} lengths", lengths.astype(np.int32))
        for chunk in pc.fill_null(column, b"").chunks:
            positions = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            if len(chunk) and chunk.buffers()[2] is not None:
                data = memoryview(chunk.buffers()[2])
                self._parts[name].update(data[int(positions[0]) : int(positions[-1])])


def digests_of_parquet(paths: Iterable[str]) -> dict[int, str]:
    """The digest of each topic-partition in Parquet files, whose order is that of their first records."""
    return digests_of(tables_of(sorted(paths, key=_first_record)))


def digests_of(tables: Iterable[pa.Table]) -> dict[int, str]:
    """The digest of each topic-partition in tables, each of which holds its topic-partitions one after the other."""
    found: dict[int, Digest] = defaultdict(Digest)
    for table in tables:
        partitions = table["partition"].to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
        for start, end in pairwise(cuts):
            if end > start:
                found[int(partitions[start])].update(table.slice(start, end - start))
    return {partition: digest.hexdigest() for partition, digest in found.items()}


def tables_of(paths: Iterable[str]) -> Iterator[pa.Table]:
    """The records in Parquet files, a table for each row group."""
    for path in paths:
        with pq.ParquetFile(path) as parquet:
            for index in range(parquet.num_row_groups):
                yield parquet.read_row_group(index, columns=SCHEMA.names).select(SCHEMA.names).cast(_PLAIN)


def _first_record(path: str) -> tuple[int, int, str]:
    with pq.ParquetFile(path) as parquet:
        if parquet.metadata.num_rows == 0:
            return 0, 0, path
        first: Any = next(parquet.iter_batches(1, columns=["partition", "offset"])).to_pylist()[0]
    return first["partition"], first["offset"], path


def _plain(field: pa.Field) -> pa.Field:
    if pa.types.is_list(field.type):
        entry = field.type.value_type
        inner = pa.struct([pa.field(entry[at].name, entry[at].type) for at in range(entry.num_fields)])
        return pa.field(field.name, pa.list_(inner))
    return pa.field(field.name, field.type)


_PLAIN = pa.schema([_plain(field) for field in SCHEMA])
"""Names and types alone: engines differ in what they say of nulls and field ids."""


def bytes_of(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
