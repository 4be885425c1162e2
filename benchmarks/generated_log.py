"""Logs on local files, the same for the same seed, and the digest of what a right clean leaves of them.

    clean section   one record of every key, in no order unless ``Keys`` says so, with the gaps that earlier cleans left
    dirty section   new records of these keys (``Keys`` says which), dense

The topic's ``segment.bytes`` is the size of these segments, so that the clean ones are full, as cleans leave them.

As in a log that lives: 1 % of all records have a header, 1 % of the dirty ones are tombstones, 0.4 % of the clean ones
are tombstones with a delete horizon, which has passed for half of them. A key has 14 bytes, five of them the same in
all. A value is 7/16 random bytes, the rest one of sixteen phrases: zstd at level 1 makes 1/2.2 of it.

With ``with_versions`` every record has a version, in its timestamp and in a header alike; of the dirty ones, one in
twenty is late: its version lies anywhere in the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.digest import Digest
from keptlog.log.assessment import Trigger
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_writer import SegmentWriter

TOPIC = "generated.user-profiles"
VERSION_HEADER = "version"
_FIRST_TIMESTAMP_MS = 1_700_000_000_000
_HOUR_MS = 3_600_000
_BATCH_BYTES = 20_000_000
_DIRTY_TOMBSTONES, _CLEAN_TOMBSTONES, _HEADERS, _LATE = 0.01, 0.004, 0.01, 0.05
_NONE = -1

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Keys(Enum):
    """Which keys the dirty records have."""

    RANDOM = auto()
    """Any of the clean section, all as likely."""
    ZIPF = auto()
    """Any of the clean section, the n-th as likely as 1/n."""
    NEWEST = auto()
    """Those of the newest 5 % of the clean section."""
    TEN_VERSIONS = auto()
    """A tenth as many keys as dirty records."""
    UNIQUE = auto()
    """Every key once; the clean section has some of them."""
    TIME_ORDER = auto()
    """Those of the newest 5 % of a clean section whose keys rise with their offsets, and one old key."""


class Expect(Enum):
    """What a contender is to leave."""

    LATEST_BY_OFFSET = auto()
    LATEST_BY_VERSION = auto()
    EVERYTHING = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    """How a log looks; records are those of each of its topic-partitions."""

    clean_records: int
    dirty_records: int
    keys: Keys = Keys.RANDOM
    value_bytes: int = 200
    partitions: int = 1
    segments: int = 20
    """In each topic-partition, but for the largest logs: no segment has more than 250,000 records."""
    with_versions: bool = False
    clean_tombstones: float = _CLEAN_TOMBSTONES
    seed: int = 7

    @property
    def records(self) -> int:
        return self.partitions * (self.clean_records + self.dirty_records)

    @property
    def segment_records(self) -> int:
        return min(250_000, max(1, (self.clean_records + self.dirty_records) // self.segments))


@dataclass(frozen=True)
class GeneratedLog:
    """The clean of each topic-partition as a step, and by topic-partition the digests of what may be left."""

    shape: Shape
    steps: tuple[Compact, ...]
    expected: dict[Expect, dict[int, str]]

    @property
    def paths(self) -> list[str]:
        return [segment.path for step in self.steps for segment in step.segments]

    @property
    def dirty_paths(self) -> list[str]:
        return [segment.path for step in self.steps for segment in step.dirty]


def generate(files: Files, folder: Path, shape: Shape) -> GeneratedLog:
    """Write a log below a folder."""
    expected: dict[Expect, dict[int, str]] = {expect: {} for expect in Expect}
    steps = []
    for partition in range(shape.partitions):
        columns = _columns(shape, partition)
        digests = {expect: Digest() for expect in Expect}
        segments: list[Segment] = []
        for start, end in _segment_ranges(shape):
            writer = SegmentWriter(files, lambda base: f"{folder}/partition={partition}/{base:020d}-in.parquet", 2**40)  # noqa: B023  # used in this round only
            for rows in _slices(start, end, max(1, _BATCH_BYTES // shape.value_bytes)):
                batch = _batch(shape, columns, rows)
                writer.write(batch)
                for expect, digest in digests.items():
                    digest.update(_left(batch, columns, rows, expect))
            segments += writer.finish()
        for expect, digest in digests.items():
            expected[expect][partition] = digest.hexdigest()
        steps.append(_step(columns, partition, tuple(segments)))
    return GeneratedLog(shape, tuple(steps), expected)


@dataclass(frozen=True)
class _Columns:
    """One topic-partition without its values: a number for each record."""

    partition: int
    keys: Numbers
    offsets: Numbers
    timestamps_ms: Numbers
    horizons_ms: Numbers
    """-1 for none."""
    is_tombstone: Flags
    is_dirty: Flags
    left: dict[Expect, Flags]
    dice: np.random.Generator
    now_ms: int


def _columns(shape: Shape, partition: int) -> _Columns:
    dice = np.random.default_rng([shape.seed, partition])
    clean, dirty = shape.clean_records, shape.dirty_records
    keys = _keys(dice, shape)
    offsets = np.concatenate([np.cumsum(dice.integers(1, 3, clean)), 2 * clean + np.arange(dirty)]).astype(np.int64)
    is_dirty = np.arange(clean + dirty) >= clean
    is_tombstone = dice.random(clean + dirty) < np.where(is_dirty, _DIRTY_TOMBSTONES, shape.clean_tombstones)
    timestamps_ms = _FIRST_TIMESTAMP_MS + offsets
    now_ms = int(timestamps_ms[-1]) + 24 * _HOUR_MS
    if shape.with_versions:
        late = is_dirty & (dice.random(clean + dirty) < _LATE)
        timestamps_ms[late] = _FIRST_TIMESTAMP_MS + dice.integers(0, offsets[-1], int(late.sum()))
    has_horizon = is_tombstone & ~is_dirty
    horizons_ms = np.where(has_horizon, now_ms + np.where(offsets % 2, _HOUR_MS, -_HOUR_MS), _NONE)
    has_expired = has_horizon & (horizons_ms <= now_ms)
    left = {
        Expect.LATEST_BY_OFFSET: _latest(keys, offsets) & ~has_expired,
        Expect.LATEST_BY_VERSION: _latest(keys, timestamps_ms) & ~has_expired,
        Expect.EVERYTHING: np.ones(clean + dirty, dtype=bool),
    }
    return _Columns(partition, keys, offsets, timestamps_ms, horizons_ms, is_tombstone, is_dirty, left, dice, now_ms)


def _keys(dice: np.random.Generator, shape: Shape) -> Numbers:
    clean = dice.permutation(shape.clean_records)
    count = shape.dirty_records
    newest = clean[-max(1, shape.clean_records // 20) :]
    match shape.keys:
        case Keys.RANDOM:
            dirty = dice.integers(0, shape.clean_records, count)
        case Keys.ZIPF:
            dirty = clean[(shape.clean_records ** dice.random(count)).astype(np.int64) - 1]
        case Keys.NEWEST:
            dirty = newest[dice.integers(0, len(newest), count)]
        case Keys.TEN_VERSIONS:
            dirty = dice.integers(0, max(1, count // 10), count)
        case Keys.UNIQUE:
            dirty = dice.permutation(count)
        case Keys.TIME_ORDER:
            clean = np.arange(shape.clean_records)
            dirty = clean[-len(newest) :][dice.integers(0, len(newest), count)]
            dirty[0] = len(clean) // 3
    return np.concatenate([clean, dirty]).astype(np.int64)


def _latest(keys: Numbers, ranks: Numbers) -> Flags:
    """Of every key the record of the highest rank, and of equal ranks the last."""
    in_order = np.argsort(ranks, kind="stable")
    latest = np.full(int(keys.max()) + 1, _NONE)
    latest[keys[in_order]] = in_order  # of several with the same key the last one stays
    is_latest = np.zeros(len(keys), dtype=bool)
    is_latest[latest[latest != _NONE]] = True
    return is_latest


def _segment_ranges(shape: Shape) -> Iterator[tuple[int, int]]:
    """Rows of the segments; none holds clean and dirty records."""
    for first, end in ((0, shape.clean_records), (shape.clean_records, shape.clean_records + shape.dirty_records)):
        for rows in _slices(first, end, shape.segment_records):
            yield rows.start, rows.stop


def _slices(start: int, end: int, length: int) -> Iterator[slice]:
    for first in range(start, end, length):
        yield slice(first, min(first + length, end))


def _batch(shape: Shape, columns: _Columns, rows: slice) -> pa.Table:
    dice, count = columns.dice, rows.stop - rows.start
    timestamps = pa.array(columns.timestamps_ms[rows] * 1000)
    horizons_ms = columns.horizons_ms[rows]
    arrays = [
        pa.array(np.full(count, columns.partition, np.int32)),
        pa.array(columns.offsets[rows]),
        timestamps.cast(SCHEMA.field("timestamp").type),
        pa.array(np.zeros(count, np.int32)),
        _key_bytes(columns.keys[rows]),
        _values(dice, shape.value_bytes, columns.is_tombstone[rows]),
        _version_headers(columns.timestamps_ms[rows]) if shape.with_versions else _headers(dice.random(count)),
        pa.array(horizons_ms * 1000, mask=horizons_ms == _NONE).cast(SCHEMA.field("delete_horizon").type),
    ]
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, SCHEMA, strict=True)], schema=SCHEMA
    )


def _left(batch: pa.Table, columns: _Columns, rows: slice, expect: Expect) -> pa.Table:
    """The records that are to be left; tombstones get their horizon where anything is cleaned at all."""
    if expect is not Expect.EVERYTHING:
        stamped = columns.is_tombstone[rows] & columns.is_dirty[rows]
        horizons_ms = np.where(stamped, columns.now_ms + 24 * _HOUR_MS, columns.horizons_ms[rows])
        field = SCHEMA.field("delete_horizon")
        array = pa.array(horizons_ms * 1000, mask=horizons_ms == _NONE).cast(field.type)
        batch = batch.set_column(SCHEMA.get_field_index(field.name), field, array)
    return batch.filter(pa.array(columns.left[expect][rows]))


def _key_bytes(keys: Numbers) -> pa.Array:
    text = np.empty((len(keys), 14), np.uint8)
    text[:, :5] = np.frombuffer(b"user-", np.uint8)
    text[:, 5:] = keys[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")
    return _fixed(text).cast(pa.binary())


def _values(dice: np.random.Generator, value_bytes: int, is_tombstone: Flags) -> pa.Array:
    told = value_bytes * 9 // 16
    phrases = np.frombuffer(np.random.default_rng(0).bytes(16 * told), np.uint8).reshape(16, told)
    values = np.empty((len(is_tombstone), value_bytes), np.uint8)
    values[:, :told] = phrases[dice.integers(0, 16, len(is_tombstone))]
    values[:, told:] = dice.integers(0, 256, (len(is_tombstone), value_bytes - told), np.uint8)
    return _fixed(values, pa.array(~is_tombstone).buffers()[1]).cast(pa.binary())


def _fixed(rows: npt.NDArray[np.uint8], validity: Any = None) -> pa.Array:
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), buffers)


def _headers(chances: npt.NDArray[np.float64]) -> pa.Array:
    has_header = chances < _HEADERS
    count = int(has_header.sum())
    positions = np.concatenate([[0], np.cumsum(has_header)]).astype(np.int32)
    return _header_lists(positions, pa.array(["source"] * count, pa.string()), pa.array([b"crm"] * count, pa.binary()))


def _version_headers(versions: Numbers) -> pa.Array:
    names = pa.array([VERSION_HEADER] * len(versions), pa.string())
    longs = _fixed(versions.astype(">i8").view(np.uint8).reshape(-1, 8)).cast(pa.binary())
    return _header_lists(np.arange(len(versions) + 1, dtype=np.int32), names, longs)


def _header_lists(positions: npt.NDArray[np.int32], names: pa.Array, values: pa.Array) -> pa.Array:
    entry = SCHEMA.field("headers").type.value_type
    return pa.ListArray.from_arrays(positions, pa.StructArray.from_arrays([names, values], fields=list(entry)))


def _step(columns: _Columns, partition: int, segments: tuple[Segment, ...]) -> Compact:
    first_dirty_offset = int(columns.offsets[np.flatnonzero(columns.is_dirty)[0]])
    return Compact(
        trigger=Trigger.REQUESTED,
        topic_partition=TopicPartition(TOPIC, partition),
        segments=segments,
        first_dirty_offset=first_dirty_offset,
        end_offset=int(columns.offsets[-1]) + 1,
        checkpoint=first_dirty_offset,
        log_start_offset=0,
        now_ms=columns.now_ms,
        delete_retention_ms=24 * _HOUR_MS,
        segment_bytes=max(segment.size_bytes for segment in segments),
        strategy=Strategy(),
        cleanable_ratio=0.5,
        earliest_uncompacted_ms=None,
    )
