"""An archive of the classes that Spark's Java loads, from which it starts with half the work (class data sharing).

    python -m tests.java_classes    makes it, unless it is there: build/spark-classes.jsa, 150 MB

Tests start some hundred Javas. The archive is of the Java and the PySpark with which it was made: any other Java
leaves it aside, and so it changes nothing but the time. ``docs/deploy.md`` has it for who runs keptlog.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyspark

from keptlog.spark.session import start_session

ARCHIVE = Path(__file__).parents[1] / "build" / "spark-classes.jsa"
# On a cluster a driver compiles as well as Java can, which costs more than a test can save.
# It names no collector, since Java refuses to start with two of them, and a test may name one.
_SHORT = "-XX:TieredStopAtLevel=1"
_DEADLINE_SECONDS = 120


def options() -> str:
    """What tests tell Java: that it won't live for long, and where the archive is, if there is one."""
    return f"{_SHORT} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if _is_made() else _SHORT


def _is_made() -> bool:
    return ARCHIVE.exists() and ARCHIVE.stat().st_mtime > Path(pyspark.__file__).stat().st_mtime


def make() -> None:
    """Let a Spark do something of each kind, and its Java write down at its end which classes that took."""
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / "spark-classes.jsa"
        os.environ["SPARK_SUBMIT_OPTS"] = f"{_SHORT} -XX:ArchiveClassesAtExit={made} -Xlog:cds*=off"
        session = start_session("local[2]")
        session.range(3).write.parquet(f"{folder}/numbers")
        assert session.read.parquet(f"{folder}/numbers").toArrow().num_rows == 3
        assert session.sparkContext.parallelize(range(3)).count() == 3
        java = session.sparkContext._gateway.proc  # type: ignore[union-attr]
        session.stop()
        java.stdin.close()
        java.wait(_DEADLINE_SECONDS)
        if made.exists():  # not every Java can write one
            made.chmod(0o644)
            # It is there as a whole or not at all: Java would crash over half of one.
            made.replace(ARCHIVE)


if __name__ == "__main__" and not _is_made():
    make()
