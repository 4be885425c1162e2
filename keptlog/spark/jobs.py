"""Spark jobs: task numbers go in, a line of JSON comes out (``keptlog.engine.jobs`` says what a task is).

A job is ``spark.range(n).mapInArrow``: each Spark task gets its number, finds its description in the closure, works on
files alone, and returns one line of JSON. That needs no RDD and no SparkContext, so Spark Connect works as well.

What a task knows to be final it returns as its result. Where rows and not results come out of a task, the error's name
goes through Spark's own report instead.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from keptlog.engine.amount import Amount, amount_of
from keptlog.engine.attempt import Attempt
from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, StartJobs, Task, error_in, result_of
from keptlog.engine.shuffle import KeyShuffle
from keptlog.engine.tasks import Sizes
from keptlog.errors import SparkUnavailable
from keptlog.log.counted import counted
from keptlog.progress import Progress
from keptlog.spark.connect import is_connect, set_patience
from keptlog.spark.failures import as_keptlog_error
from keptlog.spark.readiness import make_ready
from keptlog.spark.shuffle import shuffled
from keptlog.spark.waiting import collected
from keptlog.spark.worker import Batches, in_a_task, numbers_in
from keptlog.storage.files import Files
from keptlog.storage.throttle import Throttle, ThrottledFiles

_RESULT_TYPE = "task_id long, result string"
_RESULT_SCHEMA = pa.schema([("task_id", pa.int64()), ("result", pa.string())])
_PROBED_TASKS = 1024


@dataclass(frozen=True)
class SparkJobs:
    """The ``Jobs`` of one run id on one session: each list of tasks is a Spark job."""

    session: SparkSession
    files: Files
    run_id: str
    progress: Progress
    throttle: Throttle | None = None

    @cached_property
    def cores(self) -> int:
        """How many tasks run at once."""
        return parallelism(self.session)

    def within(self, paths: Iterable[str]) -> SparkJobs:
        """As ``Jobs`` says."""
        return replace(self, files=self.files.within(paths))

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        if not tasks:
            return []
        self.progress(f"{doing} in {counted(len(tasks), 'task')}")
        attempt_of = self._attempts(len(tasks))
        # Every Spark task gets all of them; each is to build only its own.
        descriptions = [pickle.dumps(task) for task in tasks]

        def work(batches: Batches) -> Batches:
            for task_id in numbers_in(batches):
                attempt = attempt_of(task_id)
                with in_a_task(), attempt.files.durable_at_end() as files:
                    task: Task = pickle.loads(descriptions[task_id])  # noqa: S301  # made above
                    result = result_of(partial(task.run, replace(attempt, files=files)))
                yield pa.record_batch([[task_id], [json.dumps(result)]], schema=_RESULT_SCHEMA)

        amounts = [amount for task in tasks if (amount := amount_of(task))]
        rows = self._collect(self._numbers(len(tasks)).mapInArrow(work, _RESULT_TYPE), doing, amounts)
        results = {row.task_id: json.loads(row.result) for row in rows}
        for result in results.values():
            if error := error_in(result):
                raise error
        return [results[task_id] for task_id in range(len(tasks))]

    def shuffle(self, shuffle: KeyShuffle, doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        self.progress(f"{doing} in {counted(shuffle.settled_parts, 'part')}")
        reading, writing = self._attempts(len(shuffle.emits)), self._attempts(shuffle.list_writers)
        frame = shuffled(shuffle, self._numbers(len(shuffle.emits)), reading, writing)
        return [json.loads(row.result) for row in self._collect(frame, doing)]

    def _numbers(self, tasks: int) -> DataFrame:
        """As many rows as tasks, each a Spark task of its own."""
        return self.session.range(0, tasks, 1, tasks)

    def _attempts(self, tasks: int) -> Callable[[int], Attempt]:
        """What makes an attempt of a task's number, in an executor; so many tasks make up the job.

        Task attempts are numbered within an application, so the application is part of the attempt: a pass that
        is started again under its old run id never meets its own files.
        """
        files, run_id, application = self.files, self.run_id, str(self.session.conf.get("spark.app.id"))
        share = self.throttle.share_of(min(tasks, self.cores)) if self.throttle else None

        def attempt_of(task_id: int) -> Attempt:
            context = TaskContext.get()
            number = context.taskAttemptId() if context else 0
            own_files = ThrottledFiles(files, share) if share else files
            return Attempt(own_files, run_id, task_id, f"{application}-{number}")

        return attempt_of

    def _collect(self, frame: DataFrame, doing: str, amounts: Sequence[Amount] = ()) -> list[Any]:
        try:
            return collected(self.session, frame, doing, self.progress, amounts)
        except Exception as error:
            told = as_keptlog_error(error, doing)
            if isinstance(told, SparkUnavailable) and is_connect(self.session):
                set_patience(self.session, retries=0)
            raise told from error


def spark_jobs(session: Callable[[], SparkSession], files: Files, throttle: Throttle | None = None) -> StartJobs:
    """Starts jobs on the session that ``session`` brings; it is asked for at each call, never kept."""

    def start(run_id: str, progress: Progress) -> SparkJobs:
        """Raises InvalidConfig if the session's workers can't do our tasks."""
        current = session()
        make_ready(current, files.task_modules)
        return SparkJobs(current, files, run_id, progress, throttle)

    return start


def spark_engine(
    session: Callable[[], SparkSession], files: Files, sizes: Sizes | None = None, throttle: Throttle | None = None
) -> Engine:
    """An engine whose tasks Spark does."""
    return Engine(spark_jobs(session, files, throttle), files, sizes or Sizes())


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:
        # Spark Connect has no context; it cuts a range into as many parts as its default parallelism.
        parts = session.range(_PROBED_TASKS).select(sql.spark_partition_id())
        return len(set(collected(session, parts, "counting its cores")))
