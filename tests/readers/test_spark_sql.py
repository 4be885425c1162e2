"""Spark SQL over the catalog, with Iceberg's runtime: in an environment of its own, since none fits our Spark yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.readers.conftest import Moment, rows_of
from tests.readers.fetched import fetch_jars, skip_unless_asked, spark_of_the_page
from tests.readers.page import blocks, python, read_in
from tests.readers.prepared import TOPIC, prepare


@pytest.fixture(scope="session")
def spark_python(pytestconfig: pytest.Config) -> Path:
    skip_unless_asked(pytestconfig, "Spark SQL with Iceberg's runtime")
    fetch_jars(python("spark-sql"))
    return spark_of_the_page()


def test_spark_sql_reads_what_keptlog_reads(moment: Moment, spark_python: Path) -> None:
    told = read_in(spark_python, "spark", "spark-sql", "spark-sql-users")
    assert (rows_of(told["users"]), rows_of(told["latest"])) == (moment.rows, moment.latest)


def test_spark_sqls_shell_reads_what_keptlog_reads(spark_python: Path, tmp_path: Path) -> None:
    store = prepare(tmp_path / ".keptlog", "deleted up to the middle of a clean segment")
    environment = os.environ | {"PATH": f"{spark_python.parent}:{os.environ['PATH']}"}
    environment.pop("PYSPARK_PYTHON", None)  # of a Spark of ours in this process; the shell looks for its Spark by it
    command = blocks()["sh", "spark-sql"]
    shown = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    assert shown.stdout.split() == [str(len(list(store.read(TOPIC))))]
