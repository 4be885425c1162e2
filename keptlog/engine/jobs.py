"""How the engine gets its tasks done, whoever does them: a small protocol, which Spark keeps (``keptlog.spark.jobs``).

    tasks (plain data) --Jobs.run--> each in some process, on files alone --> results (plain data), in their order

A task is data that pickles. It may be run twice, one after the other or at once, so it writes only to paths of its own
attempt, and only the result that comes back counts. What a task knows to be final (a stale plan, a broken guarantee) it
gives as its result, for whoever runs it would only try it again.

Small tasks that have nothing to do with each other are bundled (``run_each``): a Python task of Spark costs 40 ms.
Each of them has its own outcome, so that one that fails stops no other. Tasks that work for one log of many have the
same (``run_for_logs``): one that fails costs its own log.

All cleans run on Spark. The protocol is there to be read, and so that tests can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from keptlog import errors
from keptlog.disk import FolderShut, refusal_of, refusal_text, user_name
from keptlog.engine.amount import ReadsSegments
from keptlog.engine.bundles import bundled
from keptlog.errors import Action, KeptlogError, NoRightToWrite, StorageUnavailable
from keptlog.progress import Progress
from keptlog.storage.refusal import is_of_store, store_refusal_of

if TYPE_CHECKING:
    from keptlog.engine.attempt import Attempt
    from keptlog.engine.shuffle import KeyShuffle
    from keptlog.log.segment import Segment
    from keptlog.storage.files import Files

Result = dict[str, Any]
"""What a task gives; fit for JSON."""
TaskOutcome = Result | KeptlogError
"""What a task gives, or the error that it ended with."""

_BUNDLES_PER_CORE = 4
"""Enough that those which end last are small."""
_ERRORS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, KeptlogError)
}


class Task(Protocol):
    """What is done in one process. Plain data that pickles."""

    def run(self, attempt: Attempt) -> Result:
        """Do it, and write only to paths of the attempt."""
        ...


class LogTask(Task, Protocol):
    """A task that works for one of the steps that are carried out together."""

    @property
    def step_index(self) -> int: ...


class Jobs(Protocol):
    """Where the tasks of one call of the engine are done, a job for each list of them."""

    @property
    def files(self) -> Files:
        """The storage, as whoever asks for tasks sees it."""
        ...

    @property
    def run_id(self) -> str:
        """In the names of all files that the tasks create."""
        ...

    @property
    def progress(self) -> Progress: ...

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def within(self, paths: Iterable[str]) -> Jobs:
        """The same, for tasks that open files at these paths and below only."""
        ...

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        """Results of the tasks in their order; ``doing`` says to people what they do.

        Raises:
            KeptlogError: the first that a task ended with.
            StorageUnavailable: the storage fails, or whoever runs the tasks.
        """
        ...

    def shuffle(self, shuffle: KeyShuffle, doing: str) -> list[Result]:
        """What the last stage of a shuffle gives, in any order.

        Raises:
            StalePlan: a segment is gone.
            StorageUnavailable: the storage fails, or whoever runs it.
        """
        ...


StartJobs = Callable[[str, Progress], Jobs]
"""Makes jobs from a run id; raises StorageUnavailable or InvalidConfig if nothing can be run at all."""


def run_each(jobs: Jobs, tasks: Sequence[Task], weights: Sequence[int], doing: str) -> list[TaskOutcome]:
    """The result of each task, in their order, or the error that it alone ended with.

    ``weights`` has one number a task, in whatever unit: how much work it is, compared with the others.

    Raises:
        StorageUnavailable: whoever runs the tasks fails.
    """
    bundles = bundled(range(len(tasks)), jobs.cores * _BUNDLES_PER_CORE, weights.__getitem__)
    results = jobs.run([_Bundle(tuple(tasks[index] for index in bundle)) for bundle in bundles], doing)
    outcomes: dict[int, TaskOutcome] = {}
    for bundle, result in zip(bundles, results, strict=True):
        for index, outcome in zip(bundle, result["outcomes"], strict=True):
            outcomes[index] = error_in(outcome) or outcome
    return [outcomes[index] for index in range(len(tasks))]


def run_for_logs(jobs: Jobs, tasks: Sequence[LogTask], doing: str, failed: dict[int, KeptlogError]) -> list[Result]:
    """Results of the tasks of all logs of which none failed; each of the others comes into ``failed``, by its step.

    Raises:
        StorageUnavailable: whoever runs the tasks fails.
    """
    results = jobs.run([_Bundle((task,)) for task in tasks], doing)
    outcomes = [result["outcomes"][0] for result in results]
    for task, outcome in zip(tasks, outcomes, strict=True):
        if error := error_in(outcome):
            failed.setdefault(task.step_index, error)
    return [outcome for task, outcome in zip(tasks, outcomes, strict=True) if task.step_index not in failed]


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Tasks that are done one after the other, each with its own outcome."""

    tasks: tuple[Task, ...]

    @property
    def inputs(self) -> Sequence[Segment]:
        return [segment for task in self.tasks if isinstance(task, ReadsSegments) for segment in task.inputs]

    def run(self, attempt: Attempt) -> Result:
        # Each of them ends with it if what they all wrote is not durable.
        done = durable_result_of(self._done, attempt)
        return {"outcomes": [done] * len(self.tasks)} if "error" in done else done

    def _done(self, attempt: Attempt) -> Result:
        return {"outcomes": [result_of(partial(task.run, attempt)) for task in self.tasks]}


def durable_result_of(run: Callable[[Attempt], Result], attempt: Attempt) -> Result:
    """What a task gives once all that it wrote is durable, or the error that it ends with, fit for JSON."""

    def work() -> Result:
        with attempt.files.durable_at_end() as files:
            return run(replace(attempt, files=files))

    return result_of(work)


def result_of(work: Callable[[], Result]) -> Result:
    """What work gives, or the error that it ends with, fit for JSON."""
    try:
        return work()
    except Exception as error:
        final = final_error_of(error)
        if final is None:
            raise
        return described(final)


def final_error_of(error: Exception) -> KeptlogError | None:
    """What a task has ended with, as callers know it; null where it may do well if it is run again.

    Whoever runs the task would try it again, and fill a disk with one more unfinished file each time.
    """
    if isinstance(error, KeptlogError):
        return error
    return _final_of_storage(error) if isinstance(error, OSError) else None


def _final_of_storage(error: OSError) -> StorageUnavailable | None:
    if isinstance(error, FolderShut):
        return NoRightToWrite(f"{error.told}; nothing was committed: see to its permissions, then run it again")
    if why := refusal_of(error):
        return StorageUnavailable(refusal_text("a task", error.filename or "the storage", why)).for_good()
    if refused := store_refusal_of(error):
        return StorageUnavailable(f"a task: {refused}; nothing was committed, then run it again").for_good()
    if isinstance(error, PermissionError):
        # Arrow's errors have the path in their text, and no ``filename``.
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        todo = "nothing was committed: see to its permissions, then run it again"
        whose = "" if is_of_store(error) else f"user {user_name()} may not: "  # a store knows credentials alone
        return StorageUnavailable(f"a task: {whose}{what}; {todo}").for_good()
    return None


def described(error: KeptlogError) -> Result:
    """An error, fit for JSON: ``error_in`` makes it again."""
    return {"error": kind_and_action(error), "message": str(error)}


def error_in(result: Mapping[str, Any]) -> KeptlogError | None:
    """The error that work ended with; null if it did not."""
    return error_named(result["error"], result["message"]) if "error" in result else None


def kind_and_action(error: KeptlogError) -> str:
    """What kind of error it is, and what helps, which one error of a kind may say and another not."""
    return f"{type(error).__name__}/{error.action}"


def error_named(name: str, message: str) -> KeptlogError | None:
    """The error of a kind, as ``kind_and_action`` tells it or by its kind alone; null if there is no such kind."""
    kind, _, action = name.partition("/")
    if kind not in _ERRORS:
        return None
    error = _ERRORS[kind](message)
    if action:
        error.action = Action(action)
    return error
