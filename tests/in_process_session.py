"""As much of a Spark session as keptlog uses, with its tasks in this process: for those who take a session and no jobs.

Where an engine can be given, ``tests.in_process`` is simpler.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

_Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class _Frame:
    """What ``range`` gives, and what ``mapInArrow`` and ``repartition`` make of it: a list of batches for each task."""

    tasks: list[list[pa.RecordBatch]]

    def mapInArrow(self, work: _Work, _schema: str) -> _Frame:  # noqa: N802  # Spark's name
        return _Frame([list(work(iter(task))) for task in self.tasks])

    def repartition(self, parts: int, column: str) -> _Frame:
        """Rows with the same value come together, in an order that mixes those of the tasks."""
        cut: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
        for batch in (batch for task in reversed(self.tasks) for batch in task if batch.num_rows):
            part_of_row = [hash(value) % parts for value in batch.column(column).to_pylist()]
            for part in range(parts):
                cut[part].append(batch.filter(pa.array([each == part for each in part_of_row])))
        return _Frame(cut)

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for task in self.tasks for batch in task for row in batch.to_pylist()]


class _Conf:
    """Every session is an application of its own, so that its attempts have paths of their own."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self._application = f"local-{next(self._numbers)}"

    def get(self, _name: str, default: str | None = None) -> str:
        return self._application if default is None else default


@dataclass(frozen=True)
class _Distributed:
    """What ``parallelize`` gives: an element for each task."""

    elements: list[Any]

    def map(self, work: Callable[[Any], Any]) -> _Distributed:
        return _Distributed([work(each) for each in self.elements])

    def collect(self) -> list[Any]:
        return self.elements


class _Context:
    """Its jobs are over before anybody asks how far they are."""

    defaultParallelism = 2  # noqa: N815  # Spark's name
    master = "local[2]"
    _temp_dir = None

    def __init__(self, application: str) -> None:
        self.applicationId = application
        self._conf = SimpleNamespace(get=lambda _name, default: default)

    def parallelize(self, elements: list[Any], _parts: int) -> _Distributed:
        return _Distributed(elements)

    def addJobTag(self, tag: str) -> None: ...  # noqa: N802

    def removeJobTag(self, tag: str) -> None: ...  # noqa: N802

    def statusTracker(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(getActiveStageIds=list)


class InProcessSession:
    """As much of a Spark session as the engine uses."""

    version = "none"

    def __init__(self) -> None:
        self.conf = _Conf()
        self.sparkContext = _Context(self.conf.get("spark.app.id"))

    def range(self, _start: int, end: int, _step: int, _partitions: int) -> _Frame:
        return _Frame([[pa.record_batch([[number]], names=["id"])] for number in range(end)])
