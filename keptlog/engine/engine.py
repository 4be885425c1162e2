"""Carries steps out: plans in, staged outcomes back, in the same order.

    steps --cut--> tasks --> job 1: map parts --> job 2: merge --> job 3: rewrite --> outcomes
                             (large dirty sections)   (many keys)

None of these has a shuffle, sort or join. Two complications, both of large logs only. Where records have versions, the
clean section and the watermarks have a say too, and are compared with the map in a job before the rewrite; watermarks
after it, if they are many, take one more. And keys beyond memory are judged by a shuffle (``shuffle``), if the
configuration says so, in place of jobs 1 and 2.

Tasks that fail, are killed or run twice leave files that nobody refers to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keptlog.engine.attempt import staging_folder
from keptlog.engine.jobs import Jobs, StartJobs
from keptlog.engine.latest import ComparedAt, MapAt, MapKnown, Nothing, Unmapped, WatermarksTold
from keptlog.engine.map_tasks import MergeTask
from keptlog.engine.segment_run import Run, WatermarksTask
from keptlog.engine.shuffle import judged_by_shuffle
from keptlog.engine.tasks import (
    Sizes,
    compare_tasks,
    cut_into_runs,
    has_keys_to_map,
    is_cut,
    is_mapped_in_runs,
    is_shuffled,
    map_tasks,
    rewrite_tasks,
)
from keptlog.errors import StorageUnavailable, first_line
from keptlog.log.counted import counted
from keptlog.log.plan import Step
from keptlog.log.result import Counts, Rewritten
from keptlog.log.segment import Segment
from keptlog.progress import Progress, silent
from keptlog.storage.files import Files

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Engine:
    """Rewrites logs; ``start_jobs`` is asked at each call for somebody who does the tasks."""

    start_jobs: StartJobs
    files: Files
    sizes: Sizes = field(default_factory=Sizes)

    def rewrite(
        self,
        steps: Sequence[Step],
        locations: Mapping[str, str],
        run_id: str,
        progress: Progress = silent,
    ) -> list[Rewritten]:
        """Carry steps out; everything is staged, nothing visible. ``locations`` gives each topic's data location.

        Raises:
            StalePlan: an input is gone.
            StorageUnavailable: the storage, or Spark, fails; nothing was committed.
        """
        if not steps:
            return []
        jobs = self.start_jobs(run_id, progress)
        runs = [
            Run(index, step, step.segments, locations[step.topic_partition.topic], None, self.sizes.row_group_bytes)
            for index, step in enumerate(steps)
        ]
        whole = [run for run in runs if not is_cut(run.step, self.sizes)]
        cut = [run for run in runs if is_cut(run.step, self.sizes)]
        try:
            parts = self._parts(jobs, cut)
            tasks = rewrite_tasks(parts, whole, jobs.cores, self.sizes)
            rewritten = jobs.run(tasks, f"rewriting {counted(len(steps), 'log')}")
            results = [run for task in rewritten for run in task["runs"]]
            watermarks = _watermarks(jobs, parts, results, self.sizes)
        except OSError as error:
            raise StorageUnavailable(
                f"storing watermarks: {first_line(error)}; nothing was committed, try again"
            ) from error
        finally:
            for folder in {staging_folder(run.location, run_id) for run in cut}:
                for file in self.files.list(folder):
                    self.files.delete(file.path)
        of_step = _by_step(results)
        return [_outcome(step, of_step[index], watermarks.get(index)) for index, step in enumerate(steps)]

    def _parts(self, jobs: Jobs, cut: Sequence[Run]) -> list[Run]:
        """The runs of the logs that are cut, each with the place where it stands which records are the latest."""
        shuffled = [run for run in cut if is_shuffled(run.step)]
        told: list[Run] = []
        mapped: list[Run] = []
        for run in cut:
            if not has_keys_to_map(run.step):
                told.append(replace(run, latest=Nothing()))
            elif is_mapped_in_runs(run.step, jobs.cores, self.sizes):
                told.append(replace(run, latest=Unmapped()))
            elif not is_shuffled(run.step):
                mapped.append(run)
        told = _compared(jobs, [*told, *_mapped(jobs, mapped, self.sizes)])
        of_step: dict[int, list[Run]] = defaultdict(list)
        for part in cut_into_runs([*told, *shuffled], jobs.cores, self.sizes):
            of_step[part.step_index].append(part)
        for run in shuffled:
            of_step[run.step_index] = judged_by_shuffle(jobs, of_step[run.step_index], self.sizes)
        return [part for parts in of_step.values() for part in parts]


def _mapped(jobs: Jobs, runs: Sequence[Run], sizes: Sizes) -> list[Run]:
    """The runs with their logs' offset maps; where a map is full, the step ends there."""
    tasks = [task for run in runs for task in map_tasks(run, jobs.cores, sizes)]
    of_step = _by_step(jobs.run(tasks, f"mapping the keys of {counted(len(runs), 'log')}"))
    ended: list[Run] = []
    for run in runs:
        step = run.step.ended_at(min(result["end_offset"] for result in of_step[run.step_index]))
        ended.append(replace(run, step=step, segments=step.segments))
    malformed = {index: sum(result["malformed"] for result in results) for index, results in of_step.items()}
    _merge(jobs, [run for run in ended if _has_many_keys(of_step[run.step_index], sizes)], of_step)
    maps = {
        index: MapAt(tuple(part["path"] for part in parts), max(part["keys"] for part in parts), malformed[index])
        for index, parts in of_step.items()
    }
    return [replace(run, latest=maps[run.step_index]) for run in ended]


def _has_many_keys(parts: Sequence[Result], sizes: Sizes) -> bool:
    """Whether a job that merges the parts of a map costs less than to merge them in each run."""
    keys: int = sum(part["keys"] for part in parts)
    return keys > sizes.merged_in_runs_keys


def _merge(jobs: Jobs, runs: Iterable[Run], of_step: dict[int, list[Result]]) -> None:
    """Let each log have one map in place of its parts."""
    merges = [
        MergeTask(run.step_index, run.step, tuple(part["path"] for part in parts), run.location)
        for run in runs
        if len(parts := of_step[run.step_index]) > 1
    ]
    for result in jobs.run(merges, f"merging the maps of {counted(len(merges), 'log')}"):
        of_step[result["step_index"]] = [result]


def _compared(jobs: Jobs, runs: Sequence[Run]) -> list[Run]:
    """The runs; those with versions know what came of comparing their logs with the maps."""
    with_versions = [
        (run, run.latest) for run in runs if run.step.strategy.has_versions and isinstance(run.latest, MapKnown)
    ]
    tasks = compare_tasks(with_versions, jobs.cores)
    found = _by_step(jobs.run(tasks, f"comparing the versions of {counted(len(with_versions), 'log')}"))
    told = {
        index: ComparedAt(tuple(part["path"] for part in parts), parts[0]["keys"], parts[0]["malformed"])
        for index, parts in found.items()
    }
    return [replace(run, latest=told.get(run.step_index, run.latest)) for run in runs]


def _watermarks(jobs: Jobs, parts: Sequence[Run], results: Sequence[Result], sizes: Sizes) -> dict[int, str | None]:
    """The watermarks' files of the logs that were cut; those of the others are in their results."""
    left: dict[int, list[str]] = defaultdict(list)
    for result in results:
        if result.get("watermarks_part"):
            left[result["step_index"]].append(result["watermarks_part"])
    first_parts = {run.step_index: run for run in reversed(parts) if run.step.strategy.has_versions}
    tasks = [
        WatermarksTask(index, run.step, tuple(left[index]), run.latest, run.location)
        for index, run in first_parts.items()
        if isinstance(run.latest, WatermarksTold) and (left[index] or run.step.watermarks_path)
    ]
    few = [task for task in tasks if task.input_bytes(jobs.files) <= sizes.watermarks_without_job_bytes]
    many = [task for task in tasks if task not in few]
    free_paths = {run["step_index"]: run["free_watermarks_path"] for run in results if "free_watermarks_path" in run}
    stored = [task.store(jobs.files, free_paths[task.step_index]) for task in few]
    stored += jobs.run(many, f"storing the watermarks of {counted(len(many), 'log')}")
    with_path = (result for result in [*results, *stored] if "watermarks_path" in result)
    return {result["step_index"]: result["watermarks_path"] for result in with_path}


def _by_step(results: Iterable[Result]) -> dict[int, list[Result]]:
    by_step: dict[int, list[Result]] = defaultdict(list)
    for result in results:
        by_step[result["step_index"]].append(result)
    return by_step


def _outcome(step: Step, runs: Sequence[Result], watermarks_path: str | None) -> Rewritten:
    def segments(name: str) -> tuple[Segment, ...]:
        found = (Segment(**segment) for run in runs for segment in run[name])
        return tuple(sorted(found, key=lambda segment: segment.base_offset))

    return Rewritten(
        step=step.ended_at(runs[0]["end_offset"]),
        removed=segments("removed"),
        added=segments("added"),
        counts=sum((Counts(**run["counts"]) for run in runs), Counts()),
        map_keys=runs[0]["keys"],
        winners_found=sum(run["winners_found"] for run in runs),
        malformed=runs[0]["malformed"],
        watermarks_path=watermarks_path,
    )
