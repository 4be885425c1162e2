"""The process from which Spark forks its Python workers, with all that a worker needs imported before it forks.

Importing Arrow, PySpark and the kernels takes a worker a second of CPU, as often as Spark starts one, and Spark ends
those that were idle for a minute; a forked one finds them there (``installed_first`` says which PySpark). A worker also
collects garbage after each task, before it takes the next one: the imported modules are kept out of that, for looking
through them takes 30 ms.

Spark starts this module in place of ``pyspark.daemon``, which it runs. Only local sessions do: what a cluster's
executors have installed is not known before a task runs there.

``spark.executor.pyspark.memory`` limits a worker's address space. Arrow's own allocator takes a gigabyte of it at once
and gives nothing back, so that NumPy has no room beside it; with a limit Arrow uses the system's.

A worker that has just done its task may find that Spark is gone: whoever waited for the answer ends Spark at once.
PySpark prints a traceback then, which would be the last thing that a run or a command says, though all is well.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module

from keptlog.spark.installed_first import forget_archives, installed_first

if __name__ == "__main__":
    sys.path[:] = installed_first(sys.path)

import pyspark.daemon

AHEAD = (
    *("numpy.ma", "pyarrow.acero", "pyarrow.parquet"),
    *("pyspark.worker", "pyspark.worker_message", "pyspark.worker_util", "pyspark.logger.worker_io"),
    *("pyspark.sql.conversion", "pyspark.sql.streaming.stateful_processor_util"),
    *("keptlog.spark.worker", "keptlog.engine.jobs", "keptlog.engine.tasks"),
    *("keptlog.storage.throttle", "keptlog.table.durable_at_end", "keptlog.table.files"),
)
"""What a clean's first task would import, and with each of these what it imports.

They are names, because a task brings what lies above this layer too.
"""


def silent_if_spark_is_gone(worker: Callable[..., int]) -> Callable[..., int]:
    """PySpark's worker, which ends without a word where nobody reads any more what it writes."""

    def work(*given: object) -> int:
        try:
            return worker(*given)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)

    return work


def import_ahead() -> None:
    """Import all of it."""
    if "PYSPARK_EXECUTOR_MEMORY_MB" in os.environ:
        # Arrow looks for it when it is imported.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for name in AHEAD:
        import_module(name)
    forget_archives()


if __name__ == "__main__":
    import_ahead()
    gc.freeze()
    pyspark.daemon.worker = silent_if_spark_is_gone(pyspark.daemon.worker)
    pyspark.daemon.manager()
