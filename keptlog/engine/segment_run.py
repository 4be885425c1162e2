"""A segment run: neighbouring segments of one step, judged and rewritten together in a task.

    small log    [ segment run: the whole step ]
    large log    [ segment run ][ segment run ][ segment run ][ segment run ]

That of a small log is the whole step, and does all of it: maps, judges, writes, and stores the log's watermarks. Those
of a large one are told which records are the latest (``latest``), and hand on what their tombstones leave. Segments of
an expire step are no neighbours in general; nothing of one depends on the next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keptlog.engine.attempt import Attempt
from keptlog.engine.latest import KnownLatest
from keptlog.kernels.offset_map import DirtyMap, OffsetMap, map_dirty
from keptlog.kernels.rewrite import Output, RunRewrite, rewrite_run
from keptlog.kernels.rivals import Comparison, compare, compare_watermarks
from keptlog.kernels.watermarks import (
    NO_KEYS,
    read_watermarks,
    store_watermarks,
    write_watermarks,
)
from keptlog.kernels.ways import Latest
from keptlog.log.offset_map import UNBOUNDED, MapOverflow
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.storage.files import Files
from keptlog.storage.segment_writer import ROW_GROUP_BYTES


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Neighbouring segments of one step. Plain data that pickles."""

    step_index: int
    """Which of the steps that are carried out together."""
    step: CleanStep
    segments: tuple[Segment, ...]
    """In offset order."""
    location: str
    """Where the topic's data lies."""
    latest: KnownLatest | None = None
    """Where it stands which records are the latest; null if this is the whole step and finds out by itself."""
    row_group_bytes: int = ROW_GROUP_BYTES
    """Bytes of records that wait, at most, for their row group to be written."""
    task: int = 0
    """Segment runs of one log that have the same number are done by one task."""

    def rewrite_part(self, attempt: Attempt, latest: Latest, malformed: int) -> dict[str, Any]:
        """Judge and rewrite these segments, knowing what was read where ``latest`` says; the result is fit for JSON."""
        rewritten = self._rewritten(attempt, self.step, self.segments, latest)
        part = None
        if rewritten.watermarks.num_rows:
            part = attempt.staged(self.location, f"watermarks-{self.segments[0].base_offset}")
            write_watermarks(attempt.files, self.step, rewritten.watermarks, part)
        found = {"end_offset": self.step.end_offset, "keys": latest.winners, "malformed": malformed}
        found["keys_here"] = latest.winners_between(self.segments[0].base_offset, self.segments[-1].last_offset)
        free_path = attempt.watermarks(self.location, self.step.topic_partition)
        return self._described(rewritten) | found | {"watermarks_part": part, "free_watermarks_path": free_path}

    def rewrite_whole(self, attempt: Attempt) -> dict[str, Any]:
        """Map, judge and rewrite the whole step; the result is fit for JSON."""
        step, mapped = self._mapped(attempt.files)
        latest: Latest = mapped.offset_map
        beaten = NO_KEYS
        if step.strategy.has_versions and isinstance(step, Compact):
            of_watermarks = compare_watermarks(read_watermarks(attempt.files, step), mapped.offset_map)
            of_records = compare(attempt.files, step, step.segments, mapped.offset_map)
            compared = Comparison.joined([of_records, of_watermarks])
            latest, beaten = compared.settled(len(mapped.offset_map)), compared.beaten_keys()
        rewritten = self._rewritten(attempt, step, step.segments, latest)
        path = new_path = None
        if step.strategy.has_versions:
            new_path = attempt.watermarks(self.location, step.topic_partition)
            path = store_watermarks(attempt.files, step, rewritten.watermarks, beaten, new_path)
        found = {"end_offset": step.end_offset, "keys": latest.winners, "malformed": mapped.malformed}
        return self._described(rewritten) | found | {"watermarks_path": path, "free_watermarks_path": new_path}

    def _mapped(self, files: Files) -> tuple[CleanStep, DirtyMap]:
        """The step as far as its map reaches, and the map."""
        if isinstance(self.step, Expire):
            return self.step, DirtyMap(OffsetMap.empty(self.step.strategy), self.step.end_offset, 0)
        mapped = map_dirty(files, self.step, self.step.dirty, mapped_keys(self.step))
        return self.step.ended_at(mapped.end_offset), mapped

    def _rewritten(self, attempt: Attempt, step: CleanStep, segments: Sequence[Segment], latest: Latest) -> RunRewrite:
        def path_for(base_offset: int) -> str:
            return attempt.segment(self.location, step.topic_partition, base_offset)

        return rewrite_run(attempt.files, step, segments, latest, Output(path_for, self.row_group_bytes))

    def _described(self, rewritten: RunRewrite) -> dict[str, Any]:
        return {
            "step_index": self.step_index,
            "removed": [segment.path for segment in rewritten.removed],
            "added": [dataclasses.asdict(segment) for segment in rewritten.added],
            "counts": dataclasses.asdict(rewritten.counts),
            "winners_found": rewritten.winners_found,
            "overrun": [dataclasses.asdict(each) for each in rewritten.overrun],
        }


def mapped_keys(step: Compact) -> int:
    """How many keys the offset map of a step takes before it is full."""
    return UNBOUNDED.max_keys if step.map_capacity.overflow is MapOverflow.SHUFFLE else step.map_capacity.max_keys


def may_be_full(step: Compact) -> bool:
    """Whether a step may have more keys than its offset map takes: the metrics know its records, not its keys."""
    return sum(segment.record_count for segment in step.dirty) > step.map_capacity.max_keys
