"""Records as a Spark frame: each log is read by a Spark task of its own, as our own tasks read, and becomes rows.

Nothing is read before the frame is used, and each use reads anew. No configuration of Spark's for the storage is
needed, because Spark opens no file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from keptlog.spark.readiness import make_ready
from keptlog.spark.worker import Batches, in_a_task, numbers_in

_BATCH_BYTES = 8 * 2**20
"""What goes from Python to Java at once: a row group as a whole would be held there three times over."""


class ReadableLog(Protocol):
    """What one task reads. Plain data that pickles."""

    def batches(self) -> Iterator[pa.RecordBatch]: ...


def frame_of(
    session: SparkSession, logs: Sequence[ReadableLog], schema: pa.Schema, task_modules: Sequence[str]
) -> DataFrame:
    """The records of these logs, in columns of this schema; ``task_modules`` is what they need to be read.

    Raises:
        InvalidConfig: the session's workers can't read them.
        SparkUnavailable: Spark does not answer.
    """
    make_ready(session, task_modules)
    descriptions = [pickle.dumps(log) for log in logs]

    def read(numbers: Batches) -> Batches:
        for number in numbers_in(numbers):
            with in_a_task():
                log: ReadableLog = pickle.loads(descriptions[number])  # noqa: S301  # made above
                for batch in log.batches():
                    yield from _pieces(batch)

    tasks = session.range(0, len(logs), 1, max(len(logs), 1))
    return tasks.mapInArrow(read, from_arrow_schema(schema))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(_BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
