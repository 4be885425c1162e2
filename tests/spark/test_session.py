"""Settings of a session, and what a user is told when it can't start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.ports import free_port
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.spark.master import without_secrets
from keptlog.spark.session import start_session, starting
from keptlog.spark.settings import PATIENCE, patience_seconds, session_settings


def test_a_session_is_local_and_reachable_from_this_machine_only() -> None:
    settings = session_settings()
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"


def test_the_master_is_configuration_and_a_cluster_gets_no_local_setting() -> None:
    settings = session_settings("spark://host:7077", {"spark.driver.memory": "4g"})
    assert settings["spark.master"] == "spark://host:7077"
    assert settings["spark.driver.memory"] == "4g"
    assert not {"spark.driver.host", "spark.executorEnv.PYTHONPATH"} & set(settings)


def test_only_a_local_spark_forks_its_workers_from_keptlogs_own_process() -> None:
    daemon = "spark.python.daemon.module"
    assert session_settings("local[2]")[daemon] == "keptlog.spark.worker_daemon"
    assert session_settings("local[2]", {daemon: "mine"})[daemon] == "mine"
    assert daemon not in session_settings("spark://host:7077")
    assert daemon not in session_settings("sc://host:15002")


def test_a_connect_server_keeps_its_own_settings() -> None:
    assert session_settings("sc://host:15002") == {"spark.remote": "sc://host:15002"}


def test_the_settings_reach_the_session(spark: SparkSession) -> None:
    wanted = session_settings(spark.conf.get("spark.master"))
    assert {name: spark.conf.get(name) for name in wanted} == wanted


_TASKS_ALONE = """
import json
from pyspark import SparkContext
from pyspark.sql import SparkSession
from keptlog.engine.tasks import RewriteTask
from keptlog.progress import silent
from keptlog.spark.jobs import spark_jobs
from keptlog.spark.session import start_session, start_spark
from keptlog.table.io.files import TableFiles
jobs = spark_jobs(lambda: start_spark("local[2]"), TableFiles(()))("run", silent)
results = jobs.run([RewriteTask(())] * 3, "trying it")
is_context = start_spark("local[2]") is SparkContext._active_spark_context
had_session = SparkSession._instantiatedSession is not None
frame = start_session("local[2]")
same = frame.sparkContext.applicationId == start_spark().applicationId
print(json.dumps([results, is_context, had_session, same, frame.range(3).count()]))
"""


def test_tasks_need_no_session_of_spark_sql_and_a_frame_gets_one_on_the_same_spark() -> None:
    done = subprocess.run([sys.executable, "-c", _TASKS_ALONE], capture_output=True, text=True, check=True)
    results, is_context, had_session, same, rows = json.loads(done.stdout)
    assert results == [{"runs": []}] * 3
    assert (is_context, had_session) == (True, False)
    assert (same, rows) == (True, 3)


def test_a_missing_java_is_told_in_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    code = "import keptlog.spark.session as s\ntry: s.start_session()\nexcept s.InvalidConfig as error: print(error)"
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment.pop("JAVA_HOME", None)
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    [line] = told.stdout.splitlines()
    assert line.startswith("Spark could not start Java: install Java 17 or newer")
    assert "apt-get install openjdk-17-jre-headless" in line


def test_a_connect_server_that_is_not_there_is_told_at_once() -> None:
    port = free_port()
    with pytest.raises(StorageUnavailable, match=f"no Spark Connect server answers at localhost:{port} "):
        start_session(f"sc://localhost:{port}/;user_id=keptlog")


def test_settings_go_over_keptlogs_own_one_by_one() -> None:
    settings = session_settings("spark://host:7077", {"spark.driver.memory": "4g", "spark.executor.cores": "2"})
    own = session_settings("spark://host:7077")
    assert settings == {**own, "spark.driver.memory": "4g", "spark.executor.cores": "2"}


def test_the_master_of_the_environment_wins_over_the_one_among_settings() -> None:
    assert session_settings(None, {"spark.master": "yarn"})["spark.master"] == "yarn"
    assert session_settings("local[1]", {"spark.master": "yarn"})["spark.master"] == "local[1]"
    assert session_settings(None, {"spark.remote": "sc://host"}) == {"spark.remote": "sc://host"}


def test_on_a_cluster_arrow_leaves_room_where_spark_limits_a_worker() -> None:
    settings = session_settings("spark://host:7077")
    assert settings["spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"] == "system"


@pytest.mark.parametrize("given", ["512m", "512", "700000k"])
def test_too_little_memory_for_a_worker_is_refused_before_spark_starts(given: str) -> None:
    with pytest.raises(InvalidConfig, match="too little for a worker to load its libraries: give it 768m"):
        session_settings("spark://host:7077", {"spark.executor.pyspark.memory": given})
    session_settings("spark://host:7077", {"spark.executor.pyspark.memory": "1g"})


@pytest.mark.parametrize(("given", "seconds"), [("600s", 600), ("90", 90), ("10min", 600), ("2 m", 120), ("1h", 3600)])
def test_patience_is_a_time_as_spark_writes_it(given: str, seconds: int) -> None:
    assert patience_seconds({PATIENCE: given}) == seconds


@pytest.mark.parametrize("given", ["", "soon", "0s", "-1s", "1.5h"])
def test_a_patience_that_is_no_time_is_refused_before_spark_starts(given: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{PATIENCE}={given} is no time"):
        session_settings("spark://host:7077", {PATIENCE: given})


def test_no_token_is_in_what_is_told() -> None:
    remote = "sc://host:1/;token=planted;user_id=me"
    settings = {"spark.remote": remote, "spark.hadoop.fs.s3a.secret.key": "planted-too"}
    told = without_secrets(f"can't use {remote} with planted-too", settings)
    assert told == "can't use sc://host:1/;token=…;user_id=me with …"


@pytest.mark.parametrize(("master", "is_told"), [("k8s://127.0.0.1:1", True), ("local[2]", False)])
def test_a_failure_that_names_no_place_is_told_with_the_cluster_that_was_asked(
    monkeypatch: pytest.MonkeyPatch, master: str, *, is_told: bool
) -> None:
    """A Kubernetes that was not there was told as "An error has occurred: Connection refused", and no more."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with pytest.raises(StorageUnavailable, match="Connection refused") as told, starting({"spark.master": master}):
        raise RuntimeError("An error has occurred: Connection refused")
    assert (f"(spark.master is {master}: see that it is right)" in str(told.value)) == is_told
