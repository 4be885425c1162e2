"""The demo of the lake proves itself, and leaves no process and no folder behind, interrupted or not."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo_lake
from examples.installed import NotInstalled, java
from examples.lake.rest_catalog import rest_classpath
from tests.processes import descendants, left

_DEADLINE_SECONDS = 280


def start(folder: Path) -> subprocess.Popen[str]:
    """The demo in a process group of its own, as a terminal starts it."""
    if importlib.util.find_spec("dagster_postgres") is None:
        pytest.skip("the lake's demo is not tried: pip install dagster-postgres")
    try:
        java("the demo")
        rest_classpath()
    except NotInstalled as missing:
        pytest.skip(f"the lake's demo is not tried: {missing}")
    return subprocess.Popen(
        [sys.executable, "-m", "examples.demo_lake", "--records", "2000"],
        env={**os.environ, "KEPTLOG_HOME": str(folder / "never")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.timeout(2 * _DEADLINE_SECONDS)
def test_the_story_on_a_lake_proves_itself_though_a_worker_dies(tmp_path: Path) -> None:
    telling = start(tmp_path)
    assert telling.stdout
    told, processes = "", descendants(telling.pid)
    for line in telling.stdout:
        told += line
        processes |= descendants(telling.pid)
    assert telling.wait(_DEADLINE_SECONDS) == 0, told
    for sensor in ("dirty_ratio_sensor", "tombstone_expiry_sensor"):
        assert f"{sensor}: FIRES" in told
    assert told.count("    the same") == 3
    assert "the master knows 1 worker" in told
    assert " 0 others, 0 open uploads" in told
    assert "  equal: every record before the cleans, every key's latest value after them" in told
    for server in ("moto", "postgres", "LoopbackCatalog", "master.Master", "worker.Worker"):
        assert any(server in each.command for each in processes), server
    assert left(processes) == set()
    assert not (tmp_path / "never").exists()


def test_an_interrupted_demo_leaves_nothing(tmp_path: Path) -> None:
    telling = start(tmp_path)
    assert telling.stdout
    told = ""
    while "catalog   http" not in told:
        line = telling.stdout.readline()
        assert line, told
        told += line
    processes = descendants(telling.pid)
    os.killpg(telling.pid, signal.SIGINT)  # Ctrl-C
    told += telling.communicate(timeout=_DEADLINE_SECONDS)[0]
    assert telling.returncode == 130, told
    assert "demo-lake: interrupted; the lake is gone" in told
    assert left(processes) == set()


def test_what_is_missing_is_one_line_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert demo_lake.main([]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "demo-lake: Dagster keeps its runs in Postgres by dagster-postgres: pip install dagster-postgres\n"
    )
    assert not said.out
