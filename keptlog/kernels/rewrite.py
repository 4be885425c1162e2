"""Rewrites a segment run: judges it, keeps the files in which nothing changes, writes what survives of the others.

    segments   [ unchanged ][ 3 of 10 go ][ 7 of 10 go ][ unchanged ]
    outcome    [ kept      ][ new: 10 records          ][ kept      ]

Changed segments are read row group by row group, those without a survivor not at all, filtered, stamped, and given to a
writer that rolls at the topic's ``segment.bytes``. So memory is a few row groups, whatever the size of the log.

``keptlog.log.groups`` decides which segments share an output. The inputs of an expire step need not be neighbours, so
each of them that changes has an output of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.inputs import OpenInputs
from keptlog.kernels.judge import Judgement, judge
from keptlog.kernels.watermarks import no_watermarks, watermarks_of
from keptlog.kernels.ways import Latest
from keptlog.log.groups import groups_to_rewrite
from keptlog.log.result import Counts, Overrun
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.storage.schema import SCHEMA, US_PER_MS
from keptlog.storage.segment_reader import SegmentFile
from keptlog.storage.segment_writer import ROW_GROUP_BYTES, SegmentWriter
from keptlog.storage.value_views import kept, with_views

_NOTHING_READ = pa.table({})
_WRITTEN_AT_ONCE = 10_000
"""Records of small row groups that are stamped and handed to the writer together: each call costs some 200 µs.

Fewer, if they have the bytes of a row group: they wait in memory.
"""


@dataclass(frozen=True, slots=True)
class Output:
    """How new segments are written."""

    path_for: Callable[[int], str]
    """The path of a new segment from its base offset; it gives no path twice."""
    row_group_bytes: int = ROW_GROUP_BYTES
    """Bytes of records that wait, at most, for their row group to be written."""


@dataclass(frozen=True, slots=True)
class RunRewrite:
    """What a rewrite did to a segment run: which inputs the staged segments replace, and what was counted."""

    removed: tuple[Segment, ...]
    added: tuple[Segment, ...]
    counts: Counts
    winners_found: int
    watermarks: pa.Table
    """Of ``WATERMARKS_SCHEMA``: what tombstones left that went by their horizon; empty unless records have versions."""
    overrun: tuple[Overrun, ...] = ()
    """Tombstones that went although a reader had not met them, in offset order."""


def rewrite_run(
    files: Files, step: CleanStep, segments: Sequence[Segment], latest: Latest, output: Output
) -> RunRewrite:
    """Judge a segment run, in offset order, and write the segments of it that change; nothing staged is visible.

    Raises:
        StalePlan: a segment is gone.
        InvariantViolated: records would be written out of order.
    """
    with OpenInputs(files, step) as inputs:
        return _rewritten(files, inputs, segments, judge(inputs, segments, latest), output)


def _rewritten(
    files: Files, inputs: OpenInputs, segments: Sequence[Segment], judged: Judgement, output: Output
) -> RunRewrite:
    step = inputs.step
    removed: list[Segment] = []
    added: list[Segment] = []
    watermarks = [no_watermarks()]
    waiting: list[pa.Table] = []
    stamped = 0
    groups = _groups(step, segments, judged)
    for index in judged.read.keys() - {index for group in groups for index in group}:
        del judged.read[index]
    for group in groups:
        writer = SegmentWriter(files, output.path_for, step.segment_bytes, output.row_group_bytes)
        waiting_bytes = 0
        try:
            for index in group:
                with inputs.open(segments[index]) as opened:
                    for survivors, expired in _divided(opened, judged, index):
                        waiting.append(survivors)
                        waiting_bytes += survivors.get_total_buffer_size()
                        if sum(map(len, waiting)) >= _WRITTEN_AT_ONCE or waiting_bytes >= output.row_group_bytes:
                            stamped += _write(writer, waiting, step)
                            waiting_bytes = 0
                        if expired is not None:
                            watermarks.append(watermarks_of(expired, step))
            stamped += _write(writer, waiting, step)
            added += writer.finish()
        except BaseException:
            writer.abandon()
            discard(files, [segment.path for segment in added])
            raise
        removed += [segments[index] for index in group]
    counts = judged.counts + Counts(kept=-stamped, stamped=stamped)
    left = pa.concat_tables(watermarks)
    return RunRewrite(tuple(removed), tuple(added), counts, judged.winners_found, left, judged.overrun)


def _groups(step: CleanStep, segments: Sequence[Segment], judged: Judgement) -> list[range]:
    changed = [judged.loses_records(index) or _must_change(step, segment) for index, segment in enumerate(segments)]
    if isinstance(step, Expire):
        return [range(index, index + 1) for index, change in enumerate(changed) if change]
    dirty = [segment.last_offset >= step.first_dirty_offset for segment in segments]
    return groups_to_rewrite(segments, changed, dirty, step.segment_bytes)


def _must_change(step: CleanStep, segment: Segment) -> bool:
    """Whether a segment is written again although no record of it goes."""
    gets_horizons = segment.tombstone_count > segment.stamped_count
    return isinstance(step, Compact) and (step.must_rewrite(segment) or gets_horizons)


def _divided(opened: SegmentFile, judged: Judgement, segment: int) -> Iterator[tuple[pa.Table, pa.Table | None]]:
    """Of each row group what survives, and the tombstones that leave watermarks; not read if it has neither.

    Survivors are of ``VIEWED_SCHEMA``, tombstones of ``SCHEMA`` but for ``value``, or null where the segment has none.

    Masks have one element a record of the segment, so each row group has the slice that begins where those before it
    end.
    """
    survives, expired, read = judged.survives[segment], judged.expired[segment], judged.read.pop(segment, None)
    position = 0
    for index, rows in enumerate(opened.row_groups):
        mask = survives.slice(position, rows) if survives is not None else None
        leaving = expired.slice(position, rows) if expired is not None else None
        position += rows
        surviving = rows if mask is None else pc.sum(mask).as_py() or 0
        if surviving or (leaving is not None and pc.any(leaving, min_count=0).as_py()):
            table = _records(opened, index, read[index] if read else _NOTHING_READ)
            survivors = with_views(table) if surviving == rows else kept(table, mask, surviving)
            yield survivors, table.drop_columns("value").filter(leaving) if leaving is not None else None


def _records(opened: SegmentFile, row_group: int, read: pa.Table) -> pa.Table:
    """The records of a row group, of ``SCHEMA`` or ``VIEWED_SCHEMA``.

    ``read`` has those columns of them that were read before, or none.
    """
    missing = [name for name in SCHEMA.names if name not in read.column_names]
    table = opened.read_for_rewrite(row_group, missing)
    for name in read.column_names:
        table = table.append_column(SCHEMA.field(name), read[name])
    return table.select(SCHEMA.names)


def _write(writer: SegmentWriter, waiting: list[pa.Table], step: CleanStep) -> int:
    """Write tables of ``VIEWED_SCHEMA`` and empty their list; gives how many records got a delete horizon."""
    if not waiting:
        return 0
    table, newly_stamped = _with_horizons(pa.concat_tables(waiting), step)
    waiting.clear()
    writer.write(table)
    return newly_stamped


def _with_horizons(table: pa.Table, step: CleanStep) -> tuple[pa.Table, int]:
    """The records with a delete horizon on every tombstone before the end that has none, and how many got one.

    ``table`` is of ``VIEWED_SCHEMA``, and so is what comes back.
    """
    if not isinstance(step, Compact) or table["value"].null_count == 0:
        return table, 0
    lacks_horizon = pc.and_(pc.is_null(table["value"]), pc.is_null(table["delete_horizon"]))
    stamped = pc.and_(lacks_horizon, pc.less(table["offset"], step.end_offset))
    field = table.schema.field("delete_horizon")
    horizon_us = step.bounds.new_delete_horizon_ms * US_PER_MS
    horizons = pc.if_else(stamped, pa.scalar(horizon_us, pa.int64()).cast(field.type), table["delete_horizon"])
    column = table.schema.get_field_index("delete_horizon")
    return table.set_column(column, field, horizons), int(pc.sum(stamped).as_py())
