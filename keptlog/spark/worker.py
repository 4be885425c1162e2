"""What is around a task in one of Spark's Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from keptlog.errors import first_line
from keptlog.spark.settings import KEEPS_MEMORY

Batches = Iterator[pa.RecordBatch]
FAILED = "keptlog task failed: "
"""Begins the one line that a driver looks for in what Spark tells of a failed task."""
KEPT_BYTES = 2**29
"""Of a worker that keeps memory, between two tasks: more than a task takes that is cut to its usual size."""
_STATM = Path("/proc/self/statm")
_RESIDENT = 1
"""The field of ``statm`` that says how many pages a process has."""


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
        raise RuntimeError(f"{FAILED}{type(error).__name__}: {first_line(error)}") from error
    finally:
        pool = pa.default_memory_pool()
        is_kept = KEEPS_MEMORY in os.environ and pool.backend_name == "mimalloc"
        if not is_kept or _resident_bytes() > KEPT_BYTES:
            pool.release_unused()


def _resident_bytes() -> int:
    """The memory of this process; where nobody tells it, more than any has."""
    try:
        return int(_STATM.read_text().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return KEPT_BYTES + 1
