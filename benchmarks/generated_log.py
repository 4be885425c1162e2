"""A log on local files, the same for the same seed: a clean section, one record a key, and updates of random keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from keptlog.log.plan import Step, StepKind
from keptlog.log.segment import Segment
from keptlog.log.selection import Trigger
from keptlog.log.strategy import Strategy
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_writer import SegmentWriter

TOPIC = "generated.user-profiles"
_BATCH_RECORDS = 100_000
_SEGMENT_BYTES = 64 * 2**20
_FIRST_TIMESTAMP_US = 1_700_000_000_000_000
_TOMBSTONE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Shape:
    """How the log looks; a value is half random bytes and half one of sixteen phrases."""

    clean_records: int
    dirty_records: int
    value_bytes: int = 200
    seed: int = 7


def generate(files: Files, folder: Path, shape: Shape) -> Step:
    """Write the log, and describe its clean."""
    dice = np.random.default_rng(shape.seed)

    def path_for(base_offset: int) -> str:
        return f"{folder}/partition=0/{base_offset:020d}-in.parquet"

    def write(keys: npt.NDArray[np.int64], first_offset: int) -> list[Segment]:
        writer = SegmentWriter(files, path_for, _SEGMENT_BYTES)
        for start in range(0, len(keys), _BATCH_RECORDS):
            batch = keys[start : start + _BATCH_RECORDS]
            tombstones = dice.random(len(batch)) < (_TOMBSTONE_SHARE if first_offset else 0)
            writer.write(_batch(batch, first_offset + start, _values(dice, shape.value_bytes, tombstones)))
        return writer.finish()

    clean = write(np.arange(shape.clean_records, dtype=np.int64), 0)
    dirty = write(dice.integers(0, shape.clean_records, shape.dirty_records), shape.clean_records)
    return Step(
        kind=StepKind.COMPACT,
        trigger=Trigger.REQUESTED,
        topic_partition=TopicPartition(TOPIC, 0),
        segments=(*clean, *dirty),
        first_dirty_offset=shape.clean_records,
        end_offset=shape.clean_records + shape.dirty_records,
        checkpoint=shape.clean_records,
        log_start_offset=0,
        now_ms=_FIRST_TIMESTAMP_US // 1000 + 10**9,
        delete_retention_ms=86_400_000,
        segment_bytes=2**30,
        strategy=Strategy(),
        cleanable_ratio=0.2,
        earliest_uncompacted_ms=None,
    )


def _batch(keys: npt.NDArray[np.int64], first_offset: int, values: pa.Array) -> pa.Table:
    count = len(keys)
    offsets = np.arange(first_offset, first_offset + count, dtype=np.int64)
    columns = [
        pa.array(np.zeros(count, np.int32)),
        pa.array(offsets),
        pa.array(_FIRST_TIMESTAMP_US + offsets * 1000).cast(SCHEMA.field("timestamp").type),
        pa.array(np.zeros(count, np.int32)),
        pa.array([b"user-%09d" % key for key in keys.tolist()], pa.binary()),
        values,
        pa.ListArray.from_arrays(np.zeros(count + 1, np.int32), pa.array([], SCHEMA.field("headers").type.value_type)),
        pa.nulls(count, SCHEMA.field("delete_horizon").type),
    ]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _values(dice: np.random.Generator, value_bytes: int, tombstones: npt.NDArray[np.bool_]) -> pa.Array:
    half = value_bytes // 2
    phrases = np.frombuffer(np.random.default_rng(0).bytes(16 * half), np.uint8).reshape(16, half)
    values = np.empty((len(tombstones), value_bytes), np.uint8)
    values[:, :half] = phrases[dice.integers(0, 16, len(tombstones))]
    values[:, half:] = dice.integers(0, 256, (len(tombstones), value_bytes - half), np.uint8)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(value_bytes), len(tombstones), [pa.array(~tombstones).buffers()[1], pa.py_buffer(values.tobytes())]
    )
    return fixed.cast(pa.binary())
