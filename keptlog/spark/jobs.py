"""Spark jobs: task numbers go in, a line of JSON comes out.

A job is ``spark.range(n).mapInArrow``: each Spark task gets its number, finds its description in the closure, works on
files alone, and returns one line of JSON. That needs no RDD and no SparkContext, so Spark Connect works as well.

What a task knows to be final (a stale plan, a broken guarantee) it returns as its result, for Spark would only try it
again. Where rows and not results come out of a task, the error's name goes through Spark's own report instead.

Small tasks that have nothing to do with each other are bundled (``run_each``): a Python task costs about 40 ms. Each of
them has its own outcome, so that one that fails stops no other.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from keptlog import errors
from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.log.counted import counted
from keptlog.spark.attempt import Attempt
from keptlog.spark.tasks import bundled
from keptlog.storage.files import Files
from keptlog.storage.throttle import Throttle, ThrottledFiles

Batches = Iterator[pa.RecordBatch]
_RESULT_TYPE = "task_id long, result string"
_RESULT_SCHEMA = pa.schema([("task_id", pa.int64()), ("result", pa.string())])
_FAILED = "keptlog task failed: "
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception): .*)", re.MULTILINE)
"""The last line of a worker's own traceback, when it failed before or after the task."""
_KEPTLOG_ERRORS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, KeptlogError)
}
_PROBED_TASKS = 1024
_BUNDLES_PER_CORE = 4
"""Enough that those which end last are small."""

Outcome = dict[str, Any] | KeptlogError
"""What a task gives, or the error that it ended with."""


class Task(Protocol):
    """What one Spark task does. Plain data that pickles; may run twice, so it writes only to paths of its attempt."""

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Do it; the result is fit for JSON."""
        ...


@dataclass(frozen=True)
class Jobs:
    """Runs lists of tasks, one Spark job each."""

    session: SparkSession
    files: Files
    run_id: str
    progress: Callable[[str], None]
    throttle: Throttle | None = None

    @cached_property
    def cores(self) -> int:
        """How many tasks run at once."""
        return parallelism(self.session)

    def run(self, tasks: Sequence[Task], doing: str) -> list[dict[str, Any]]:
        """Results of the tasks in their order.

        Raises:
            StorageUnavailable: the storage, or Spark, fails.
        """
        if not tasks:
            return []
        self.progress(f"{doing} in {counted(len(tasks), 'task')}")
        attempt_of = self.attempts(len(tasks))
        # Every Spark task gets all of them; each is to build only its own.
        descriptions = [pickle.dumps(task) for task in tasks]

        def work(batches: Batches) -> Batches:
            for task_id in numbers_in(batches):
                attempt = attempt_of(task_id)
                with in_a_task(), attempt.files.durable_at_end() as files:
                    task: Task = pickle.loads(descriptions[task_id])  # noqa: S301  # made above
                    result = _outcome_of(partial(task.run, replace(attempt, files=files)))
                yield pa.record_batch([[task_id], [json.dumps(result)]], schema=_RESULT_SCHEMA)

        rows = self.collect(self.numbers(len(tasks)).mapInArrow(work, _RESULT_TYPE), doing)
        results = {row.task_id: json.loads(row.result) for row in rows}
        for result in results.values():
            if error := _error_in(result):
                raise error
        return [results[task_id] for task_id in range(len(tasks))]

    def run_each(
        self, tasks: Sequence[Task], weights: Sequence[int], doing: str
    ) -> list[dict[str, Any] | KeptlogError]:
        """The result of each task, in their order, or the error that it alone ended with; ``weights`` compares them.

        Raises:
            StorageUnavailable: Spark fails.
        """
        bundles = bundled(range(len(tasks)), self.cores * _BUNDLES_PER_CORE, weights.__getitem__)
        results = self.run([_Bundle(tuple(tasks[index] for index in bundle)) for bundle in bundles], doing)
        outcomes: dict[int, Outcome] = {}
        for bundle, result in zip(bundles, results, strict=True):
            for index, outcome in zip(bundle, result["outcomes"], strict=True):
                outcomes[index] = _error_in(outcome) or outcome
        return [outcomes[index] for index in range(len(tasks))]

    def numbers(self, tasks: int) -> DataFrame:
        """As many rows as tasks, each a Spark task of its own."""
        return self.session.range(0, tasks, 1, tasks)

    def attempts(self, tasks: int) -> Callable[[int], Attempt]:
        """What makes an attempt of a task's number, in an executor; so many tasks make up the job.

        Task attempts are numbered within an application, so the application is part of the attempt: a run that is
        started again under its old id never meets its own files.
        """
        files, run_id, application = self.files, self.run_id, str(self.session.conf.get("spark.app.id"))
        share = self.throttle.share_of(min(tasks, self.cores)) if self.throttle else None

        def attempt_of(task_id: int) -> Attempt:
            context = TaskContext.get()
            number = context.taskAttemptId() if context else 0
            own_files = ThrottledFiles(files, share) if share else files
            return Attempt(own_files, run_id, task_id, f"{application}-{number}")

        return attempt_of

    def collect(self, frame: DataFrame, doing: str) -> list[Any]:
        """The rows of a frame.

        Raises:
            StalePlan: a task says so.
            StorageUnavailable: the storage, or Spark, fails.
        """
        try:
            return frame.collect()
        except Exception as error:
            raise _as_keptlog_error(error, doing) from error


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:
        # Spark Connect has no context; it cuts a range into as many parts as its default parallelism.
        return len(set(session.range(_PROBED_TASKS).select(sql.spark_partition_id()).collect()))


def numbers_in(batches: Batches) -> Iterator[int]:
    """The task numbers that a Spark task got."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


@contextmanager
def in_a_task() -> Iterator[None]:
    """Around what runs in an executor: names its errors for the driver, and gives memory back."""
    pa.set_cpu_count(1)
    try:
        yield
    except Exception as error:
        first_line = (str(error).strip().splitlines() or [""])[0]
        raise RuntimeError(f"{_FAILED}{type(error).__name__}: {first_line}") from error
    finally:
        pa.default_memory_pool().release_unused()


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Tasks that are done one after the other, each with its own outcome."""

    tasks: tuple[Task, ...]

    def run(self, attempt: Attempt) -> dict[str, Any]:
        return {"outcomes": [_outcome_of(partial(task.run, attempt)) for task in self.tasks]}


def _outcome_of(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What work gives, or the error that it ends with, fit for JSON."""
    try:
        return work()
    except KeptlogError as error:
        return {"error": type(error).__name__, "message": str(error)}


def _error_in(outcome: Mapping[str, Any]) -> KeptlogError | None:
    """The error that work ended with; null if it did not."""
    return _KEPTLOG_ERRORS[outcome["error"]](outcome["message"]) if "error" in outcome else None


def _as_keptlog_error(error: Exception, doing: str) -> KeptlogError:
    """One line for what Spark tells in sixty."""
    text = str(error)
    found = re.search(f"{_FAILED}(.*)", text) or _PYTHON_ERROR.search(text)
    reason = found.group(1).strip() if found else (text.strip().splitlines() or [type(error).__name__])[0]
    name, _, message = reason.partition(": ")
    if name in _KEPTLOG_ERRORS:
        return _KEPTLOG_ERRORS[name](message)
    return StorageUnavailable(f"Spark failed while {doing}: {reason}; nothing was committed, try again")
