"""What is around a task in one of Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from keptlog.engine.jobs import final_error_of, kind_and_action
from keptlog.errors import first_line
from keptlog.spark.kept_memory import give_back

Batches = Iterator[pa.RecordBatch]
FAILED = "keptlog task failed: "
"""Begins the one line that a driver looks for in what Spark tells of a failed task."""


def numbers_in(batches: Batches) -> Iterator[int]:
    """The task numbers that a Spark task got."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


@contextmanager
def in_a_task() -> Iterator[None]:
    """Around what runs in an executor: names its errors for the driver, and gives memory back (ADR 77)."""
    pa.set_cpu_count(1)
    try:
        yield
    except Exception as error:
        final = final_error_of(error)
        name = kind_and_action(final) if final else type(error).__name__
        raise RuntimeError(f"{FAILED}{name}: {first_line(final or error)}") from error
    finally:
        give_back(pa.default_memory_pool())
