"""A segment as Iceberg's file metrics tell it, and back.

No footer is read in either direction: whoever writes a segment counts as it goes, and whoever plans needs no more than
the manifest's entry. Bounds are only kept of columns that hold nothing personal.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

from keptlog.errors import LogCorrupt
from keptlog.log.segment import Segment
from keptlog.storage.schema import US_PER_MS
from keptlog.table.schema import (
    DELETE_HORIZON,
    KEY,
    OFFSET,
    PARTITION,
    PARTITION_SPEC,
    SORT_ORDER,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)

_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One data file of a snapshot: the segment, and the manifest's entry, which a commit that touches it repeats."""

    partition: int
    segment: Segment
    entry: ManifestEntry
    manifest_path: str


class RecordRange(NamedTuple):
    """Which records of which log are in a file; both offsets are included."""

    partition: int
    first_offset: int
    last_offset: int


def offset_range(data_file: DataFile) -> RecordRange | None:
    """What a manifest's entry tells of the records in a file; null where another program wrote it, and it doesn't."""
    try:
        first, last = data_file.lower_bounds[OFFSET], data_file.upper_bounds[OFFSET]
        return RecordRange(int(data_file.partition[0]), _LONG.unpack(first)[0], _LONG.unpack(last)[0])
    except (KeyError, IndexError, TypeError, struct.error):
        return None


def live_file(topic: str, entry: ManifestEntry, manifest_path: str) -> LiveFile:
    """Read a manifest's entry.

    Raises:
        LogCorrupt: a metric is missing, so that keptlog did not write the file.
    """
    data_file = entry.data_file
    try:
        records = data_file.record_count
        lower, upper, nulls = data_file.lower_bounds, data_file.upper_bounds, data_file.null_value_counts
        horizon = lower.get(DELETE_HORIZON)
        segment = Segment(
            path=data_file.file_path,
            base_offset=_LONG.unpack(lower[OFFSET])[0],
            last_offset=_LONG.unpack(upper[OFFSET])[0],
            first_timestamp_ms=_LONG.unpack(lower[TIMESTAMP])[0] // US_PER_MS,
            largest_timestamp_ms=_LONG.unpack(upper[TIMESTAMP])[0] // US_PER_MS,
            record_count=records,
            size_bytes=data_file.file_size_in_bytes,
            tombstone_count=nulls[VALUE],
            unkeyed_count=nulls[KEY],
            stamped_count=records - nulls[DELETE_HORIZON],
            earliest_delete_horizon_ms=None if horizon is None else _LONG.unpack(horizon)[0] // US_PER_MS,
        )
        return LiveFile(int(data_file.partition[0]), segment, entry, manifest_path)
    except (KeyError, TypeError, struct.error) as error:
        raise LogCorrupt(
            f"topic {topic}: file {data_file.file_path} has no complete metrics ({type(error).__name__}: {error}): "
            f"another program wrote it; keptlog repair {topic} takes it out again"
        ) from error


def data_file_of(partition: int, segment: Segment) -> DataFile:
    """The manifest's entry for a segment that is about to become live."""
    counted = (PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, DELETE_HORIZON)
    nulls = dict.fromkeys(counted, 0) | {
        KEY: segment.unkeyed_count,
        VALUE: segment.tombstone_count,
        DELETE_HORIZON: segment.record_count - segment.stamped_count,
    }
    lower = {
        PARTITION: _INT.pack(partition),
        OFFSET: _LONG.pack(segment.base_offset),
        TIMESTAMP: _LONG.pack(segment.first_timestamp_ms * US_PER_MS),
    }
    if segment.earliest_delete_horizon_ms is not None:
        lower[DELETE_HORIZON] = _LONG.pack(segment.earliest_delete_horizon_ms * US_PER_MS)
    upper = {
        PARTITION: _INT.pack(partition),
        OFFSET: _LONG.pack(segment.last_offset),
        TIMESTAMP: _LONG.pack(segment.largest_timestamp_ms * US_PER_MS),
    }
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=segment.path,
        file_format=FileFormat.PARQUET,
        partition=Record(partition),
        record_count=segment.record_count,
        file_size_in_bytes=segment.size_bytes,
        column_sizes={},
        value_counts=dict.fromkeys(counted, segment.record_count),
        null_value_counts=nulls,
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=SORT_ORDER.order_id,
    )
    data_file.spec_id = PARTITION_SPEC.spec_id
    return data_file
