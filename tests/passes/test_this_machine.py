"""Folders that Sparks have left are told from those of a Spark that runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from keptlog.log.holder import HolderKind
from keptlog.passes.doctor.this_machine import left_folders


def folder(root: Path, name: str = "blockmgr-1", *, age_seconds: int = 0) -> Path:
    made = root / name
    made.mkdir()
    (made / "data").write_bytes(b"value")
    for path in (made / "data", made):
        os.utime(path, (time.time() - age_seconds, time.time() - age_seconds))
    return made


def test_a_folder_from_before_all_sparks_that_run_is_left_over_and_a_later_one_may_be_in_use(tmp_path: Path) -> None:
    environment = {"SPARK_LOCAL_DIRS": f"{tmp_path / 'one'},{tmp_path / 'two'}"}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    long_ago_seconds = 10 * 365 * 24 * 3600
    old = folder(tmp_path / "one", age_seconds=long_ago_seconds)
    code = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, "org.apache.spark.deploy.SparkSubmit"]) as spark:
        try:
            new = folder(tmp_path / "two", "spark-2")
            found = {each.name: each for each in left_folders(environment)}
        finally:
            spark.kill()
    assert found[str(old)].kind is HolderKind.SPARK
    assert found[str(new)].kind is HolderKind.RUNNING_SPARK
    assert (found[str(old)].files, found[str(old)].bytes) == (1, 5)


def test_other_folders_empty_ones_and_those_that_are_not_there_are_none(tmp_path: Path) -> None:
    folder(tmp_path, "mine")
    (tmp_path / "blockmgr-2").mkdir()
    (tmp_path / "spark-3").write_bytes(b"a file")
    assert left_folders({"SPARK_LOCAL_DIRS": str(tmp_path)}) == []
    assert left_folders({"SPARK_LOCAL_DIRS": str(tmp_path / "nowhere")}) == []
