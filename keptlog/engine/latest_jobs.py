"""The jobs that find out, before a large log is rewritten, which of its records are the latest.

    dirty section   [ part ][ part ]   --map--> maps of parts --merge, if they have many keys--> one map
    whole log       [ part ][ part ]   --compare, if records have versions--> what the map does not settle by itself

What they found lies in files of the staging folder; a segment run is told where (``latest``). Where the offset map is
full the step ends, and what lies behind it is left to another pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from keptlog.engine.jobs import Jobs, Result, run_for_logs
from keptlog.engine.latest import MapSource, StoredComparison, StoredMap
from keptlog.engine.map_tasks import MergeTask
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes, compare_tasks, map_tasks
from keptlog.errors import KeptlogError
from keptlog.log.steps import Compact
from keptlog.log.words.counted import counted


def with_maps(
    jobs: Jobs, runs: Sequence[tuple[SegmentRun, Compact]], sizes: Sizes, failed: dict[int, KeptlogError]
) -> list[SegmentRun]:
    """The segment runs, each a whole step, with their logs' offset maps; where a map is full, the step ends there.

    A log that can't be mapped is left out, and comes into ``failed``, by its step.

    Raises:
        StorageUnavailable: whoever runs the tasks fails.
    """
    tasks = [task for run, step in runs for task in map_tasks(run, step, jobs.cores, sizes)]
    parts_of = by_step(run_for_logs(jobs, tasks, f"mapping the keys of {counted(len(runs), 'log')}", failed))
    runs = [(run, step) for run, step in runs if run.step_index not in failed]
    malformed = {index: sum(part["malformed"] for part in parts) for index, parts in parts_of.items()}
    ends = {index: min(part["end_offset"] for part in parts) for index, parts in parts_of.items()}
    ended = [(run, step.ended_at(ends[run.step_index])) for run, step in runs]
    large = [(run, step) for run, step in ended if _has_many_keys(parts_of[run.step_index], sizes)]
    parts_of |= _merged(jobs, large, parts_of, failed)
    maps = {
        index: StoredMap(
            tuple(part["path"] for part in parts), max(part["keys"] for part in parts), ends[index], malformed[index]
        )
        for index, parts in parts_of.items()
    }
    return [
        replace(run, step=step, segments=step.segments, latest=maps[run.step_index])
        for run, step in ended
        if run.step_index not in failed
    ]


def _has_many_keys(parts: Sequence[Result], sizes: Sizes) -> bool:
    """Whether a job that merges the parts of a map costs less than to merge them in each task that needs it."""
    keys: int = sum(part["keys"] for part in parts)
    return keys > sizes.merged_in_runs_keys


def _merged(
    jobs: Jobs,
    runs: Iterable[tuple[SegmentRun, Compact]],
    parts_of: dict[int, list[Result]],
    failed: dict[int, KeptlogError],
) -> dict[int, list[Result]]:
    """One map in place of its parts, for each log whose map has more than one."""
    merges = [
        MergeTask(run.step_index, step.end_offset, tuple(part["path"] for part in parts), run.location)
        for run, step in runs
        if len(parts := parts_of[run.step_index]) > 1
    ]
    return by_step(run_for_logs(jobs, merges, f"merging the maps of {counted(len(merges), 'log')}", failed))


def with_comparisons(jobs: Jobs, runs: Sequence[SegmentRun], failed: dict[int, KeptlogError]) -> list[SegmentRun]:
    """The segment runs; those whose records have versions know what came of comparing their logs with the maps.

    A log that can't be compared is left out, and comes into ``failed``, by its step.

    Raises:
        StorageUnavailable: whoever runs the tasks fails.
    """
    with_versions = [
        (run, run.step, run.latest)
        for run in runs
        if run.step.strategy.has_versions and isinstance(run.step, Compact) and isinstance(run.latest, MapSource)
    ]
    tasks = compare_tasks(with_versions, jobs.cores)
    doing = f"comparing the versions of {counted(len(with_versions), 'log')}"
    parts_of = by_step(run_for_logs(jobs, tasks, doing, failed))
    compared = {
        index: StoredComparison(tuple(part["path"] for part in parts), parts[0]["keys"], parts[0]["malformed"])
        for index, parts in parts_of.items()
    }
    whole = [run for run in runs if run.step_index not in failed]
    return [replace(run, latest=compared.get(run.step_index, run.latest)) for run in whole]


def by_step(results: Iterable[Result]) -> dict[int, list[Result]]:
    """Results of tasks by the index of their step, in their order."""
    of_step: dict[int, list[Result]] = defaultdict(list)
    for result in results:
        of_step[result["step_index"]].append(result)
    return of_step
