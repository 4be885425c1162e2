"""A segment as Iceberg's file metrics tell it.

No footer is read: whoever plans, or looks, needs no more than the manifest's entry.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from keptlog.log.segment import Segment
from keptlog.log.words.contradiction import contradiction
from keptlog.table.metadata.columns import DELETE_HORIZON, KEY, OFFSET, PARTITION, SPEC_ID, TIMESTAMP, VALUE

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

US_PER_MS = 1000
LONG = struct.Struct("<q")
_INT = struct.Struct("<i")
_FORMAT = "PARQUET"
"""Iceberg's name for it, in whichever letters a program writes it."""


class RecordRange(NamedTuple):
    """Which records of which log are in a file; both offsets are included."""

    partition: int
    first_offset: int
    last_offset: int


def offset_range(data_file: DataFile) -> RecordRange | None:
    """What a manifest's entry tells of the records in a file; null where another program wrote it, and it doesn't."""
    partition = partition_of(data_file)
    if partition is None:
        return None
    try:
        first, last = data_file.lower_bounds[OFFSET], data_file.upper_bounds[OFFSET]
        return RecordRange(partition, LONG.unpack(first)[0], LONG.unpack(last)[0])
    except (KeyError, TypeError, struct.error):
        return None


def partition_of(data_file: DataFile) -> int | None:
    """The topic-partition of a file; null if it does not tell, for another program has partitioned it otherwise.

    What stands in the partition's place then is some column's value, a record's key perhaps: it is neither taken for a
    number nor shown to anybody. The bounds of the column tell, if all of its rows have one partition.
    """
    if data_file.spec_id != SPEC_ID:
        try:
            lower, upper = data_file.lower_bounds[PARTITION], data_file.upper_bounds[PARTITION]
            return int(_INT.unpack(lower)[0]) if lower == upper else None
        except (KeyError, TypeError, struct.error):
            return None
    try:
        value = data_file.partition[0]
    except (IndexError, TypeError):
        return None
    return value if type(value) is int else None


def live_segment(topic: str, data_file: DataFile) -> tuple[int, Segment]:
    """The partition and the segment that a manifest's entry tells of.

    Raises:
        LogCorrupt: a metric is missing, or the file is of another format or is partitioned otherwise, so that keptlog
            did not write it.
    """
    # Asked first: what other formats are without is no damage.
    if data_file.file_format.upper() != _FORMAT:
        kind = data_file.file_format.upper()
        raise contradiction(f"topic {topic}: file {data_file.file_path} is in {kind}, and segments are Parquet files")
    partition = partition_of(data_file)
    if partition is None:
        raise contradiction(f"topic {topic}: file {data_file.file_path} is not partitioned as keptlog does it")
    try:
        records = data_file.record_count
        # Each of them may be null: Iceberg asks for none.
        lower, upper = data_file.lower_bounds or {}, data_file.upper_bounds or {}
        nulls = data_file.null_value_counts or {}
        horizon = lower.get(DELETE_HORIZON)
        return partition, Segment(
            path=data_file.file_path,
            base_offset=LONG.unpack(lower[OFFSET])[0],
            last_offset=LONG.unpack(upper[OFFSET])[0],
            first_timestamp_ms=LONG.unpack(lower[TIMESTAMP])[0] // US_PER_MS,
            largest_timestamp_ms=LONG.unpack(upper[TIMESTAMP])[0] // US_PER_MS,
            record_count=records,
            size_bytes=data_file.file_size_in_bytes,
            tombstone_count=nulls[VALUE],
            unkeyed_count=nulls[KEY],
            stamped_count=records - nulls[DELETE_HORIZON],
            earliest_delete_horizon_ms=None if horizon is None else LONG.unpack(horizon)[0] // US_PER_MS,
        )
    except (KeyError, TypeError, struct.error) as error:
        raise contradiction(
            f"topic {topic}: file {data_file.file_path} has no complete metrics ({type(error).__name__}: {error})"
        ) from error
