"""Carries steps out: plans in, staged outcomes or errors back, in the same order.

    steps --cut--> tasks --> job 1: map parts --> job 2: merge --> job 3: rewrite --> outcomes
                             (large dirty sections)   (many keys)

None of these has a shuffle, sort or join. Two complications, both of large logs only. Where records have versions, the
clean section and the watermarks have a say too, and are compared with the map in a job before the rewrite; watermarks
after it, if they are many, take one more. And keys beyond memory are judged by a shuffle (``shuffle``), if the
configuration says so, in place of jobs 1 and 2.

Besides there are two jobs that stand alone: a search for keys through any files (``search_tasks``), and dropping the
records of keys from logs (``drop_tasks``).

A log that fails costs no other one, and nothing of it is left (``rewriting``). Tasks that are killed or run twice leave
files that nobody refers to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.engine.attempt import staging_folder
from keptlog.engine.drop_tasks import drop_records
from keptlog.engine.jobs import Jobs, StartJobs
from keptlog.engine.latest import MapByTask, NoMap
from keptlog.engine.latest_jobs import by_step, with_comparisons, with_maps
from keptlog.engine.legs import legs_of
from keptlog.engine.outcome import StepOutcome, all_or_none, outcome_of
from keptlog.engine.rewriting import Rewriting
from keptlog.engine.search_tasks import KeySearch, search_files
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.shuffle import judged_by_shuffle
from keptlog.engine.tasks import (
    RewriteTask,
    Sizes,
    cut_into_runs,
    is_cut,
    is_mapped_in_runs,
    is_shuffled,
)
from keptlog.errors import OF_A_LOG, KeptlogError
from keptlog.log.drop import DropResult
from keptlog.log.result import RewriteResult
from keptlog.log.search import FileFindings
from keptlog.log.steps import CleanStep, Compact, Drop
from keptlog.log.words.counted import counted
from keptlog.progress import Progress, silent
from keptlog.storage.files import Files
from keptlog.storage.key_hash import KeyHasher
from keptlog.storage.leftover import discard_below


@dataclass(frozen=True)
class Engine:
    """Rewrites logs; ``start_jobs`` is asked at each call for somebody who does the tasks."""

    start_jobs: StartJobs
    files: Files
    sizes: Sizes = field(default_factory=Sizes)

    def rewrite(
        self,
        steps: Sequence[CleanStep],
        locations: Mapping[str, str],
        run_id: str,
        progress: Progress = silent,
    ) -> list[RewriteResult]:
        """The same as ``rewrite_each``, for whoever wants all outcomes or none.

        Raises:
            StalePlan: an input is gone.
            InvariantViolated: records would be written out of order.
            StorageUnavailable: the storage, or Spark, fails; nothing was committed.
        """
        return all_or_none(self.files, self.rewrite_each(steps, locations, run_id, progress))

    def rewrite_each(
        self,
        steps: Sequence[CleanStep],
        locations: Mapping[str, str],
        run_id: str,
        progress: Progress = silent,
    ) -> list[StepOutcome]:
        """Carry steps out; everything is staged, nothing visible. ``locations`` gives each topic's data location.

        Returns:
            An outcome for each step, in their order, or the error that its log ends with.

        Raises:
            StorageUnavailable: Spark fails, and nobody knows for which log; nothing was committed.
        """
        if not steps:
            return []
        jobs = self._jobs(run_id, progress, steps, locations.values())
        runs = [self._whole(step, locations[step.topic_partition.topic], index) for index, step in enumerate(steps)]
        whole = [run for run in runs if not is_cut(run.step, self.sizes)]
        cut = [run for run in runs if is_cut(run.step, self.sizes)]
        rewriting = Rewriting(jobs, self.sizes)
        failed = rewriting.failed
        try:
            parts = self._parts(jobs, cut, failed)
            results = rewriting.results(parts, whole, f"rewriting {counted(len(steps), 'log')}")
            results, watermarks = rewriting.with_watermarks(parts, results, "nothing was committed")
        finally:
            self._empty_staging({run.location for run in cut}, run_id)
        of_step = by_step(results)
        return [
            failed[index] if index in failed else outcome_of(step, of_step[index], watermarks.get(index))
            for index, step in enumerate(steps)
        ]

    def rewrite_in_legs(
        self, step: Compact, location: str, run_id: str, progress: Progress = silent
    ) -> Generator[RewriteResult]:
        """Carry a step out leg by leg; each is staged when it comes, and to be committed before the next is asked for.

        What the legs share is found out once, before the first. Close the iterator if you stop before its end.

        Raises:
            StalePlan, InvariantViolated, StorageUnavailable: as ``rewrite``, of the leg that was asked for.
        """
        jobs = self._jobs(run_id, progress, [step], [location])
        try:
            yield from legs_of(jobs, self._whole(step, location), step, self.sizes)
        finally:
            self._empty_staging({location}, run_id)

    def search(self, search: KeySearch, run_id: str, progress: Progress = silent) -> list[FileFindings]:
        """Look files through for keys. A file that can't be read is a finding, and no error.

        Returns:
            What was found in each file, in their order.

        Raises:
            StorageUnavailable: Spark fails.
        """
        if not search.files:
            return []
        return search_files(self._jobs(run_id, progress, [], {_folder(file.path) for file in search.files}), search)

    def drop(
        self,
        steps: Sequence[Drop],
        hasher: KeyHasher,
        locations: Mapping[str, str],
        run_id: str,
        progress: Progress = silent,
    ) -> list[DropResult]:
        """Drop records from logs; everything is staged, nothing visible. ``locations`` as for ``rewrite``.

        Returns:
            An outcome for each step, in their order.

        Raises:
            StalePlan: an input is gone.
            LogCorrupt: an input is damaged.
            StorageUnavailable: the storage, or Spark, fails; nothing was committed.
        """
        if not steps:
            return []
        jobs = self._jobs(run_id, progress, steps, locations.values())
        return drop_records(jobs, steps, hasher, locations, self.sizes.row_group_bytes)

    def probe(self, run_id: str) -> None:
        """Let an empty task be done.

        Raises:
            Exception: nobody does.
        """
        self.start_jobs(run_id, silent).within(()).run([RewriteTask(())], "looking whether tasks are done")

    def _jobs(
        self, run_id: str, progress: Progress, steps: Sequence[CleanStep | Drop], locations: Iterable[str]
    ) -> Jobs:
        """Jobs whose tasks read what the steps name, and write below these locations."""
        folders = {_folder(segment.path) for step in steps for segment in step.segments}
        return self.start_jobs(run_id, progress).within(sorted(folders.union(locations)))

    def _whole(self, step: CleanStep, location: str, index: int = 0) -> SegmentRun:
        return SegmentRun(index, step, step.segments, location, None, self.sizes.row_group_bytes)

    def _empty_staging(self, locations: Iterable[str], run_id: str) -> None:
        for location in locations:
            discard_below(self.files, staging_folder(location, run_id))

    def _parts(self, jobs: Jobs, cut: Sequence[SegmentRun], failed: dict[int, KeptlogError]) -> list[SegmentRun]:
        """The segment runs of the logs that are cut, each with the place where it stands which records are the latest.

        ``cut`` has one segment run a step, which is all of it; here it becomes several. A log of which that can't be
        found out is left out, and comes into ``failed``.
        """
        known: list[SegmentRun] = []
        to_map: list[tuple[SegmentRun, Compact]] = []
        shuffled: list[tuple[SegmentRun, Compact]] = []
        for run in cut:
            step = run.step
            if not isinstance(step, Compact) or not step.dirty:
                known.append(replace(run, latest=NoMap(step.strategy)))
            elif is_shuffled(step):
                shuffled.append((run, step))
            elif is_mapped_in_runs(step, jobs.cores, self.sizes):
                known.append(replace(run, latest=MapByTask(step)))
            else:
                to_map.append((run, step))
        known = with_comparisons(jobs, [*known, *with_maps(jobs, to_map, self.sizes, failed)], failed)
        of_step: dict[int, list[SegmentRun]] = defaultdict(list)
        for part in cut_into_runs([*known, *(run for run, _ in shuffled)], jobs.cores, self.sizes):
            of_step[part.step_index].append(part)
        for run, step in shuffled:
            try:
                of_step[run.step_index] = judged_by_shuffle(jobs, step, of_step[run.step_index], self.sizes)
            except OF_A_LOG as error:
                failed[run.step_index] = error
                del of_step[run.step_index]
        return [part for parts in of_step.values() for part in parts]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
