"""Watches a Spark job: tells how far it is, and gives it up if nobody works on it.

A job that takes longer than ten seconds tells every ten how far it is, and about how long the rest will take:

    rewriting 3 logs: 3 of 12 tasks done in 10 s, about 1200 of 5000 records (0.5 MiB of 2.0 MiB), about 30 s left

Spark says how many tasks are done, and not which. It begins them in their order, so the first ones are taken for done.
Where it is not known what tasks read, they are taken for alike. A job that nobody works on has nothing to tell:

    a standalone cluster whose cores another application has taken, one whose workers are gone,
    a master that was started anew and knows nothing of us, a queue, a server that is busy …

Spark waits for all of these without end and without a word. Here it is a warning after ten seconds, and after
``spark.keptlog.executors.timeout`` (ten minutes) the job is cancelled, with an error that is no log's fault.

A session waits if it has tasks to do and none of them runs, whoever's they are: a job that stands behind another one of
its own session is left alone. A cluster's driver is asked for that each second; a Connect server tells it with the
progress of the job. Local sessions are their own executors, and never wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame

from keptlog.engine.amount import Amount, added
from keptlog.errors import SparkUnavailable
from keptlog.log.words.counted import counted
from keptlog.log.words.units import duration, size
from keptlog.progress import Progress, silent
from keptlog.spark.driver import Spark, context_of, local_context, setting_of
from keptlog.spark.settings import DEFAULT_PATIENCE, PATIENCE, patience_seconds

_logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_TOLD_SECONDS = 10
HowFar = Callable[[int, int, int], str | None]
"""From tasks that are done, all tasks and seconds to what people are told."""
_given_up: WeakSet[SparkContext] = WeakSet()
"""A Connect server is never among them: it may find executors without us."""


def collected(
    spark: Spark, job: DataFrame | RDD[Any], doing: str, progress: Progress = silent, amounts: Sequence[Amount] = ()
) -> list[Any]:
    """What a job gives; ``doing`` says to people what it does, ``progress`` takes how far it is.

    ``amounts`` is what each of its tasks reads, where that is known.

    Raises:
        SparkUnavailable: nobody worked on it for too long.
        Exception: whatever Spark raises.
    """
    with _watching(spark, partial(how_far, doing, amounts), doing, progress):
        return job.collect()


def is_given_up(spark: Spark) -> bool:
    """Whether a job of it was given up, and no other has found anybody to work on it since."""
    return context_of(spark) in _given_up


def how_far(doing: str, amounts: Sequence[Amount], done: int, tasks: int, seconds: int) -> str | None:
    """One line on a job that has run for some time; null if nothing of it is done yet."""
    if not 0 < done < tasks:
        return None
    told = f"{doing}: {done} of {counted(tasks, 'task')} done in {seconds} s"
    finished, whole = added(amounts[:done]), added(amounts)
    if len(amounts) != tasks or not finished.bytes:
        return f"{told}, about {duration(seconds * 1000 * (tasks - done) // done)} left"
    left_ms = seconds * 1000 * (whole.bytes - finished.bytes) // finished.bytes
    records = f"about {finished.records} of {counted(whole.records, 'record')}"
    return f"{told}, {records} ({size(finished.bytes)} of {size(whole.bytes)}), about {duration(left_ms)} left"


class _Job(Protocol):
    """One job, as whoever waits for it sees it; ``tag`` is what it is known by."""

    def begin(self, tag: str) -> None:
        """Give its tag to what this thread does next."""
        ...

    def end(self, tag: str) -> None: ...

    def cancel(self, tag: str) -> None:
        """Called from another thread."""
        ...

    def is_waiting(self) -> bool:
        """Whether there are tasks to do, and nobody does any."""
        ...

    def who_is_missing(self) -> str: ...

    def tasks(self) -> tuple[int, int]:
        """How many of its tasks are done, and how many there are, as far as it is known; 0 of 0 if it is not."""
        ...


class _ClusterJob:
    """Of a driver that is in this process."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._memory = setting_of(context, "spark.executor.memory", "1g")
        self._is_local = local_context(context) is not None

    # By the context: a session's tags can be cancelled from their own thread only.
    def begin(self, tag: str) -> None:
        self._context.addJobTag(tag)

    def end(self, tag: str) -> None:
        self._context.removeJobTag(tag)

    def cancel(self, tag: str) -> None:
        self._context.cancelJobsWithTag(tag)

    def is_waiting(self) -> bool:
        stages = [] if self._is_local else self._stages()
        return bool(stages) and not any(stage.numActiveTasks for stage in stages)

    def tasks(self) -> tuple[int, int]:
        stages = self._stages()
        # Several at once are of several jobs, and which is whose the driver does not say by tag.
        return (stages[0].numCompletedTasks, stages[0].numTasks) if len(stages) == 1 else (0, 0)

    def _stages(self) -> list[Any]:
        tracker = self._context.statusTracker()
        # None while the driver still plans.
        return [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage]

    def who_is_missing(self) -> str:
        return (
            f"no executor of {self._context.master} does it: its workers may be gone, have less memory than an "
            f"executor asks for (spark.executor.memory={self._memory}), or be taken by other applications "
            "(give each of those spark.cores.max)"
        )


class _ConnectJob:
    """Of a Connect server, which tells every two seconds; one that tells nothing is taken to be at work."""

    def __init__(self, session: Spark) -> None:
        self._session: Any = session
        self._is_waiting = False
        self._ended_tasks = 0
        self._tasks = 0

    def begin(self, tag: str) -> None:
        self._session.addTag(tag)
        self._session.registerProgressHandler(self)

    def end(self, tag: str) -> None:
        self._session.removeProgressHandler(self)
        self._session.removeTag(tag)

    def cancel(self, tag: str) -> None:
        self._session.interruptTag(tag)

    def __call__(self, *, stages: Iterable[Any] | None, inflight_tasks: int, done: bool, **_: object) -> None:
        """As PySpark calls it."""
        ended_tasks = sum(stage.num_completed_tasks for stage in stages or ())
        self._is_waiting = not done and not inflight_tasks and ended_tasks == self._ended_tasks
        self._ended_tasks = ended_tasks
        self._tasks = sum(stage.num_tasks for stage in stages or ())

    def tasks(self) -> tuple[int, int]:
        return self._ended_tasks, self._tasks

    def is_waiting(self) -> bool:
        return self._is_waiting

    def who_is_missing(self) -> str:
        return (
            f"no executor of the Spark Connect server at {self._session.client.host} does it: its workers may be gone, "
            "or other jobs have taken its cores"
        )


@contextmanager
def _watching(spark: Spark, line: HowFar, doing: str, progress: Progress) -> Iterator[None]:
    context = context_of(spark)
    job: _Job = _ClusterJob(context) if context else _ConnectJob(spark)
    watch = _Watch(spark, job, doing, lambda *done: progress(text) if (text := line(*done)) else None)
    try:
        job.begin(watch.tag)
        yield
    except Exception as error:
        if watch.given_up:
            raise SparkUnavailable(watch.given_up) from error
        raise
    finally:
        watch.end()
        # A Spark that is gone takes no leave.
        with suppress(Exception):
            job.end(watch.tag)


class _Watch:
    """Looks at a job from a thread of its own until it has ended."""

    def __init__(self, spark: Spark, job: _Job, doing: str, tell: Callable[[int, int, int], object]) -> None:
        self.tag = f"keptlog-{id(self)}"
        self.given_up: str | None = None
        """Why, once it was."""
        self._spark, self._job, self._doing, self._tell = spark, job, doing, tell
        asked_seconds = patience_seconds({PATIENCE: setting_of(spark, PATIENCE, DEFAULT_PATIENCE)})
        self._patience_seconds = min(asked_seconds, _TOLD_SECONDS) if is_given_up(spark) else asked_seconds
        self._ended = threading.Event()
        self._looking = threading.Thread(target=self._look, name="keptlog-waiting", daemon=True)
        self._looking.start()

    def end(self) -> None:
        self._ended.set()
        self._looking.join()

    def _look(self) -> None:
        idle_seconds, looks = 0, 0
        while not self._ended.wait(_LOOK_SECONDS):
            looks += 1
            try:
                idle_seconds = idle_seconds + 1 if self._job.is_waiting() else 0
                self._act(idle_seconds)
                if not looks % _TOLD_SECONDS:
                    self._tell(*self._job.tasks(), looks)
            except Exception:  # noqa: BLE001  # a Spark that is gone, and whoever waits for the job is told so
                return

    def _act(self, idle_seconds: int) -> None:
        context = context_of(self._spark)
        if context and not idle_seconds:
            _given_up.discard(context)
        if idle_seconds == _TOLD_SECONDS < self._patience_seconds:
            text = "Spark has waited for %d s while %s: %s; it waits for %d s at most (%s)"
            missing = self._job.who_is_missing()
            _logger.warning(text, idle_seconds, self._doing, missing, self._patience_seconds, PATIENCE)
        if idle_seconds >= self._patience_seconds:
            if context:
                _given_up.add(context)
            self.given_up = (
                f"Spark was given up while {self._doing}, after {self._patience_seconds} s ({PATIENCE}): "
                f"{self._job.who_is_missing()}; nothing was committed, try again"
            )
            self._job.cancel(self.tag)
