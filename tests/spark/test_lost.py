"""A Spark that is gone is told as that, whichever call finds it gone: also between two jobs, and while one is built."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest
from pyspark.sql import SparkSession

from keptlog.engine.tasks import RewriteTask
from keptlog.errors import InvalidConfig, SparkUnavailable, StorageUnavailable
from keptlog.progress import silent
from keptlog.spark import readiness
from keptlog.spark.jobs import spark_jobs
from tests.local_log import LocalFiles

_KILLED = """
import json
from keptlog.engine.shuffle import KeyShuffle
from keptlog.engine.tasks import RewriteTask
from keptlog.progress import silent
from keptlog.spark.jobs import spark_jobs
from keptlog.spark.launch import own_java
from keptlog.spark.session import start_session
from tests.local_log import LocalFiles
spark = start_session("local[1]")
start = spark_jobs(lambda: spark, LocalFiles())
jobs = start("run", silent)
done = jobs.run([RewriteTask(())], "trying it")
own_java().process.kill()
own_java().process.wait()
def told(ask):
    try:
        ask()
    except Exception as error:
        return [type(error).__name__, str(error), type(error.__cause__).__name__]
shuffle = KeyShuffle(None, "", (), (), 1, 1)
print(json.dumps([
    done,
    told(lambda: jobs.run([RewriteTask(())], "rewriting")),
    told(lambda: jobs.shuffle(shuffle, "shuffling")),
    told(lambda: start("run", silent).cores),
]))
"""


def test_a_java_that_is_killed_between_two_jobs_is_a_spark_that_is_lost() -> None:
    ended = subprocess.run([sys.executable, "-c", _KILLED], capture_output=True, text=True, check=True)
    done, *lost = json.loads(ended.stdout)
    assert done == [{"runs": []}]
    assert [kind for kind, _, _ in lost] == ["SparkUnavailable"] * 3
    for (_, text, cause), doing in zip(lost, ["rewriting", "shuffling", "counting its cores"], strict=True):
        assert text.startswith(f"Spark was lost while {doing}: its Java process is gone ({cause})")


_ANOTHER = """
import json
from keptlog.spark.launch import own_java
from keptlog.spark.session import start_session, start_spark
from pyspark import SparkContext
done = []
for start in (start_spark, start_session, start_spark, start_spark):
    spark = start("local[1]")
    context = getattr(spark, "sparkContext", spark)
    done.append(context.parallelize([1, 2], 1).map(lambda number: number + 1).collect())
    own_java().process.kill()
    if len(done) == 3:
        own_java().process.wait()
        SparkContext._active_spark_context = None  # as PySpark leaves it where Java dies while a context is made
print(json.dumps(done))
"""


def test_whoever_asks_for_a_spark_after_its_java_was_killed_gets_one_of_another_java() -> None:
    ended = subprocess.run([sys.executable, "-c", _ANOTHER], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == [[2, 3]] * 4


class Gone:
    """A cluster's session, up to the last call of all."""

    conf: ClassVar[Gone]
    sparkContext = SimpleNamespace(master="spark://host:7077")  # noqa: N815  # Spark's name

    def get(self, _: str, default: str) -> str:
        return default

    def addArtifacts(self, *_: str, pyfile: bool) -> None:  # noqa: N802  # Spark's name
        assert pyfile

    def set(self, *_: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


Gone.conf = Gone()


def test_a_server_that_goes_while_its_workers_are_found_ready_is_lost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last call of all is the one that remembers it."""

    monkeypatch.setattr(readiness, "_seen_by_workers", lambda *_: [])
    with pytest.raises(SparkUnavailable, match=r"^Spark was lost while looking at Spark's workers: "):
        readiness.make_ready(cast("SparkSession", Gone()))


def test_workers_that_are_found_unfit_are_no_lost_spark_and_nothing_else_led_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = {"python": "2.7.18", "executable": "/usr/bin/python", "host": "far"}
    monkeypatch.setattr(readiness, "_seen_by_workers", lambda *_: [worker])
    with pytest.raises(InvalidConfig, match="run another Python") as told:
        readiness.make_ready(cast("SparkSession", Gone()))
    assert told.value.__cause__ is None


def test_a_folder_for_sparks_temporary_files_that_is_full_is_told_by_its_path(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyspark.core.context.NamedTemporaryFile", full)
    with pytest.raises(StorageUnavailable) as told:
        spark_jobs(lambda: spark, LocalFiles())("run", silent).run([RewriteTask(())], "rewriting 1 log")
    folder = spark.sparkContext._temp_dir
    assert str(told.value).startswith(f"rewriting 1 log: the disk of {folder} is full; nothing landed: make room")
