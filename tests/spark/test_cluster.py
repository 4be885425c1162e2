"""On a Spark cluster whose workers have nothing of keptlog, its code travels, and what is wrong there is one line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.lake.spark_cluster import SparkCluster, spark_cluster
from tests.spark.clusters import ClusterHome, python_with

TOOLS = ("pyarrow", "numpy")


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has what tasks import, and no keptlog."""
    return python_with(tmp_path_factory.mktemp("fit"), TOOLS)


@pytest.fixture(scope="module")
def cluster(fit: str) -> Iterator[SparkCluster]:
    with spark_cluster(2, memory="1g", python=fit, python_path=()) as running:
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
        out, err = process.communicate(timeout=240)
    cluster.workers[1].start()
    assert process.returncode == 0, err + out
    assert home.marks() == [None, None, None]
    assert [home.offsets(topic) for topic in ("a", "b", "c")] == [list(range(300, 400))] * 3
