"""A local worker begins with all that a clean needs, from the PySpark that is installed and not from a zip of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.spark.installed_first import forget_archives, installed_first

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


def test_an_archive_is_read_again_only_by_who_looks_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, folder = str(tmp_path / "some.zip"), str(tmp_path)
    monkeypatch.setattr(sys, "path", [archive, folder])
    monkeypatch.setattr(sys, "path_importer_cache", {archive: None, folder: None})
    forget_archives()
    assert set(sys.path_importer_cache) == {folder}


_A_CLEAN = """
import json
import subprocess
import sys
from pathlib import Path
import pyspark
from keptlog.spark.jobs import spark_engine
from keptlog.spark.session import start_spark
from keptlog.table.files import TableFiles
from tests.spark.test_engine import CUT, TOPIC, a_history
root = Path(sys.argv[1])
spark = start_spark("local[1]", tasks_alone=True)
engine = spark_engine(lambda: spark, TableFiles(), CUT)
engine.rewrite([a_history(root).step], {TOPIC: str(root)}, "run")
def seen(_):
    import sys
    import pyspark
    return pyspark.__file__, sorted(sys.modules)
[(file, modules)] = spark.parallelize([0], 1).map(seen).collect()
known = "import keptlog.spark.tasks_daemon, keptlog.spark.worker_daemon as daemon; daemon.import_ahead()"
known += "; import sys; print(*sys.modules)"
ahead = subprocess.run([sys.executable, "-c", known], capture_output=True, text=True, check=True).stdout.split()
spark.stop()
print(json.dumps([file == pyspark.__file__, sorted(set(modules) - set(ahead))]))
"""


def test_a_clean_finds_everything_imported_in_a_worker_that_has_just_begun(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _A_CLEAN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    is_installed, imported = json.loads(done.stdout.splitlines()[-1])
    assert is_installed
    assert not [name for name in imported if name.partition(".")[0] in {"keptlog", "pyspark", "pyarrow", "numpy"}]
