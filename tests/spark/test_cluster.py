"""On a Spark cluster whose workers have nothing of keptlog, its code travels, and what is wrong there is one line."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.lake.spark_cluster import SparkCluster, spark_cluster
from keptlog.home import wall_clock_ms
from keptlog.log.segment import total_bytes
from keptlog.spark.settings import PATIENCE
from tests.spark.clusters import TOPICS, ClusterHome, python_with

_DAY_MS = 86_400_000
_NOISE = re.compile(r"\d\d:\d\d:\d\d Spark |\s+at |Traceback|Caused by")
TOOLS = ("pyarrow", "numpy")


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has what tasks import, and no keptlog."""
    return python_with(tmp_path_factory.mktemp("fit"), TOOLS)


@pytest.fixture(scope="module")
def cluster(fit: str) -> Iterator[SparkCluster]:
    hosts = ("127.0.0.1", "127.0.0.2")
    with spark_cluster(2, memory="1g", python=fit, python_path=(), hosts=hosts) as running:
        yield running


def on(cluster: SparkCluster, python: str, **more: str) -> dict[str, str]:
    return {"KEPTLOG_SPARK_MASTER": cluster.master, "PYSPARK_PYTHON": python, **more}


def test_workers_without_keptlog_clean_because_its_code_goes_along(
    cluster: SparkCluster, fit: str, tmp_path: Path
) -> None:
    home = ClusterHome(tmp_path, {}, on(cluster, fit))
    done = home.clean()
    assert done.returncode == 0, done.stderr
    assert home.checkpoints() == [400, 400, 400]
    assert [home.offsets(topic) for topic in ("a", "b", "c")] == [list(range(300, 400))] * 3
    # One that compares the workers, one that rewrites.
    assert len(home.events("SparkListenerJobStart")) == 2


def test_workers_without_pyarrow_are_one_line_after_one_job_and_no_log_is_marked(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    home = ClusterHome(tmp_path / "home", {}, on(cluster, python_with(tmp_path / "bare", ())))
    done = home.clean()
    assert done.returncode == 2
    [line] = [line for line in done.stderr.splitlines() if line.startswith("keptlog: ")]
    assert "Spark's workers can't import numpy, pyarrow" in line
    assert "pip install 'numpy==" in line
    assert "Traceback" not in done.stderr
    assert len(home.events("SparkListenerJobStart")) == 1
    assert home.marks() == [None, None, None]


def test_a_worker_that_is_killed_in_the_middle_costs_time_and_marks_nothing(
    cluster: SparkCluster, fit: str, tmp_path: Path
) -> None:
    home = ClusterHome(tmp_path, {}, on(cluster, fit, KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND="50000"))
    with home.start_clean() as process:
        while len(home.events("SparkListenerJobStart")) < 2 and process.poll() is None:
            time.sleep(0.2)
        time.sleep(1)
        cluster.workers[1].kill()
        out, err = process.communicate(timeout=600)
    cluster.workers[1].start()
    assert process.returncode == 0, err + out
    assert home.marks() == [None, None, None]
    assert [home.offsets(topic) for topic in ("a", "b", "c")] == [list(range(300, 400))] * 3


def test_two_attempts_of_a_task_at_once_double_nothing_and_a_purge_sweeps_what_they_left(
    cluster: SparkCluster, fit: str, tmp_path: Path
) -> None:
    speculating = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "0",
    }
    slowly = on(cluster, fit, KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND="100000")
    home = ClusterHome(tmp_path, speculating, slowly, times=10)
    done = home.clean()
    assert done.returncode == 0, done.stderr
    hosts: dict[tuple[int, int], dict[bool, str]] = {}
    for task in home.events("SparkListenerTaskStart"):
        info = task["Task Info"]
        hosts.setdefault((task["Stage ID"], info["Index"]), {})[info["Speculative"]] = info["Host"]
    twice = [each for each in hosts.values() if len(each) == 2]
    assert twice
    assert all(each[True] != each[False] for each in twice)
    assert home.offsets("a") == list(range(3900, 4000))
    assert [home.offsets(topic) for topic in ("b", "c")] == [list(range(300, 400))] * 2
    assert home.marks() == [None, None, None]
    for topic in TOPICS:
        home.store.purge(topic, wall_clock_ms() + _DAY_MS, 0)
    assert home.files() == home.live_files()


def test_workers_that_are_alike_get_as_many_tasks_and_bytes(cluster: SparkCluster, fit: str, tmp_path: Path) -> None:
    # What a task may read a second bounds it, so that it does not matter how busy this machine is.
    slowly = on(cluster, fit, KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND="50000")
    home = ClusterHome(tmp_path, {}, slowly, partitions=8)
    logs = [log for topic in TOPICS for log in home.store.logs(topic)]
    done = home.clean()
    assert done.returncode == 0, done.stderr
    ended = home.events("SparkListenerTaskEnd")
    rewriting = [each["Task Info"] for each in ended if each["Stage ID"] == ended[-1]["Stage ID"]]
    executors = {task["Task ID"]: task["Executor ID"] for task in rewriting}
    tasks, read_bytes = Counter(executors.values()), Counter[str]()
    for log in logs:
        [now] = [
            each for each in home.store.logs(log.topic_partition.topic) if each.topic_partition == log.topic_partition
        ]
        attempt = int(Path(now.segments[0].path).stem.rpartition("-")[2])
        read_bytes[executors[attempt]] += total_bytes(log.segments)
    for shares in (tasks, read_bytes):
        assert len(shares) == 2
        assert max(shares.values()) < 1.1 * min(shares.values()), (tasks, read_bytes)


def test_who_finds_no_executor_is_told_why_and_does_not_wait_for_ever(
    cluster: SparkCluster, fit: str, tmp_path: Path
) -> None:
    home = ClusterHome(tmp_path, {"spark.executor.memory": "64g", PATIENCE: "12s"}, on(cluster, fit))
    done = home.clean()
    assert done.returncode == 1
    waits, gives_up = [line for line in done.stderr.splitlines() if line.startswith("keptlog: ")]
    assert waits.startswith(
        "keptlog: Spark has waited for 10 s while looking at Spark's workers: no executor of spark://"
    )
    assert "less memory than an executor asks for (spark.executor.memory=64g)" in waits
    assert "spark.cores.max" in waits
    assert "Spark was given up while looking at Spark's workers, after 12 s" in gives_up
    assert home.marks() == [None, None, None]


def test_a_cluster_that_is_gone_in_the_middle_and_comes_back_knowing_nothing_is_used_anew(
    cluster: SparkCluster, fit: str, tmp_path: Path
) -> None:
    slowly = on(cluster, fit, KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND="60000")
    home = ClusterHome(tmp_path, {PATIENCE: "60s"}, slowly)
    servers = (cluster.master_process, *cluster.workers)
    with home.start_clean() as process:
        while len(home.events("SparkListenerJobStart")) < 2 and process.poll() is None:
            time.sleep(0.2)
        for server in servers:
            server.kill()
        for server in servers:
            server.start()
        cluster.wait_for(2)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err + out
    assert "rewriting 3 logs together failed, they are tried apart: Spark was given up while rewriting 3 logs" in err
    assert_quiet(err)
    assert home.marks() == [None, None, None]
    assert [home.offsets(topic) for topic in TOPICS] == [list(range(300, 400))] * 3


def assert_quiet(err: str) -> None:
    """Neither Spark's log nor a stack trace is on the terminal."""
    assert not [line for line in err.splitlines() if _NOISE.match(line)], err
