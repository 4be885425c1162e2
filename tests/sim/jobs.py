"""The engine's tasks in a simulated world: they run twice, are lost after they wrote, or are late.

Spark does all of that: it tries a task again whose executor died after it had written everything, it starts a second
copy of a slow one, and that copy may still write when the run that wanted it has long committed.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from typing_extensions import override

from keptlog.engine.attempt import Attempt
from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, Task, durable_result_of, error_in
from keptlog.progress import Progress
from keptlog.storage.files import Files
from tests.in_process import SMALL_CUTS, InProcessJobs, _in_a_task
from tests.sim.faults import Fault
from tests.sim.world import World

TASK = (Fault.TASK_TWICE, Fault.TASK_LOST, Fault.TASK_LATE, Fault.CRASH_BEFORE)


@dataclass(frozen=True)
class SimulatedJobs(InProcessJobs):
    """The ``Jobs`` of one run in one world."""

    world: World = field(kw_only=True)
    late: list[Callable[[], object]] = field(kw_only=True)
    """Copies of tasks that nobody waits for any more."""

    @override
    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        results = []
        for number, task in enumerate(tasks):
            fault = self.world.seam("task", f"{number} of {len(tasks)}", TASK)
            with _in_a_task(doing):
                if fault in {Fault.TASK_TWICE, Fault.TASK_LOST}:
                    self._tried(number, task)
                if fault is Fault.TASK_LATE:
                    self.late.append(partial(self._tried, number, task))
                results.append(self._tried(number, task))
        for result in results:
            if error := error_in(result):
                raise error
        return results

    def _tried(self, number: int, task: Task) -> Result:
        pickled: Task = pickle.loads(pickle.dumps(task))  # noqa: S301  # made here
        found: Result = json.loads(json.dumps(durable_result_of(pickled.run, self._attempt(number))))
        return found

    @override
    def _attempt(self, task_id: int) -> Attempt:
        return Attempt(self.files, self.run_id, task_id, f"a{next(self.world.attempts)}")


def simulated_engine(world: World, files: Files, late: list[Callable[[], object]]) -> Engine:
    """An engine whose tasks meet faults."""

    def start(run_id: str, progress: Progress) -> SimulatedJobs:
        return SimulatedJobs(files, run_id, progress, "sim", world=world, late=late)

    return Engine(start, files, SMALL_CUTS)
