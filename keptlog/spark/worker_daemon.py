"""The process from which Spark forks its Python workers, with all that a worker needs imported before it forks.

What that is, ``worker_imports`` says. A worker collects garbage after each task, before it takes the next one: the
imported modules are kept out of that, for looking through them takes 30 ms.

Spark starts this module in place of ``pyspark.daemon``, which it runs. Only local sessions do: what a cluster's
executors have installed is not known before a task runs there.

A worker that has just done its task may find that Spark is gone: whoever waited for the answer ends Spark at once.
PySpark prints a traceback then, which would be the last thing that a run or a command says, though all is well.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

from keptlog.spark.worker_imports import import_ahead

if __name__ == "__main__":
    import_ahead()

import pyspark.daemon


def silent_if_spark_is_gone(worker: Callable[..., int]) -> Callable[..., int]:
    """PySpark's worker, which ends without a word where nobody reads any more what it writes."""

    def work(*given: object) -> int:
        try:
            return worker(*given)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)

    return work


if __name__ == "__main__":
    gc.freeze()
    pyspark.daemon.worker = silent_if_spark_is_gone(pyspark.daemon.worker)
    pyspark.daemon.manager()
