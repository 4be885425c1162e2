"""A local worker begins with all that a clean needs, from the PySpark that is installed, and without pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyspark
import pytest
from pyspark import SparkConf

from keptlog.spark.worker_imports import for_tasks, installed_first

if TYPE_CHECKING:
    from pyspark import SparkContext

_OTHERS = ["/keptlog", "/usr/lib/python3.11", "", "/usr/lib/python311.zip"]


def _archives(home: Path) -> list[str]:
    return [
        str(home / "python" / "lib" / "pyspark.zip"),
        str(home / "python" / "lib" / "py4j-0.10.9.9-src.zip"),
        str(home / "jars" / "spark-core_2.13-4.3.0.jar"),
    ]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder of a PySpark that is installed in ``tmp_path``."""
    home = tmp_path / "pyspark"
    home.mkdir()
    (home / "__init__.py").touch()
    return home


def test_archives_of_an_installed_pyspark_come_last(installed: Path) -> None:
    path = [*_archives(installed), *_OTHERS, str(installed.parent)]
    assert installed_first(path) == [*_OTHERS, str(installed.parent), *_archives(installed)]


def test_another_archive_stays_where_it_is(installed: Path) -> None:
    path = ["/my/functions.zip", *_archives(installed), str(installed.parent)]
    assert installed_first(path) == ["/my/functions.zip", str(installed.parent), *_archives(installed)]


def test_a_spark_that_was_unpacked_somewhere_keeps_its_own_pyspark_first(installed: Path, tmp_path: Path) -> None:
    """Its Java is of its release, and another one's PySpark may be installed beside it."""
    path = [*_archives(tmp_path / "spark-4.3.0"), *_OTHERS, str(installed.parent)]
    assert installed_first(path) == path


def test_a_pyspark_that_is_on_no_path_keeps_its_archives_first(installed: Path) -> None:
    path = [*_archives(installed), *_OTHERS]
    assert installed_first(path) == path


def test_a_path_that_is_reached_by_a_link_is_the_same(installed: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(installed.parent, target_is_directory=True)
    path = [*_archives(installed), str(link)]
    assert installed_first(path) == [str(link), *_archives(installed)]


_A_CLEAN = """
import json
import sys
from pathlib import Path
from keptlog.spark.jobs import spark_engine
from keptlog.spark.session import start_spark
from keptlog.spark.worker_imports import for_tasks
from keptlog.table.io.files import TableFiles
from tests.spark.test_engine import CUT, TOPIC, a_history

def look(_):
    import os
    import sys
    import pyarrow
    import pyspark
    pyarrow.array([1])
    archives = [entry for entry in sys.path_importer_cache if entry.endswith((".zip", ".jar"))]
    return {"pyspark": pyspark.__file__, "modules": sorted(sys.modules), "archives": archives, "pid": os.getpid()}

def sum_by_pandas(_):
    import pyarrow
    return int(pyarrow.array([1, 2]).to_pandas().sum())

root = Path(sys.argv[1])
spark = start_spark("local[1]")
[before] = for_tasks(spark).parallelize([0], 1).map(look).collect()
spark_engine(lambda: spark, TableFiles(), CUT).rewrite([a_history(root).step], {TOPIC: str(root)}, "run")
[after] = for_tasks(spark).parallelize([0], 1).map(look).collect()
[of_others] = spark.parallelize([0], 1).map(sum_by_pandas).collect()
spark.stop()
print(json.dumps([before, after, of_others]))
"""


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What is there in a new worker, what after a clean, and what a function of somebody else's gives."""
    command = [sys.executable, "-c", _A_CLEAN, str(tmp_path_factory.mktemp("log"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_worker_has_the_pyspark_that_is_installed_and_has_read_no_archive(looked: list[Any]) -> None:
    before, _, _ = looked
    assert before["pyspark"] == pyspark.__file__
    assert [entry for entry in before["archives"] if "spark" in Path(entry).name] == []


def test_a_clean_finds_everything_imported_in_a_worker_that_has_just_begun(looked: list[Any]) -> None:
    before, after, _ = looked
    assert before["pid"] == after["pid"]
    imported = set(after["modules"]) - set(before["modules"])
    assert not [name for name in imported if name.partition(".")[0] in {"keptlog", "pyspark", "pyarrow", "numpy"}]


def test_tasks_do_without_pandas_and_functions_of_others_on_the_same_spark_have_it(looked: list[Any]) -> None:
    before, after, of_others = looked
    assert "pandas" not in before["modules"]
    assert "pandas" not in after["modules"]
    assert of_others == 3


def test_a_spark_of_somebody_elses_gets_no_workers_for_tasks_alone() -> None:
    """It forks them from a process that would import nothing ahead: one more, and no faster."""
    others = SparkConf(loadDefaults=False).set("spark.python.daemon.module", "mine")
    context = cast("SparkContext", SimpleNamespace(_conf=others, environment={}))
    assert for_tasks(context) is context
