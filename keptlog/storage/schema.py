"""The columns of a segment file, and records to and from them.

Field ids are those that Iceberg's ``create_table`` assigns (top level first, then nested); they are in the file, so
that every reader maps columns by id and a wrong file is refused. ``headers`` is never null: some readers take a null
list for an empty one, so there is only the empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from keptlog.errors import LogCorrupt
from keptlog.log.record import Record, TimestampType


def _field(field_id: int, name: str, kind: pa.DataType, *, nullable: bool) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"PARQUET:field_id": str(field_id)})


_TIMESTAMP = pa.timestamp("us", tz="UTC")
_HEADER = pa.struct([_field(10, "key", pa.string(), nullable=False), _field(11, "value", pa.binary(), nullable=True)])

SCHEMA = pa.schema(
    [
        _field(1, "partition", pa.int32(), nullable=False),
        _field(2, "offset", pa.int64(), nullable=False),
        _field(3, "timestamp", _TIMESTAMP, nullable=False),
        _field(4, "timestamp_type", pa.int32(), nullable=False),
        _field(5, "key", pa.binary(), nullable=True),
        _field(6, "value", pa.binary(), nullable=True),
        _field(7, "headers", pa.list_(_field(9, "element", _HEADER, nullable=False)), nullable=False),
        _field(8, "delete_horizon", _TIMESTAMP, nullable=True),
    ]
)
"""Times are microseconds in the file, milliseconds everywhere else."""

US_PER_MS = 1000
LARGEST_STORABLE_MS = (2**63 - 1) // US_PER_MS
"""Beyond it, and below its negative, a timestamp is no number of microseconds that a file can hold."""


def to_arrow(partition: int, records: Sequence[Record]) -> pa.Table:
    """Records of one topic-partition as a table of ``SCHEMA``, a row each, in their order.

    Raises:
        OverflowError: a time is beyond ``LARGEST_STORABLE_MS``.
    """
    horizons = [None if r.delete_horizon_ms is None else r.delete_horizon_ms * US_PER_MS for r in records]
    return pa.Table.from_arrays(
        [
            pa.array([partition] * len(records), pa.int32()),
            pa.array([r.offset for r in records], pa.int64()),
            pa.array([r.timestamp_ms * US_PER_MS for r in records], pa.int64()).cast(_TIMESTAMP),
            pa.array([int(r.timestamp_type) for r in records], pa.int32()),
            pa.array([r.key for r in records], pa.binary()),
            pa.array([r.value for r in records], pa.binary()),
            pa.array([[{"key": k, "value": v} for k, v in r.headers] for r in records], SCHEMA.field("headers").type),
            pa.array(horizons, pa.int64()).cast(_TIMESTAMP),
        ],
        schema=SCHEMA,
    )


def from_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    """Records from batches that hold (at least) the columns of ``SCHEMA``.

    Raises:
        LogCorrupt: while iterating: another program has written values that no record has.
    """
    for batch in batches:
        columns = {name: batch.column(name) for name in SCHEMA.names}
        times = columns["timestamp"].cast(pa.int64()).to_pylist()
        horizons = columns["delete_horizon"].cast(pa.int64()).to_pylist()
        rest = (columns[name].to_pylist() for name in ("offset", "key", "value", "timestamp_type", "headers"))
        for time_us, horizon_us, offset, key, value, kind, headers in zip(times, horizons, *rest, strict=True):
            try:
                record = Record(
                    offset=offset,
                    key=key,
                    value=value,
                    timestamp_ms=time_us // US_PER_MS,
                    timestamp_type=TimestampType(kind),
                    headers=tuple((header["key"], header["value"]) for header in headers or ()),
                    delete_horizon_ms=None if horizon_us is None else horizon_us // US_PER_MS,
                )
            except (TypeError, ValueError) as error:
                raise LogCorrupt(
                    f"partition {columns['partition'][0]}, offset {offset}: no record is as this row (timestamp "
                    f"{time_us} us, timestamp_type {kind}, or a header without a key): another program has written it, "
                    "and keptlog repair takes back what others have written"
                ) from error
            yield record
