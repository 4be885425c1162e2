"""A worker that finds Spark gone says nothing: its traceback would be the last word of a run that went well."""

from __future__ import annotations

import subprocess
import sys

import pyspark.daemon
import pytest

_WORK = """
import sys
from keptlog.spark.worker_daemon import silent_if_spark_is_gone
def worker(sock, authenticated):
    raise {error}
silent_if_spark_is_gone(worker)(None, False)
"""


def _done(error: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _WORK.format(error=error)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("error", ["BrokenPipeError(32, 'Broken pipe')", "ConnectionResetError(104, 'reset')"])
def test_a_worker_that_finds_spark_gone_ends_without_a_word(error: str) -> None:
    done = _done(error)
    assert (done.returncode, done.stderr) == (1, "")


def test_any_other_error_is_told() -> None:
    done = _done("OSError(5, 'Input/output error')")
    assert done.returncode == 1
    assert "Input/output error" in done.stderr


def test_of_pyspark_its_daemon_calls_the_worker_by_its_name() -> None:
    assert "worker" in pyspark.daemon.manager.__code__.co_names
    assert callable(pyspark.daemon.worker)
