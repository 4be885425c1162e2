"""The query behind a shuffle (``keptlog.engine.shuffle``): keys go through Spark, values never do.

    range -> emit -> repartition by key -> settle -> repartition by segment run -> write lists

No hash table is in the JVM's heap, and how many parts there are is said here, not left to Spark's settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame

from keptlog.engine.attempt import Attempt
from keptlog.engine.shuffle import KeyShuffle
from keptlog.kernels.key_shuffle import KEYS_TYPE, SETTLED_TYPE
from keptlog.spark.worker import Batches, in_a_task, numbers_in

RESULT_TYPE = "result string"
_RESULT_SCHEMA = pa.schema([("result", pa.string())])


def shuffled(
    shuffle: KeyShuffle,
    numbers: DataFrame,
    reading: Callable[[int], Attempt],
    writing: Callable[[int], Attempt],
) -> DataFrame:
    """One row of JSON for each list that is written; ``numbers`` has a row, and a task, for each emit task."""

    def emit(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            with in_a_task():
                yield from shuffle.emit(number, reading(number).files)

    def settle(batches: Batches) -> Batches:
        with in_a_task():
            yield from shuffle.settle(batches)

    def write(batches: Batches) -> Batches:
        with in_a_task():
            for result in shuffle.write_lists(batches, writing(0)):
                yield pa.record_batch([[json.dumps(result)]], schema=_RESULT_SCHEMA)

    keys = numbers.mapInArrow(emit, KEYS_TYPE).repartition(shuffle.settled_parts, "key")
    lists = keys.mapInArrow(settle, SETTLED_TYPE).repartition(shuffle.list_writers, "run")
    return lists.mapInArrow(write, RESULT_TYPE)
