"""The watermarks of a log that was rewritten in several segment runs: what those left, put together and stored.

    segment run 1   tombstones that expired --> part --+
    segment run 2   none                               |--> the new watermarks: one file, or that of before, or none
    before          watermarks of the log -------------+

Each stages what its tombstones left. A log that is one segment run stores its watermarks by itself (``segment_run``).
Few are put together here, by whoever drives the engine, for a job costs more; many in a job, a task for each log.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.jobs import Jobs, Result, final_error_of, run_for_logs
from keptlog.engine.latest import BeatenSource, staged_below
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes
from keptlog.errors import KeptlogError, StorageUnavailable, first_line
from keptlog.kernels.watermarks import NO_KEYS, no_watermarks, read_watermarks, store_watermarks
from keptlog.log.steps import CleanStep
from keptlog.log.words.counted import counted
from keptlog.storage.files import Files


@dataclass(frozen=True, slots=True)
class WatermarksTask:
    """Store the watermarks of a log that was rewritten in several segment runs, from what those left."""

    step_index: int
    step: CleanStep
    parts: tuple[str, ...]
    latest: BeatenSource
    location: str

    def run(self, attempt: Attempt) -> Result:
        return self.store(attempt.files, attempt.watermarks(self.location, self.step.topic_partition))

    def store(self, files: Files, new_path: str) -> Result:
        """Do it, where ``new_path`` is free for them."""
        parts = [read_watermarks(files, dataclasses.replace(self.step, watermarks_path=part)) for part in self.parts]
        new = pa.concat_tables([no_watermarks(), *parts])
        with staged_below(self.location):
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


@dataclass(frozen=True, slots=True)
class WatermarksLeft:
    """What the segment runs of a job left of watermarks."""

    parts: Sequence[SegmentRun]
    """The segment runs of the logs that were cut, and did not fail."""
    results: Sequence[Result]
    """Those of all segment runs of logs that did not fail."""
    otherwise: str
    """How things are if they can't be stored, for people."""


def stored_watermarks(
    jobs: Jobs, of_logs: WatermarksLeft, sizes: Sizes, failed: dict[int, KeptlogError]
) -> dict[int, str | None]:
    """Step index to the file of its log's watermarks after the pass; steps that have none at all may be missing.

    A log whose watermarks can't be stored comes into ``failed``, by its step.

    Raises:
        StorageUnavailable: whoever runs the tasks fails.
    """
    results = of_logs.results
    free_paths = {run["step_index"]: run["free_watermarks_path"] for run in results if "free_watermarks_path" in run}
    stored: list[Result] = []
    many: list[WatermarksTask] = []
    for task in _tasks(of_logs.parts, results):
        # Not around the job: what that ends with is no failure to store.
        try:
            if task.input_bytes(jobs.files) > sizes.watermarks_without_job_bytes:
                many.append(task)
            else:
                stored.append(task.store(jobs.files, free_paths[task.step_index]))
        except KeptlogError as error:
            failed[task.step_index] = error
        except OSError as error:
            failed[task.step_index] = final_error_of(error) or StorageUnavailable(
                f"storing watermarks: {first_line(error)}; {of_logs.otherwise}, try again"
            )
            failed[task.step_index].__cause__ = error
    stored += run_for_logs(jobs, many, f"storing the watermarks of {counted(len(many), 'log')}", failed)
    with_path = (result for result in [*results, *stored] if "watermarks_path" in result)
    return {result["step_index"]: result["watermarks_path"] for result in with_path}


def _tasks(parts: Sequence[SegmentRun], results: Iterable[Result]) -> list[WatermarksTask]:
    """One task for each log that was cut and has watermarks, before the pass or after it."""
    left: dict[int, list[str]] = defaultdict(list)
    for result in results:
        if result.get("watermarks_part"):
            left[result["step_index"]].append(result["watermarks_part"])
    first_runs = {run.step_index: run for run in reversed(parts) if run.step.strategy.has_versions}
    return [
        WatermarksTask(index, run.step, tuple(left[index]), run.latest, run.location)
        for index, run in first_runs.items()
        if isinstance(run.latest, BeatenSource) and (left[index] or run.step.watermarks_path)
    ]
