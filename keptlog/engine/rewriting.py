"""The job that rewrites, and what comes after it: a log that fails costs no other, and leaves nothing behind.

    tasks --> result a segment run, or the error of its log
              good logs      handed on
              failed logs    what other tasks have staged for them is deleted

A task deletes by itself what it has staged for a log that fails in it. Of a job that dies as a whole nobody knows what
its tasks have staged: that is left to a purge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from keptlog.engine.jobs import Jobs, Result, error_in
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes, rewrite_tasks
from keptlog.engine.watermark_tasks import WatermarksLeft, stored_watermarks
from keptlog.errors import KeptlogError
from keptlog.storage.leftover import discard


@dataclass(frozen=True)
class Rewriting:
    """One call of the engine on its way; a log that has failed in one job is in none of the next."""

    jobs: Jobs
    sizes: Sizes
    failed: dict[int, KeptlogError] = field(default_factory=dict)
    """By step index what its log ends with: one object for the logs of a task that all end with the same."""

    def results(self, parts: Sequence[SegmentRun], whole: Sequence[SegmentRun], doing: str) -> list[Result]:
        """Results of the segment runs of all logs that did not fail.

        ``parts`` are those of the logs that were cut, ``whole`` are logs that are one.

        Raises:
            StorageUnavailable: whoever runs the tasks fails.
        """
        tasks = rewrite_tasks(parts, whole, self.jobs.cores, self.sizes)
        results: list[Result] = []
        for task in self.jobs.run(tasks, doing):
            shared: dict[str, KeptlogError] = {}
            for run in task["runs"]:
                if error := error_in(run):
                    self.failed.setdefault(run["step_index"], shared.setdefault(str(error), error))
                else:
                    results.append(run)
        return self._without_failed(results)

    def with_watermarks(
        self, parts: Sequence[SegmentRun], results: Sequence[Result], otherwise: str
    ) -> tuple[list[Result], dict[int, str | None]]:
        """The results of all logs whose watermarks are stored, and by step index where; null if there are none.

        ``otherwise`` says to people how things are if they can't be stored.

        Raises:
            StorageUnavailable: whoever runs the tasks fails; nothing is left.
        """
        good = [part for part in parts if part.step_index not in self.failed]
        try:
            left = WatermarksLeft(good, results, otherwise)
            stored = stored_watermarks(self.jobs, left, self.sizes, self.failed)
        except BaseException:
            self._discard(results)
            raise
        return self._without_failed(results), stored

    def require_all(self) -> None:
        """Raises the first error that a log has ended with."""
        for error in self.failed.values():
            raise error

    def _without_failed(self, results: Sequence[Result]) -> list[Result]:
        self._discard([run for run in results if run["step_index"] in self.failed])
        return [run for run in results if run["step_index"] not in self.failed]

    def _discard(self, results: Sequence[Result]) -> None:
        """Delete what segment runs have staged that nobody will refer to."""
        segments = [segment["path"] for run in results for segment in run["added"]]
        watermarks = [run["free_watermarks_path"] for run in results if run["free_watermarks_path"]]
        discard(self.jobs.files, [*segments, *watermarks])
