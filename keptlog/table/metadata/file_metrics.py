"""A segment as an entry of a manifest, for those who commit; what its metrics tell stands in ``segment_metrics``.

No footer is read in either direction: whoever writes a segment counts as it goes, and whoever plans needs no more than
the manifest's entry. Bounds are only kept of columns that hold nothing personal.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

from keptlog.log.segment import Segment
from keptlog.table.metadata.columns import DELETE_HORIZON, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, VALUE
from keptlog.table.metadata.schema import PARTITION_SPEC, SORT_ORDER
from keptlog.table.metadata.segment_metrics import LONG, US_PER_MS, live_segment

_INT = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One data file of a snapshot: the segment, and the manifest's entry, which a commit that touches it repeats."""

    partition: int
    segment: Segment
    entry: ManifestEntry
    manifest_path: str


def live_file(topic: str, entry: ManifestEntry, manifest_path: str) -> LiveFile:
    """Read a manifest's entry.

    Raises:
        LogCorrupt: a metric is missing, so that keptlog did not write the file.
    """
    partition, segment = live_segment(topic, entry.data_file)
    return LiveFile(partition, segment, entry, manifest_path)


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
        OFFSET: LONG.pack(segment.base_offset),
        TIMESTAMP: LONG.pack(segment.first_timestamp_ms * US_PER_MS),
    }
    if segment.earliest_delete_horizon_ms is not None:
        lower[DELETE_HORIZON] = LONG.pack(segment.earliest_delete_horizon_ms * US_PER_MS)
    upper = {
        PARTITION: _INT.pack(partition),
        OFFSET: LONG.pack(segment.last_offset),
        TIMESTAMP: LONG.pack(segment.largest_timestamp_ms * US_PER_MS),
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
