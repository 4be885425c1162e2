"""Carries steps out on Spark: plans in, staged outcomes back, in the same order.

    steps --cut--> tasks --> job 1: map parts --> job 2: merge --> job 3: rewrite --> outcomes
                                  (large logs only)

A job is ``spark.range(n).mapInArrow``: each Spark task gets its number, finds its description in the closure, works
on files alone, and returns one line of JSON. That needs no RDD and no SparkContext, so Spark Connect works as well;
there is no shuffle, sort or join in any plan.

Tasks that fail, are killed or run twice leave files that nobody refers to. What a task knows to be final (a stale plan,
a broken guarantee) it returns as its result, for Spark would only try it again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from keptlog import errors
from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.log.plan import Step
from keptlog.log.result import Counts, Rewritten
from keptlog.log.segment import Segment
from keptlog.spark.tasks import Attempt, MergeTask, Run, Sizes, Task, is_cut, map_tasks, rewrite_tasks
from keptlog.storage.files import Files

_RESULT_TYPE = "task_id long, result string"
_RESULT_SCHEMA = pa.schema([("task_id", pa.int64()), ("result", pa.string())])
_FAILED = "keptlog task failed: "
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w+(?:Error|Exception): .*)", re.MULTILINE)
"""The last line of a worker's own traceback, when it failed before or after the task."""
_PROBED_TASKS = 1024


@dataclass(frozen=True)
class SparkEngine:
    """Rewrites logs on the session that ``session`` brings; it is asked for at each call, never kept."""

    session: Callable[[], SparkSession]
    files: Files
    sizes: Sizes = field(default_factory=Sizes)

    def rewrite(
        self,
        steps: Sequence[Step],
        locations: Mapping[str, str],
        run_id: str,
        progress: Callable[[str], None] | None = None,
    ) -> list[Rewritten]:
        """Carry steps out; everything is staged, nothing visible. ``locations`` gives each topic's data location.

        Raises:
            StalePlan: an input is gone.
            StorageUnavailable: the storage, or Spark, fails; nothing was committed.
        """
        if not steps:
            return []
        _refuse_unknown_strategies(steps)
        job = _Jobs(self.session(), self.files, run_id, progress or _silent)
        cores = parallelism(job.session)
        runs = [Run(index, step, step.segments, _folder(locations, step)) for index, step in enumerate(steps)]
        whole = [run for run in runs if not is_cut(run.step, self.sizes)]
        cut = [run for run in runs if is_cut(run.step, self.sizes)]
        staging = {run.step_index: _staging(locations, run.step, run_id) for run in cut}
        try:
            cut = self._with_maps(job, cut, staging, cores)
            results = job.run(rewrite_tasks(cut, whole, cores, self.sizes), f"rewriting {len(steps)} logs")
        finally:
            for folder in set(staging.values()):
                for file in self.files.list(folder):
                    self.files.delete(file.path)
        return _outcomes(steps, results)

    def _with_maps(self, job: _Jobs, cut: Sequence[Run], staging: Mapping[int, str], cores: int) -> list[Run]:
        """The runs with the path of their log's offset map, after it was made."""
        tasks = [task for run in cut for task in map_tasks(run, staging[run.step_index], cores, self.sizes)]
        parts: dict[int, list[str]] = defaultdict(list)
        for result in job.run(tasks, f"mapping the keys of {len(cut)} logs"):
            parts[result["step_index"]].append(result["path"])
        merges = [MergeTask(index, tuple(paths), staging[index]) for index, paths in parts.items() if len(paths) > 1]
        for result in job.run(merges, f"merging the maps of {len(merges)} logs"):
            parts[result["step_index"]] = [result["path"]]
        return [replace(run, map_path=next(iter(parts[run.step_index]), None)) for run in cut]


@dataclass(frozen=True)
class _Jobs:
    """Runs lists of tasks, one Spark job each."""

    session: SparkSession
    files: Files
    run_id: str
    progress: Callable[[str], None]

    def run(self, tasks: Sequence[Task], doing: str) -> list[dict[str, Any]]:
        """Results of the tasks in their order."""
        if not tasks:
            return []
        self.progress(f"{doing} in {len(tasks)} tasks")
        work = _work(tasks, self.files, self.run_id, str(self.session.conf.get("spark.app.id")))
        numbers = self.session.range(0, len(tasks), 1, len(tasks))
        try:
            rows = numbers.mapInArrow(work, _RESULT_TYPE).collect()
        except Exception as error:
            raise _as_keptlog_error(error, doing) from error
        results = {row.task_id: json.loads(row.result) for row in rows}
        for result in results.values():
            if "error" in result:
                raise getattr(errors, result["error"])(result["message"])
        return [results[task_id] for task_id in range(len(tasks))]


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:
        # Spark Connect has no context; it cuts a range into as many parts as its default parallelism.
        return len(set(session.range(_PROBED_TASKS).select(sql.spark_partition_id()).collect()))


def _work(
    tasks: Sequence[Task], files: Files, run_id: str, application: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with the task numbers it gets; travels to the executors with all descriptions."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task_id in batch.column(0).to_pylist():
                result = json.dumps(perform(tasks[task_id], task_id, files, run_id, application))
                yield pa.record_batch([[task_id], [result]], schema=_RESULT_SCHEMA)

    return work


def perform(task: Task, task_id: int, files: Files, run_id: str, application: str) -> dict[str, Any]:
    """Run one task in an executor.

    Task attempts are numbered within an application, so the application is part of the attempt: a run that is started
    again under its old id never meets its own files.
    """
    context = TaskContext.get()
    number = context.taskAttemptId() if context else 0
    pa.set_cpu_count(1)
    try:
        return task.run(Attempt(files, run_id, task_id, f"{application}-{number}"))
    except KeptlogError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except Exception as error:
        first_line = (str(error).strip().splitlines() or [""])[0]
        raise RuntimeError(f"{_FAILED}{type(error).__name__}: {first_line}") from error
    finally:
        pa.default_memory_pool().release_unused()


def _outcomes(steps: Sequence[Step], results: Sequence[Mapping[str, Any]]) -> list[Rewritten]:
    by_step: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for result in results:
        for run in result["runs"]:
            by_step[run["step_index"]].append(run)
    return [_outcome(step, by_step[index]) for index, step in enumerate(steps)]


def _outcome(step: Step, runs: Sequence[Mapping[str, Any]]) -> Rewritten:
    def segments(name: str) -> tuple[Segment, ...]:
        found = (Segment(**segment) for run in runs for segment in run[name])
        return tuple(sorted(found, key=lambda segment: segment.base_offset))

    return Rewritten(
        step=step,
        removed=segments("removed"),
        added=segments("added"),
        counts=sum((Counts(**run["counts"]) for run in runs), Counts()),
        map_keys=max((run["keys"] for run in runs), default=0),
        winners_found=sum(run["winners_found"] for run in runs),
    )


def _folder(locations: Mapping[str, str], step: Step) -> str:
    return f"{locations[step.topic_partition.topic]}/partition={step.topic_partition.partition}"


def _staging(locations: Mapping[str, str], step: Step, run_id: str) -> str:
    return f"{locations[step.topic_partition.topic]}/staging/{run_id}"


def _refuse_unknown_strategies(steps: Sequence[Step]) -> None:
    for step in steps:
        if step.strategy.has_versions:
            raise InvalidConfig(
                f"{step.topic_partition}: compaction.strategy={step.strategy} is unknown to this engine; use offset"
            )


def _as_keptlog_error(error: Exception, doing: str) -> KeptlogError:
    """One line for what Spark tells in sixty."""
    text = str(error)
    found = re.search(f"{_FAILED}(.*)", text) or _PYTHON_ERROR.search(text)
    reason = found.group(1).strip() if found else (text.strip().splitlines() or [type(error).__name__])[0]
    return StorageUnavailable(f"Spark failed while {doing}: {reason}; nothing was committed, try again")


def _silent(_: str) -> None:
    return None
