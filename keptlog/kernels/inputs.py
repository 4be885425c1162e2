"""Opens the segments that a step was planned from, and reads their keys; a file that is gone means a stale plan.

A segment run looks at most of its segments twice: to judge, and to rewrite. To open a small file costs as much as to
read it, so small ones stay open in between (``OpenInputs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.gone import input_gone
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep
from keptlog.log.strategy import Strategy
from keptlog.storage.files import SMALL_BYTES, Files
from keptlog.storage.segment_reader import SegmentFile, open_segment
from keptlog.storage.versions import version_columns, with_versions

_MOST_HELD = 64
"""Of inputs that stay open: an operating system counts open files."""
_KEY_FIELDS = [pa.field("key", pa.binary()), pa.field("offset", pa.int64())]
_VERSION_FIELDS = [pa.field("version", pa.int64()), pa.field("is_malformed", pa.bool_())]


@dataclass(frozen=True, slots=True)
class Between:
    """Offsets from ``first_offset`` up to ``end_offset``, which is exclusive."""

    first_offset: int
    end_offset: int

    @classmethod
    def dirty(cls, step: CleanStep) -> Between:
        """What a step maps."""
        return cls(step.first_dirty_offset, step.end_offset)

    @classmethod
    def clean(cls, step: CleanStep) -> Between:
        """What has a say beside it where records have versions."""
        return cls(step.log_start_offset, step.first_dirty_offset)

    def holds(self, segment: Segment) -> bool:
        """Whether all records of a segment lie in it."""
        return self.first_offset <= segment.base_offset and segment.last_offset < self.end_offset

    def meets(self, segment: Segment) -> bool:
        """Whether a record of a segment may lie in it."""
        return self.first_offset <= segment.last_offset and segment.base_offset < self.end_offset


@contextmanager
def open_input(files: Files, step: CleanStep, segment: Segment) -> Iterator[SegmentFile]:
    """An input of a step, open.

    Raises:
        InputGone: the file is gone.
    """
    with ExitStack() as opened:
        try:
            segment_file = opened.enter_context(open_segment(files, segment))
        except FileNotFoundError as error:
            what = f"segment {segment.path}"
            raise input_gone(step.topic_partition, what, "this clean was planned") from error
        yield segment_file


class OpenInputs:
    """The inputs of a step, for whoever comes to them twice: small ones stay open until the context is left."""

    def __init__(self, files: Files, step: CleanStep) -> None:
        self.step = step
        self._files = files
        self._held: dict[str, SegmentFile] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._closing.close()

    @contextmanager
    def open(self, segment: Segment) -> Iterator[SegmentFile]:
        """An input, open.

        Raises:
            InputGone: the file is gone.
        """
        if segment.path in self._held:
            yield self._held[segment.path]
            return
        with ExitStack() as opening:
            opened = opening.enter_context(open_input(self._files, self.step, segment))
            # What was read of a large one over a network may stay in memory as long as it is open.
            if segment.size_bytes <= SMALL_BYTES and len(self._held) < _MOST_HELD:
                self._held[segment.path] = opened
                self._closing.push(opening.pop_all())
            yield opened


def read_where(
    files: Files, step: CleanStep, segment: Segment, mask: pa.ChunkedArray, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Those records of a segment for which ``mask`` is true, a table a row group; row groups without one aren't read.

    ``mask`` is bool without nulls, ``segment.record_count`` long, in offset order.

    Raises:
        InputGone: the segment is gone.
    """
    if not pc.any(mask, min_count=0).as_py():
        return
    with open_input(files, step, segment) as opened:
        position = 0
        for row_group, rows in enumerate(opened.row_groups):
            of_row_group = mask.slice(position, rows)
            position += rows
            if pc.any(of_row_group, min_count=0).as_py():
                yield opened.read(row_group, columns).filter(of_row_group)


def keys_schema(strategy: Strategy) -> pa.Schema:
    """``key`` (binary) and ``offset`` (int64); with versions ``version`` (int64) and ``is_malformed`` (bool) too."""
    return pa.schema(_KEY_FIELDS + _VERSION_FIELDS if strategy.has_versions else _KEY_FIELDS)


def read_keys(files: Files, step: CleanStep, segments: Iterable[Segment], between: Between) -> Iterator[pa.Table]:
    """The keys of the records that lie between two offsets, as tables of ``keys_schema``, one a row group.

    ``offset`` rises through all tables, if the segments come in order. ``key`` is null for a record without one,
    ``version`` for a record without one. A table may be empty.

    Raises:
        InputGone: a segment is gone.
    """
    columns = ["key", "offset", *version_columns(step.strategy)]
    for segment in segments:
        if not between.meets(segment):
            continue
        with open_input(files, step, segment) as opened:
            for row_group in range(len(opened.row_groups)):
                table = opened.read(row_group, columns)
                if not between.holds(segment):
                    offset = pc.field("offset")
                    table = table.filter((offset >= between.first_offset) & (offset < between.end_offset))
                if step.strategy.has_versions:
                    table = with_versions(table, step.strategy)
                schema = keys_schema(step.strategy)
                yield table.select(schema.names).cast(schema)
