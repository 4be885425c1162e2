"""A Connect server that is none of keptlog's: it gets the code from its client, and its end is told in time."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from keptlog.spark.server import TOKEN, connect_server, remote_of
from tests.spark.clusters import TOPICS, ClusterHome, python_with

_SECRET = "planted-token"  # noqa: S105  # it is one
_SESSION = "6d1b8f0a-4a53-4b0e-9f6e-0c1f3f6b8a11"
_IN_TIME_SECONDS = 60


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    remote: str


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Spark's own, whose workers have what tasks import and no keptlog."""
    with socket.socket() as probe, pytest.MonkeyPatch.context() as patch:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        patch.setenv("PYSPARK_PYTHON", python_with(tmp_path / "python", ("pyarrow", "numpy")))
        patch.delenv("PYTHONPATH", raising=False)
        with connect_server(port, _SECRET, time.sleep, {"spark.master": "local[2]"}) as process:
            yield Server(process, remote_of(port, _SESSION))


def told(err: str) -> str:
    """The one line of a failure."""
    [line] = [line for line in err.splitlines() if line.startswith("keptlog: ")]
    return line


def test_it_cleans_with_the_code_that_was_sent_and_when_it_is_killed_that_is_told_in_time_and_marks_nothing(
    server: Server, tmp_path: Path
) -> None:
    environment = {"KEPTLOG_SPARK_MASTER": server.remote, TOKEN: _SECRET}
    done = ClusterHome(tmp_path / "first", {}, environment).clean()
    assert done.returncode == 0, done.stderr
    slowly = {"KEPTLOG_BROKER_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND": "5000"}
    home = ClusterHome(tmp_path / "second", {}, environment | slowly)
    with home.start_clean() as process:
        assert process.stderr
        while "rewriting" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(2)
        server.process.kill()
        killed = time.monotonic()
        out, err = process.communicate(timeout=240)
    assert time.monotonic() - killed < _IN_TIME_SECONDS, err
    assert process.returncode == 1
    assert "Connect server" in err
    assert "Traceback" not in err
    assert _SECRET not in out + err
    assert home.marks() == [None] * len(TOPICS)


def test_what_is_no_spark_at_all_is_told_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = f"sc://127.0.0.1:{silent.getsockname()[1]}/;user_id=keptlog"
        home = ClusterHome(tmp_path, {}, {"KEPTLOG_SPARK_MASTER": remote})
        began = time.monotonic()
        done = home.clean()
        assert time.monotonic() - began < _IN_TIME_SECONDS
    assert done.returncode == 1
    assert "does not answer as a Spark Connect server" in told(done.stderr)
    assert "Traceback" not in done.stderr
