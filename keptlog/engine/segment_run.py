"""A run: neighbouring segments of one step, judged and rewritten together in a task.

The run of a small log is the whole step, and does all of it: maps, judges, writes, and stores the log's watermarks. The
runs of a large one are told which records are the latest (``latest``), and hand on what their tombstones leave.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.latest import KnownLatest, WatermarksTold
from keptlog.kernels.judge import Latest
from keptlog.kernels.offset_map import Mapped, OffsetMap, map_dirty
from keptlog.kernels.rewrite import Output, RewrittenRun, rewrite_run
from keptlog.kernels.rivals import Compared, compare, compare_watermarks
from keptlog.kernels.watermarks import (
    NO_KEYS,
    no_watermarks,
    read_watermarks,
    store_watermarks,
    write_watermarks,
)
from keptlog.log.offset_map import UNBOUNDED, MapOverflow
from keptlog.log.plan import Step, StepKind
from keptlog.log.segment import Segment
from keptlog.storage.files import Files
from keptlog.storage.segment_writer import ROW_GROUP_BYTES


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring segments of one step."""

    step_index: int
    step: Step
    segments: tuple[Segment, ...]
    location: str
    """Where the topic's data lies."""
    latest: KnownLatest | None = None
    """Where it stands which records are the latest; null if this run is the whole step and finds out by itself."""
    row_group_bytes: int = ROW_GROUP_BYTES
    task: int = 0
    """Runs of one log that have the same number are done by one task."""

    def rewrite_part(self, attempt: Attempt, latest: Latest, malformed: int) -> dict[str, Any]:
        """Judge and rewrite these segments, knowing what was read where ``latest`` says; the result is fit for JSON."""
        rewritten = self._rewritten(attempt, self.step, self.segments, latest)
        part = None
        if rewritten.watermarks.num_rows:
            part = attempt.staged(self.location, f"watermarks-{self.segments[0].base_offset}")
            write_watermarks(attempt.files, self.step, rewritten.watermarks, part)
        found = {"end_offset": self.step.end_offset, "keys": latest.winners, "malformed": malformed}
        free_path = attempt.watermarks(self.location, self.step.topic_partition)
        return self._described(rewritten) | found | {"watermarks_part": part, "free_watermarks_path": free_path}

    def rewrite_whole(self, attempt: Attempt) -> dict[str, Any]:
        """Map, judge and rewrite the whole step; the result is fit for JSON."""
        step, mapped = self._mapped(attempt.files)
        latest: Latest = mapped.offset_map
        beaten = NO_KEYS
        if step.strategy.has_versions and step.kind is StepKind.COMPACT:
            of_watermarks = compare_watermarks(read_watermarks(attempt.files, step), mapped.offset_map)
            of_records = compare(attempt.files, step, step.segments, mapped.offset_map)
            compared = Compared.joined([of_records, of_watermarks])
            latest, beaten = compared.settled(len(mapped.offset_map)), compared.beaten_keys()
        rewritten = self._rewritten(attempt, step, step.segments, latest)
        path = None
        if step.strategy.has_versions:
            new_path = attempt.watermarks(self.location, step.topic_partition)
            path = store_watermarks(attempt.files, step, rewritten.watermarks, beaten, new_path)
        found = {"end_offset": step.end_offset, "keys": latest.winners, "malformed": mapped.malformed}
        return self._described(rewritten) | found | {"watermarks_path": path}

    def _mapped(self, files: Files) -> tuple[Step, Mapped]:
        """The step as far as its map reaches, and the map."""
        if self.step.kind is StepKind.EXPIRE:
            return self.step, Mapped(OffsetMap.empty(self.step.strategy), self.step.end_offset, 0)
        mapped = map_dirty(files, self.step, self.step.dirty, mapped_keys(self.step))
        return self.step.ended_at(mapped.end_offset), mapped

    def _rewritten(self, attempt: Attempt, step: Step, segments: Sequence[Segment], latest: Latest) -> RewrittenRun:
        def path_for(base_offset: int) -> str:
            return attempt.segment(self.location, step.topic_partition, base_offset)

        return rewrite_run(attempt.files, step, segments, latest, Output(path_for, self.row_group_bytes))

    def _described(self, rewritten: RewrittenRun) -> dict[str, Any]:
        return {
            "step_index": self.step_index,
            "removed": [dataclasses.asdict(segment) for segment in rewritten.removed],
            "added": [dataclasses.asdict(segment) for segment in rewritten.added],
            "counts": dataclasses.asdict(rewritten.counts),
            "winners_found": rewritten.winners_found,
        }


def mapped_keys(step: Step) -> int:
    """How many keys the offset map of a step takes before it is full."""
    return UNBOUNDED.max_keys if step.map_capacity.overflow is MapOverflow.SHUFFLE else step.map_capacity.max_keys


def may_be_full(step: Step) -> bool:
    """Whether a step may have more keys than its offset map takes: the metrics know its records, not its keys."""
    dirty_records = sum(segment.record_count for segment in step.dirty)
    return step.kind is StepKind.COMPACT and dirty_records > step.map_capacity.max_keys


@dataclass(frozen=True, slots=True)
class WatermarksTask:
    """Store the watermarks of a log that was rewritten in several runs, from what those left."""

    step_index: int
    step: Step
    parts: tuple[str, ...]
    latest: WatermarksTold
    location: str

    def run(self, attempt: Attempt) -> dict[str, Any]:
        return self.store(attempt.files, attempt.watermarks(self.location, self.step.topic_partition))

    def store(self, files: Files, new_path: str) -> dict[str, Any]:
        """Do it, where ``new_path`` is free for them."""
        parts = [read_watermarks(files, dataclasses.replace(self.step, watermarks_path=part)) for part in self.parts]
        new = pa.concat_tables([no_watermarks(), *parts])
        beaten = self.latest.beaten(files) if self.step.watermarks_path else NO_KEYS
        path = store_watermarks(files, self.step, new, beaten, new_path)
        return {"step_index": self.step_index, "watermarks_path": path}

    def input_bytes(self, files: Files) -> int:
        """How much there is to read of watermarks; of files that are gone nothing."""
        found = 0
        for path in filter(None, (*self.parts, self.step.watermarks_path)):
            with suppress(FileNotFoundError), files.open_input(path) as source:
                found += source.size()
        return found
