"""Spark jobs: task numbers go in, a line of JSON comes out (``keptlog.engine.jobs`` says what a task is).

A task works on files alone. On a local Spark a job is an RDD of the descriptions, which needs no Spark SQL: a first job
is four seconds sooner done (ADR 63). Elsewhere it is ``spark.range(n).mapInArrow``: each Spark task gets its number and
finds its description in the closure. That needs no SparkContext, so Spark Connect works as well.

What a task knows to be final it returns as its result. Where rows and not results come out of a task, the error's name
goes through Spark's own report instead.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from keptlog.engine.amount import Amount, amount_of
from keptlog.engine.attempt import Attempt
from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, StartJobs, Task, durable_result_of, error_in
from keptlog.engine.shuffle import KeyShuffle
from keptlog.engine.tasks import Sizes
from keptlog.errors import SparkUnavailable
from keptlog.foreign_json import json_value
from keptlog.log.words.counted import counted
from keptlog.progress import Progress
from keptlog.spark.connect import set_patience
from keptlog.spark.driver import Spark, context_of, is_connect, local_context, session_on
from keptlog.spark.failures import told_in_one_line
from keptlog.spark.readiness import make_ready
from keptlog.spark.shuffle import shuffled
from keptlog.spark.waiting import collected
from keptlog.spark.worker import Batches, in_a_task, numbers_in
from keptlog.spark.worker_imports import for_tasks
from keptlog.storage.files import Files
from keptlog.storage.throttle import Throttle, ThrottledFiles

_RESULT_TYPE = "task_id long, result string"
_RESULT_SCHEMA = pa.schema([("task_id", pa.int64()), ("result", pa.string())])
_PROBED_TASKS = 1024


@dataclass(frozen=True)
class SparkJobs:
    """The ``Jobs`` of one run id on one Spark: each list of tasks is a Spark job."""

    spark: Spark
    files: Files
    run_id: str
    progress: Progress
    throttle: Throttle | None = None

    @cached_property
    def cores(self) -> int:
        """How many tasks run at once.

        Raises:
            StorageUnavailable: Spark is gone.
        """
        return parallelism(self.spark)

    def within(self, paths: Iterable[str]) -> SparkJobs:
        """As ``Jobs`` says."""
        return replace(self, files=self.files.within(paths))

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        if not tasks:
            return []
        self.progress(f"{doing} in {counted(len(tasks), 'task')}")
        descriptions = [pickle.dumps(task) for task in tasks]
        amounts = [amount for task in tasks if (amount := amount_of(task))]
        with _told(self.spark, doing):
            answers = self._answers(descriptions, doing, amounts)
        results = [json_value(each) for each in answers]
        for result in results:
            if error := error_in(result):
                raise error
        return results

    def shuffle(self, shuffle: KeyShuffle, doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        self.progress(f"{doing} in {counted(shuffle.settled_parts, 'part')}")
        with _told(self.spark, doing):
            reading, writing = self._attempts(len(shuffle.emits)), self._attempts(shuffle.list_writers)
            frame = shuffled(shuffle, self._numbers(len(shuffle.emits)), reading, writing)
            return [json_value(row.result) for row in collected(self.spark, frame, doing, self.progress)]

    def _answers(self, descriptions: list[bytes], doing: str, amounts: Sequence[Amount]) -> list[str]:
        """What each task answers, in their order; each is a Spark task of its own."""
        attempt_of = self._attempts(len(descriptions))

        def answer(task_id: int, description: bytes) -> str:
            with in_a_task():
                task: Task = pickle.loads(description)  # noqa: S301  # made above
                return json.dumps(durable_result_of(task.run, attempt_of(task_id)))

        context = local_context(self.spark)
        if context:
            numbered = for_tasks(context).parallelize(list(enumerate(descriptions)), len(descriptions))
            job = numbered.map(lambda task: answer(*task))
            return collected(self.spark, job, doing, self.progress, amounts)

        def work(batches: Batches) -> Batches:
            # Every Spark task gets all descriptions; each is to build only its own.
            for task_id in numbers_in(batches):
                yield pa.record_batch([[task_id], [answer(task_id, descriptions[task_id])]], schema=_RESULT_SCHEMA)

        frame = self._numbers(len(descriptions)).mapInArrow(work, _RESULT_TYPE)
        rows = collected(self.spark, frame, doing, self.progress, amounts)
        return [row.result for row in sorted(rows, key=lambda row: row.task_id)]

    def _numbers(self, tasks: int) -> DataFrame:
        """As many rows as tasks, each a Spark task of its own."""
        return session_on(self.spark).range(0, tasks, 1, tasks)

    def _attempts(self, tasks: int) -> Callable[[int], Attempt]:
        """What makes an attempt of a task's number, in an executor; so many tasks make up the job.

        Task attempts are numbered within an application, so the application is part of the attempt: a pass that
        is started again under its old run id never meets its own files.
        """
        files, run_id, application = self.files, self.run_id, _application(self.spark)
        share = self.throttle.share_of(min(tasks, self.cores)) if self.throttle else None

        def attempt_of(task_id: int) -> Attempt:
            context = TaskContext.get()
            number = context.taskAttemptId() if context else 0
            own_files = ThrottledFiles(files, share) if share else files
            return Attempt(own_files, run_id, task_id, f"{application}-{number}")

        return attempt_of


def spark_jobs(spark: Callable[[], Spark], files: Files, throttle: Throttle | None = None) -> StartJobs:
    """Starts jobs on what ``spark`` brings; it is asked for at each call, never kept."""

    def start(run_id: str, progress: Progress) -> SparkJobs:
        """Raises InvalidConfig if its workers can't do our tasks."""
        current = spark()
        make_ready(current, files.task_modules)
        return SparkJobs(current, files, run_id, progress, throttle)

    return start


def spark_engine(
    spark: Callable[[], Spark], files: Files, sizes: Sizes | None = None, throttle: Throttle | None = None
) -> Engine:
    """An engine whose tasks Spark does."""
    return Engine(spark_jobs(spark, files, throttle), files, sizes or Sizes())


def parallelism(spark: Spark) -> int:
    """How many tasks run at once.

    Raises:
        StorageUnavailable: Spark is gone.
    """
    doing = "counting its cores"
    with _told(spark, doing):
        context = context_of(spark)
        if context:
            return int(context.defaultParallelism)
        from pyspark.sql.functions import spark_partition_id  # noqa: PLC0415  # a Connect server alone is asked so

        # It cuts a range into as many parts as its default parallelism.
        parts = session_on(spark).range(_PROBED_TASKS).select(spark_partition_id())
        return len(set(collected(spark, parts, doing)))


@contextmanager
def _told(spark: Spark, doing: str) -> Iterator[None]:
    """Around all that Spark is asked for; a server that is gone is not waited for again.

    Raises:
        KeptlogError: whatever Spark raised, in one line.
    """
    context = context_of(spark)
    try:
        with told_in_one_line(doing, context._temp_dir if context else None):  # noqa: SLF001  # no other way
            yield
    except SparkUnavailable:
        if is_connect(spark):
            set_patience(session_on(spark), retries=0)
        raise


def _application(spark: Spark) -> str:
    context = context_of(spark)
    return str(context.applicationId if context else session_on(spark).conf.get("spark.app.id"))
