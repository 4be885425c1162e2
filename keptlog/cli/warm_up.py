"""What is done on a Spark so that it has done its first: a job of empty tasks, on the way of a clean's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keptlog.engine.tasks import RewriteTask
from keptlog.progress import silent
from keptlog.table.io.files import TableFiles

if TYPE_CHECKING:
    from keptlog.spark.driver import Spark


def warm_up(spark: Spark) -> None:
    """Run the job: Java loads and compiles what it needs for one, and the workers start.

    Raises:
        KeptlogError: Spark fails.
    """
    from keptlog.spark.jobs import parallelism, spark_jobs  # noqa: PLC0415  # Spark's library comes with it

    tasks = [RewriteTask(())] * parallelism(spark)
    spark_jobs(lambda: spark, TableFiles(()))("warm-up", silent).run(tasks, "warming up")
