"""How the work is cut into tasks, and what a task does where it runs.

A **run** is a part of one step: neighbouring segments, judged and rewritten together. A small log is one run and makes
its offset map by itself:

    orders-0   [ map + rewrite ]
    orders-1   [ map + rewrite ]   a few tasks, each with many such runs: thousands of logs in one job
    orders-2   [ map + rewrite ]

A large log is cut. Its dirty section is mapped in parts, the parts are merged, and each run reads the merged map:

    events-0   [ map part ][ map part ] -> [ merge ] -> [ rewrite ][ rewrite ]

A lookup hashes the whole map, so there are as few runs as keep all cores busy, and a Python task costs about 40 ms, so
small runs are bundled.

Tasks are plain data and may run twice: what they write lies under a path of that attempt, and only what Spark returns
as their result is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keptlog.log.plan import Step, StepKind
from keptlog.log.segment import Segment, total_bytes
from keptlog.spark.offset_map import OffsetMap
from keptlog.spark.rewrite import rewrite_run
from keptlog.storage.files import Files


@dataclass(frozen=True, slots=True)
class Sizes:
    """Where the cuts lie; tests make them small."""

    whole_log_records: int = 500_000
    """A log of at most so many records is one run."""
    map_part_records: int = 4_000_000
    """Fewer are not worth a merge, which costs about as much as mapping them."""
    run_bytes: int = 4 * 2**30
    """At most, so that a task that fails repeats no more than that."""
    bundles_per_core: int = 4


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one task: what sets its paths apart from those of every other try."""

    files: Files
    run_id: str
    task_id: int
    attempt_id: str

    def path(self, folder: str, prefix: str, suffix: str) -> str:
        return f"{folder}/{prefix}-{self.run_id}-{self.task_id}-{self.attempt_id}.{suffix}"


@dataclass(frozen=True, slots=True)
class MapTask:
    """Map a part of one log's dirty section."""

    step_index: int
    step: Step
    segments: tuple[Segment, ...]
    folder: str

    def run(self, attempt: Attempt) -> dict[str, Any]:
        offset_map = OffsetMap.of(attempt.files, self.step, self.segments)
        path = attempt.path(self.folder, "part", "arrow")
        offset_map.write(attempt.files, path)
        return {"step_index": self.step_index, "path": path, "keys": len(offset_map)}


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merge the parts of one log's map."""

    step_index: int
    parts: tuple[str, ...]
    folder: str

    def run(self, attempt: Attempt) -> dict[str, Any]:
        offset_map = OffsetMap.merged(OffsetMap.read(attempt.files, part) for part in self.parts)
        path = attempt.path(self.folder, "map", "arrow")
        offset_map.write(attempt.files, path)
        return {"step_index": self.step_index, "path": path, "keys": len(offset_map)}


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring segments of one step."""

    step_index: int
    step: Step
    segments: tuple[Segment, ...]
    folder: str
    map_path: str | None = None
    """Where the offset map lies; null if the task makes it from the step's dirty segments."""

    def rewrite(self, attempt: Attempt) -> dict[str, Any]:
        offset_map = self._offset_map(attempt.files)

        def path_for(base_offset: int) -> str:
            return attempt.path(self.folder, f"{base_offset:020d}", "parquet")

        rewritten = rewrite_run(attempt.files, self.step, self.segments, offset_map, path_for)
        return dataclasses.asdict(rewritten) | {"step_index": self.step_index, "keys": len(offset_map)}

    def _offset_map(self, files: Files) -> OffsetMap:
        if self.step.kind is StepKind.EXPIRE:
            return OffsetMap.empty()
        if self.map_path is None:
            return OffsetMap.of(files, self.step, self.step.dirty)
        return OffsetMap.read(files, self.map_path)


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Runs that one task does one after the other."""

    runs: tuple[Run, ...]

    def run(self, attempt: Attempt) -> dict[str, Any]:
        return {"runs": [run.rewrite(attempt) for run in self.runs]}


Task = MapTask | MergeTask | RewriteTask


def is_cut(step: Step, sizes: Sizes) -> bool:
    """Whether a step is too large for one run."""
    return sum(segment.record_count for segment in step.segments) > sizes.whole_log_records


def map_tasks(run: Run, folder: str, cores: int, sizes: Sizes) -> list[MapTask]:
    """The tasks that map the dirty section of a step that is cut; none if nothing is to be mapped."""
    if run.step.kind is StepKind.EXPIRE:
        return []
    dirty = run.step.dirty
    parts = min(cores, max(1, sum(segment.record_count for segment in dirty) // sizes.map_part_records))
    target_bytes = -(-total_bytes(dirty) // parts)
    return [MapTask(run.step_index, run.step, part, folder) for part in contiguous_runs(dirty, target_bytes)]


def contiguous_runs(segments: Iterable[Segment], target_bytes: int) -> list[tuple[Segment, ...]]:
    """Neighbours in runs of about ``target_bytes``: a run ends with the segment whose middle is past its share."""
    runs: list[list[Segment]] = []
    position, share = 0, -1
    for segment in segments:
        middle = position + segment.size_bytes // 2
        if middle // max(target_bytes, 1) != share:
            share = middle // max(target_bytes, 1)
            runs.append([])
        runs[-1].append(segment)
        position += segment.size_bytes
    return [tuple(run) for run in runs]


def runs_of(run: Run, target_bytes: int) -> list[Run]:
    """A step as one run, cut into runs of about ``target_bytes``."""
    return [dataclasses.replace(run, segments=part) for part in contiguous_runs(run.segments, target_bytes)]


def rewrite_tasks(cut: Sequence[Run], whole: Sequence[Run], cores: int, sizes: Sizes) -> list[RewriteTask]:
    """Tasks for steps that are cut and for whole ones, largest first, so that the last to end is a small one."""
    large_bytes = sum(total_bytes(run.segments) for run in cut)
    target_bytes = min(-(-large_bytes // cores), sizes.run_bytes)
    bundles: list[tuple[Run, ...]] = [(part,) for run in cut for part in runs_of(run, target_bytes)]
    bundles += bundled(whole, cores * sizes.bundles_per_core)
    return [RewriteTask(runs) for runs in sorted(bundles, key=_bundle_bytes, reverse=True)]


def bundled(runs: Sequence[Run], bundles: int) -> list[tuple[Run, ...]]:
    """Runs in at most so many bundles of about equal bytes: the largest left goes to the emptiest bundle."""
    filled: list[list[Run]] = [[] for _ in range(min(bundles, len(runs)))]
    sizes_bytes = [0] * len(filled)
    for run in sorted(runs, key=lambda each: total_bytes(each.segments), reverse=True):
        emptiest = sizes_bytes.index(min(sizes_bytes))
        filled[emptiest].append(run)
        sizes_bytes[emptiest] += total_bytes(run.segments)
    return [tuple(bundle) for bundle in filled]


def _bundle_bytes(runs: Sequence[Run]) -> int:
    return sum(total_bytes(run.segments) for run in runs)
