"""Keys beyond memory: what the tasks of a shuffle do with them (``keptlog.engine.shuffle`` says what is shuffled).

    emit       of every record below the end: key, offset, version; no value is read
    shuffle    all records of a key come together in one of many parts, through disk
    settle     in each part: the latest record of every key, and which records it supersedes
    shuffle    what was settled goes to the segment run that the offset lies in
    list       one file of judged offsets for each segment run

A part settles as it reads. It holds the latest record so far of each of its keys, and of every batch that comes in, the
losers go out at once. So a part needs memory for its keys, not for their records, and there are as many parts as it
takes to make that little. Only keys with a dirty record are mapped: a record that loses before a dirty one of its key
came in has to wait.

Rows carry the key itself, so keys are compared as keys. Watermarks are records at no offset: where they lose, their key
is listed as beaten; where they win, nothing goes out but the losers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import Between, read_keys
from keptlog.kernels.judged_offsets import JUDGED_SCHEMA, Standing
from keptlog.kernels.offset_map import next_joined, weight_of
from keptlog.kernels.watermarks import read_watermarks
from keptlog.log.segment import Segment
from keptlog.log.steps import Compact
from keptlog.log.watermark import NO_OFFSET
from keptlog.storage.files import Files
from keptlog.storage.keys import grouped_by_key, rows_of
from keptlog.storage.versions import ranks

KEYS = pa.schema(
    [
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("version", pa.int64()),
        ("is_mapped", pa.bool_()),
        ("is_malformed", pa.bool_()),
    ]
)
"""A row a record, in any order. ``offset`` is ``NO_OFFSET`` for a watermark; ``version`` is null for none;
``is_mapped`` says whether the record is dirty, so that its key is mapped.
"""
KEYS_TYPE = "key binary, offset long, version long, is_mapped boolean, is_malformed boolean"
SETTLED = pa.schema([("run", pa.int32()), ("judged", pa.int8()), ("offsets", pa.binary()), ("key", pa.binary())])
"""``run`` is the number of a segment run, or ``BEATEN_WATERMARKS``; ``judged`` a ``Standing``, or ``_MALFORMED``.

``offsets`` are up to ``BLOCK`` int64 in the machine's own order of bytes: a row of their own for each would cost as
much as the keys did. ``key`` is that of a beaten watermark, else null.
"""
SETTLED_TYPE = "run int, judged byte, offsets binary, key binary"
BLOCK = 128
BEATEN_WATERMARKS = -1
"""In place of a segment run: the key is that of a watermark which lost."""
_MALFORMED = len(Standing)
"""Beside the numbers of ``Standing``: a dirty record whose header holds no version. It comes under one of those too."""
_BEATEN_SCHEMA = pa.schema([("key", pa.binary())])
_BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True)
class EmitTask:
    """A part of a step's segments whose keys are to be shuffled; the first one brings the watermarks along."""

    step: Compact
    segments: tuple[Segment, ...]
    with_watermarks: bool

    def emit(self, files: Files) -> Iterator[pa.RecordBatch]:
        """Batches of ``KEYS``, of up to ``_BATCH_RECORDS`` rows.

        Raises:
            StalePlan: a segment is gone, or the watermarks.
        """
        if self.with_watermarks:
            watermarks = read_watermarks(files, self.step)
            yield from _rows(watermarks["key"], NO_OFFSET, watermarks["version"], is_mapped=False, is_malformed=False)
        everything = Between(0, self.step.end_offset)
        for table in read_keys(files, self.step, self.segments, everything):
            yield from self._rows_of(table)

    def _rows_of(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        offsets = table["offset"]
        is_dirty = pc.greater_equal(offsets, self.step.first_dirty_offset)
        versions: Any = None
        is_malformed: Any = False
        if self.step.strategy.has_versions:
            # What lies below the log start has no say: without a version it loses against every dirty record.
            has_a_say = pc.greater_equal(offsets, self.step.log_start_offset)
            versions = pc.if_else(has_a_say, table["version"], None)
            is_malformed = pc.and_(table["is_malformed"], is_dirty)
        return _rows(table["key"], offsets, versions, is_mapped=is_dirty, is_malformed=is_malformed)


def _rows(key: pa.ChunkedArray, offset: Any, version: Any, *, is_mapped: Any, is_malformed: Any) -> Iterator[Any]:
    """Batches of ``KEYS``; what is no column is the same for all."""
    columns = [
        column if isinstance(column, pa.ChunkedArray) else pa.repeat(pa.scalar(column, field.type), len(key))
        for column, field in zip((key, offset, version, is_mapped, is_malformed), KEYS, strict=True)
    ]
    return iter(pa.table(columns, schema=KEYS).to_batches(max_chunksize=_BATCH_RECORDS))


def settle(batches: Iterable[pa.RecordBatch], first_offsets: Sequence[int], step: Compact) -> Iterator[pa.RecordBatch]:
    """Settle the keys of one part, of which all records come in, as batches of ``KEYS`` in any order.

    ``first_offsets`` are those of the segment runs, rising, the first at or below every offset. What goes out are
    batches of ``SETTLED``: each record of a mapped key once, and each unkeyed one.
    """
    columns = ["key", "offset", *(["version"] if step.strategy.has_versions else []), "is_mapped"]
    undecided = KEYS.empty_table().select(columns)
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    while records := next_joined(tables, weight_of(undecided)):
        yield from _settled(records.filter(pc.field("is_malformed")), _MALFORMED, first_offsets)
        yield from _settled(records.filter(pc.field("key").is_null()), Standing.UNKEYED, first_offsets)
        keyed = records.filter(pc.field("key").is_valid()).select(columns)
        superseded, undecided = _divided(pa.concat_tables([undecided, keyed]))
        yield from _settled(superseded, Standing.SUPERSEDED, first_offsets)
    winners = undecided.filter(pc.field("is_mapped") & (pc.field("offset") != NO_OFFSET))
    yield from _settled(winners, Standing.LATEST, first_offsets)


def _divided(records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Records that are superseded for sure, and the others, each of which knows whether its key is mapped.

    key        a   a   b   b       of ``a`` one record is dirty, of ``b`` none so far
    rank       2   0   3   1       2 and 3 are the highest of their keys
    superseded -   x   -   -       the lower ``b`` waits: if no dirty ``b`` comes, it is nobody's business
    """
    keys, rank = records["key"], ranks(records)
    ranked = pa.table({"key": keys, "rank": rank, "is_mapped": records["is_mapped"]})
    of_keys = grouped_by_key(ranked, [("rank", "max"), ("is_mapped", "any")])
    # For each record the row of its key in ``of_keys``, which has every one: no null.
    rows = rows_of(keys, of_keys["key"])
    is_mapped = pc.take(of_keys["is_mapped_any"], rows)
    superseded = pc.and_(is_mapped, pc.not_equal(rank, pc.take(of_keys["rank_max"], rows)))
    others = records.set_column(records.column_names.index("is_mapped"), "is_mapped", is_mapped)
    return records.filter(superseded), others.filter(pc.invert(superseded))


def _settled(records: pa.Table, judged: int, first_offsets: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Batches of ``SETTLED`` that say so of these records."""
    offsets = records["offset"].to_numpy()
    beaten = records["key"].filter(pa.array(offsets == NO_OFFSET))
    if len(beaten):
        rows = [
            pa.repeat(BEATEN_WATERMARKS, len(beaten)),
            pa.repeat(judged, len(beaten)),
            pa.nulls(len(beaten)),
            beaten,
        ]
        yield from pa.table(rows, names=SETTLED.names).cast(SETTLED).to_batches()
    offsets = offsets[offsets != NO_OFFSET]
    # first_offsets 0, 40, 90: offsets 0..39 have their place behind 1 of them, 40..89 behind 2. Less one, that is the
    # number of the last segment run that begins at or before the offset.
    run_of = np.searchsorted(np.asarray(first_offsets), offsets, side="right") - 1
    for run in np.unique(run_of).tolist():
        in_run = offsets[run_of == run]
        blocks = [in_run[start : start + BLOCK].tobytes() for start in range(0, len(in_run), BLOCK)]
        rows = [[run] * len(blocks), [judged] * len(blocks), blocks, [None] * len(blocks)]
        yield pa.record_batch(
            [pa.array(row, field.type) for row, field in zip(rows, SETTLED, strict=True)], schema=SETTLED
        )


@dataclass
class _Listed:
    """The list of one segment run while it is written."""

    path: str
    writer: pa.RecordBatchWriter
    keys: int = 0
    malformed: int = 0

    def add(self, judged: int, blocks: Sequence[bytes | None]) -> None:
        # Blocks are whole int64s, so their bytes one after the other are their numbers one after the other.
        offsets = np.frombuffer(b"".join(block for block in blocks if block), np.int64)
        if judged == _MALFORMED:
            self.malformed += len(offsets)
            return
        self.keys += len(offsets) if judged == Standing.LATEST else 0
        self.writer.write(pa.record_batch([offsets, np.full(len(offsets), judged, np.int8)], schema=JUDGED_SCHEMA))


def write_lists(
    batches: Iterable[pa.RecordBatch], files: Files, path_for: Callable[[int], str]
) -> Iterator[dict[str, Any]]:
    """Write the lists of the segment runs that come in, as batches of ``SETTLED`` in any order.

    Tells of each list its segment run and path, how many records are the latest of their keys, how many were malformed.
    """
    listed: dict[int, _Listed] = {}
    with ExitStack() as opened:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for run in pc.unique(rows["run"]).to_pylist():
                of_run = rows.filter(pc.field("run") == run)
                if run not in listed:
                    sink = opened.enter_context(files.open_output(path_for(run)))
                    schema = _BEATEN_SCHEMA if run == BEATEN_WATERMARKS else JUDGED_SCHEMA
                    listed[run] = _Listed(path_for(run), opened.enter_context(pa.ipc.new_file(sink, schema)))
                if run == BEATEN_WATERMARKS:
                    listed[run].writer.write_table(of_run.select(["key"]))
                    continue
                for judged in pc.unique(of_run["judged"]).to_pylist():
                    listed[run].add(judged, of_run.filter(pc.field("judged") == judged)["offsets"].to_pylist())
    for run, each in listed.items():
        yield {"run": run, "path": each.path, "keys": each.keys, "malformed": each.malformed}
