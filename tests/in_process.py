"""Runs the engine's tasks in this process, one after the other.

Everything but Spark is real: steps are cut into tasks, tasks map, merge and rewrite with the kernels that run on
executors, and their results come back as the JSON that Spark would carry. A clean takes milliseconds, so that tests can
make thousands.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, Task, durable_result_of, error_in
from keptlog.engine.shuffle import KeyShuffle
from keptlog.engine.tasks import Sizes
from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.progress import Progress
from keptlog.storage.files import Files

SMALL_CUTS = Sizes(
    whole_log_records=5,
    mapped_in_runs_records=10,
    map_part_records=3,
    merged_in_runs_keys=6,
    watermarks_without_job_bytes=1000,
    run_bytes=8000,
    bundles_per_core=1,
)
"""Cuts even a log of a few records into several maps and runs."""


@dataclass(frozen=True)
class InProcessJobs:
    """The ``Jobs`` of one run. Tasks and results go through what Spark would carry them in: pickles and JSON."""

    files: Files
    run_id: str
    progress: Progress
    application: str
    """Sets the paths of one run's attempts apart from those of another with the same id."""
    cores: int = 2

    def within(self, paths: Iterable[str]) -> InProcessJobs:
        """As ``Jobs`` says."""
        return replace(self, files=self.files.within(paths))

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        self.progress(doing)
        results = []
        for number, task in enumerate(tasks):
            with _in_a_task(doing):
                pickled: Task = pickle.loads(pickle.dumps(task))  # noqa: S301  # made here
                results.append(json.loads(json.dumps(durable_result_of(pickled.run, self._attempt(number)))))
        for result in results:
            if error := error_in(result):
                raise error
        return results

    def shuffle(self, shuffle: KeyShuffle, doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        with _in_a_task(doing):
            emitted = [list(shuffle.emit(number, self.files)) for number in range(len(shuffle.emits))]
            by_key = _repartitioned(emitted, shuffle.settled_parts, "key")
            settled = [list(shuffle.settle(iter(part))) for part in by_key]
            by_run = _repartitioned(settled, shuffle.list_writers, "run")
            return [
                json.loads(json.dumps(result))
                for number, part in enumerate(by_run)
                for result in shuffle.write_lists(iter(part), self._attempt(number))
            ]

    def _attempt(self, task_id: int) -> Attempt:
        return Attempt(self.files, self.run_id, task_id, f"{self.application}-{next(_attempts)}")


_applications, _attempts = itertools.count(), itertools.count()


def _repartitioned(tasks: Sequence[Sequence[pa.RecordBatch]], parts: int, column: str) -> list[list[pa.RecordBatch]]:
    """Rows with the same value come together, in an order that mixes those of the tasks."""
    cut: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
    for batch in (batch for task in reversed(tasks) for batch in task if batch.num_rows):
        part_of_row = [hash(value) % parts for value in batch.column(column).to_pylist()]
        for part in range(parts):
            cut[part].append(batch.filter(pa.array([each == part for each in part_of_row])))
    return cut


@contextmanager
def _in_a_task(doing: str) -> Iterator[None]:
    """What no task of keptlog's says on purpose comes as it does from Spark."""
    try:
        yield
    except KeptlogError:
        raise
    except Exception as error:
        raise StorageUnavailable(f"failed while {doing}: {error}; nothing was committed, try again") from error


def in_process_engine(files: Files, sizes: Sizes = SMALL_CUTS) -> Engine:
    """An engine without Spark."""

    def start(run_id: str, progress: Progress) -> InProcessJobs:
        return InProcessJobs(files, run_id, progress, f"local-{next(_applications)}")

    return Engine(start, files, sizes)
