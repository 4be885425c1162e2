"""Spark SQL over the catalog, with Iceberg's runtime: in an environment of its own, since none fits our Spark yet.

pytest tests/readers --spark-sql
  -> build/spark-4.1.4/venv       pyspark 4.1.4 and pyarrow: 480 MB
  -> Maven's local repository     the runtime and SQLite's driver: 61 MB; Spark looks there first
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.readers.conftest import Moment, rows_of
from tests.readers.page import PAGE, blocks, python
from tests.readers.prepared import TOPIC, prepare

_PACKAGES = re.search(r"pip install (pyspark==\S+) (\w+)`", PAGE.read_text(encoding="utf-8"))
_JARS = re.compile(r'"(org\.apache\.iceberg:[^"]*)"')
BUILD = Path(__file__).parents[2] / "build"
STORE = """
import pyarrow
for name, frame in (("users", users), ("latest", latest)):
    table = frame.toArrow()
    with pyarrow.OSFile(f"{name}.arrow", "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
"""


@pytest.fixture(scope="session")
def spark_python(pytestconfig: pytest.Config) -> Path:
    """The Python of an environment with the Spark that the page names."""
    if not pytestconfig.getoption("spark_sql", False):
        pytest.skip("Spark SQL with Iceberg's runtime is not tried: 0.5 GB to fetch; ask for it with make readers")
    if shutil.which("mvn") is None:
        pytest.skip("Spark SQL with Iceberg's runtime is not tried: no mvn; apt-get install maven")
    assert _PACKAGES
    for jar in _JARS.findall(python("spark-sql"))[0].split(","):
        subprocess.run(["mvn", "--quiet", "--batch-mode", "dependency:get", f"-Dartifact={jar}"], check=True)
    spark, arrow = _PACKAGES.groups()
    environment = BUILD / spark.replace("==", "-")
    if not (environment / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", spark, arrow], check=True)
        (environment / "complete").touch()
    return environment / "bin" / "python"


@pytest.mark.timeout(1200)
def test_spark_sql_reads_what_keptlog_reads(moment: Moment, spark_python: Path) -> None:
    (moment.folder / "read.py").write_text(python("spark-sql") + STORE)
    subprocess.run([spark_python, "read.py"], check=True)
    assert rows_of(_stored("users.arrow")) == moment.rows
    assert rows_of(_stored("latest.arrow")) == moment.latest


@pytest.mark.timeout(1200)
def test_spark_sqls_shell_reads_what_keptlog_reads(spark_python: Path, tmp_path: Path) -> None:
    store = prepare(tmp_path / ".keptlog", "deleted up to the middle of a clean segment")
    environment = os.environ | {"PATH": f"{spark_python.parent}:{os.environ['PATH']}"}
    command = blocks()["sh", "spark-sql"]
    shown = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    assert shown.stdout.split() == [str(len(list(store.read(TOPIC))))]


def _stored(path: str) -> pa.Table:
    with pa.OSFile(path, "rb") as source:
        return pa.ipc.open_file(source).read_all()
