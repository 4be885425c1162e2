"""An archive of the classes that Spark's Java loads in tests, made as ``keptlog spark-archive`` makes one.

    python -m tests.java_classes    makes it, unless it is there: in build/keptlog, 150 MB

Tests start some hundred Javas, and make frames, which keptlog itself does without.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from keptlog.spark.archive import QUIET, fitting_archive, option
from keptlog.spark.archiving import make_archive
from keptlog.spark.driver import Spark, session_on
from keptlog.spark.launch import spark_home

# On a cluster a driver compiles as well as Java can, which costs more than a test can save.
# It names no collector, since Java refuses to start with two of them, and a test may name one.
_SHORT = "-XX:TieredStopAtLevel=1"
_ENVIRONMENT = {
    **os.environ,
    "XDG_CACHE_HOME": str(Path(__file__).parents[1] / "build"),
    "SPARK_SUBMIT_OPTS": _SHORT,
}


def options() -> str:
    """What tests tell Java: that it won't live for long, and where the archive is, if there is one."""
    archive = fitting_archive(_ENVIRONMENT, spark_home())
    return f"{_SHORT} {option('SharedArchiveFile', archive)} {QUIET}" if archive else _SHORT


def _something_of_each_kind(spark: Spark) -> None:
    session = session_on(spark)
    with tempfile.TemporaryDirectory() as folder:
        session.range(3).write.parquet(f"{folder}/numbers")
        assert session.read.parquet(f"{folder}/numbers").toArrow().num_rows == 3
    assert session.sparkContext.parallelize(range(3)).count() == 3


if __name__ == "__main__" and not fitting_archive(_ENVIRONMENT, spark_home()):
    make_archive(_something_of_each_kind, _ENVIRONMENT)
