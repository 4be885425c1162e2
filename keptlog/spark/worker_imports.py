"""What local workers have imported before they are forked, from where, and what they are spared.

**A worker begins with all that a clean's first task would import**: Spark ends workers that were idle for a minute, and
Arrow, PySpark and the kernels take a new one a second.

**PySpark is the one that is installed**, not its copy in a zip:

    Spark's path    pyspark.zip, py4j.zip, spark-core.jar, keptlog's folder, site-packages
    ours            keptlog's folder, site-packages, pyspark.zip, py4j.zip, spark-core.jar

Python keeps no bytecode for a zip, so it compiled all of PySpark again at the start of a session, which was half a
second. And each worker read the archives' lists of files anew, 17,000 names in one of them, since Spark has it forget
them as it begins: a fifth of a second. Where a zip belongs to no installed package, as in a Spark that was unpacked
somewhere, the path stays as it is.

**Arrow has not looked for pandas** where a worker does keptlog's tasks alone: importing that takes half of the second
in which the first one is made. Somebody else's functions may not do without it. So jobs of keptlog's tasks say so in
their environment (``for_tasks``), and Spark forks the workers of jobs with another environment elsewhere.

``spark.executor.pyspark.memory`` limits a worker's address space. Arrow's own allocator takes a gigabyte of it at once
and gives nothing back, so that NumPy has no room beside it; with a limit Arrow uses the system's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.arrow_alone import spare_pandas
from keptlog.spark.driver import setting_of

if TYPE_CHECKING:
    from pyspark import SparkContext

OWN_DAEMON = "keptlog.spark.worker_daemon"
DAEMON = "spark.python.daemon.module"
_TASKS_ALONE = "SPARK_WORKERS_OF_KEPTLOG"
"""Tells the process from which workers are forked what they are for; it is not for people."""
_AHEAD = (
    *("numpy.ma", "pyarrow.acero", "pyarrow.parquet"),
    *("pyspark.worker", "pyspark.worker_message", "pyspark.worker_util", "pyspark.logger.worker_io"),
    *("pyspark.sql.conversion", "pyspark.sql.streaming.stateful_processor_util"),
    *("keptlog.spark.worker", "keptlog.engine.jobs", "keptlog.engine.tasks"),
    *("keptlog.storage.throttle", "keptlog.table.io.durable_at_end", "keptlog.table.io.files"),
)
"""They are names, because a task brings what lies above this layer too."""
_ZIP = Path("python", "lib", "pyspark.zip")
_ARCHIVES = (".zip", ".jar")


def for_tasks(context: SparkContext) -> SparkContext:
    """The same context, for jobs of keptlog's tasks: workers of theirs do nothing else.

    It says so to workers of ours only. Any other process would be one more, and no faster.
    """
    if setting_of(context, DAEMON, "") != OWN_DAEMON:
        return context
    # PySpark gives a job the environment of its context, and has no other way to give it one.
    same: SparkContext = object.__new__(type(context))
    same.__dict__.update(context.__dict__, environment={**context.environment, _TASKS_ALONE: "1"})
    return same


def import_ahead() -> None:
    """Import all of it into this process, which is to import PySpark after that and not before."""
    sys.path[:] = installed_first(sys.path)
    if "PYSPARK_EXECUTOR_MEMORY_MB" in os.environ:
        # Arrow looks for it when it is imported.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if _TASKS_ALONE in os.environ:
        spare_pandas()
    for name in _AHEAD:
        import_module(name)
    for entry in sys.path:
        if entry.endswith(_ARCHIVES):
            # A worker would read its list of files again, whether it looks for something there or not.
            sys.path_importer_cache.pop(entry, None)


def installed_first(path: Sequence[str]) -> list[str]:
    """``path``, which is as ``sys.path``; archives come last that belong to a PySpark which is installed there."""
    homes = {home for entry in path if (home := _installed_home(entry, path))}
    behind = [entry for entry in path if entry.endswith(_ARCHIVES) and homes.intersection(Path(entry).parents)]
    return [entry for entry in path if entry not in behind] + behind


def _installed_home(entry: str, path: Sequence[str]) -> Path | None:
    """The folder of the installed package that ``entry`` is the zip of; null if it is of none."""
    home = Path(entry).parents[2] if Path(entry).match(str(_ZIP)) else None
    if home is None or home.name != "pyspark" or not (home / "__init__.py").is_file():
        return None
    is_found = any(Path(each).resolve() == home.parent.resolve() for each in path if each)
    return home if is_found else None
