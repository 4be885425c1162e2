"""The demo of the lake proves itself, and leaves no process and no folder behind, interrupted or not."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import demo_lake
from examples.installed import NotInstalled, java
from examples.lake.rest_catalog import rest_classpath
from tests.processes import descendants, left, with_environment

_DEADLINE_SECONDS = 600
_ROOT = Path(__file__).parents[2]


@pytest.fixture
def put_aside() -> Iterator[Path]:
    """Where the demo puts its temporary files; not among pytest's own, which are closed to whom PostgreSQL runs as."""
    with tempfile.TemporaryDirectory(prefix="keptlog-demo-lake-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def start(put_aside: Path, *options: str) -> subprocess.Popen[str]:
    """The demo in a process group of its own, as a terminal starts it."""
    if importlib.util.find_spec("dagster_postgres") is None:
        pytest.skip("the lake's demo is not tried: pip install dagster-postgres")
    try:
        java("the demo")
        rest_classpath()
    except NotInstalled as missing:
        pytest.skip(f"the lake's demo is not tried: {missing}")
    return subprocess.Popen(
        [sys.executable, "-m", "examples.demo_lake", "--records", "2000", *options],
        env={**os.environ, "KEPTLOG_HOME": str(put_aside / "never"), "TMPDIR": str(put_aside)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def is_empty_soon(folder: Path) -> bool:
    deadline = time.monotonic() + 30
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not list(folder.iterdir())


def test_the_story_on_a_lake_proves_itself_though_a_worker_dies_and_its_servers_stay_for_the_user(
    put_aside: Path,
) -> None:
    telling = start(put_aside, "--stay")
    assert telling.stdout
    told, processes, variables = "", descendants(telling.pid), dict[str, str]()
    for line in telling.stdout:
        told += line
        processes |= descendants(telling.pid)
        if line.startswith("  export "):
            name, _, value = shlex.split(line)[1].partition("=")
            variables[name] = value
        if line.endswith("keptlog status\n"):
            break
    command = [*shlex.split(told.splitlines()[-1]), "--json"]
    elsewhere = {name: value for name, value in os.environ.items() if not name.startswith(("KEPTLOG_", "SPARK_"))}
    elsewhere |= variables | {"PYTHONPATH": str(_ROOT)}
    status = subprocess.run(command, env=elsewhere, capture_output=True, text=True, check=False)
    telling.terminate()
    told += telling.communicate(timeout=_DEADLINE_SECONDS)[0]
    assert status.returncode == 0, status.stderr
    shown = [each["topic_partition"] for each in json.loads(status.stdout)["logs"]]
    assert shown == [*(f"demo.user-profiles-{number}" for number in range(3)), "transactions-0"]
    assert telling.returncode == 0, told
    assert told.endswith("the lake is gone.\n")
    for sensor in ("dirty_ratio_sensor", "tombstone_expiry_sensor"):
        assert f"{sensor}: FIRES" in told
    assert told.count("    the same") == 3
    assert "the master knows 1 worker" in told
    assert " 0 others, 0 open uploads" in told
    assert "Dagster's runs in Postgres: 4, with " in told
    assert "  equal: every record before the cleans, every key's latest value after them" in told
    for server in ("moto", "postgres", "LoopbackCatalog", "master.Master", "worker.Worker"):
        assert any(server in each.command for each in processes), server
    assert left(processes) == set()
    assert is_empty_soon(put_aside)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_demo_leaves_nothing(put_aside: Path, number: signal.Signals) -> None:
    telling = start(put_aside)
    assert telling.stdout
    told = ""
    while "catalog   http" not in told:
        line = telling.stdout.readline()
        assert line, told
        told += line
    processes = descendants(telling.pid)
    if number == signal.SIGKILL:
        telling.kill()
    else:
        os.killpg(telling.pid, number)  # Ctrl-C
    told += telling.communicate(timeout=_DEADLINE_SECONDS)[0]
    if number == signal.SIGINT:
        assert telling.returncode == 130, told
        assert "demo-lake: interrupted; the lake is gone" in told
    assert left(processes) == set()
    # It may have been at starting a server, which nobody had seen then.
    assert left(with_environment(TMPDIR=str(put_aside))) == set()
    assert is_empty_soon(put_aside)


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
