"""What ``scripts/dev`` has started ends with it, also where a shell has started it in the background."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "dev"
LIKE_DAGSTER = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
pathlib.Path("up").write_text(str(os.getpid()))
try:
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path("ended").write_text(" ".join(sys.argv[1:]))
"""
"""It takes SIGTERM as it takes Ctrl-C, which it finds as whoever has started it."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and with something like Dagster for it to start."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts" / "dev")
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "dagster").write_text(f"#!{sys.executable}\n{LIKE_DAGSTER}")
    (binaries / "dagster").chmod(0o755)
    return tmp_path


def wait_for(what: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not what() and time.monotonic() < until:
        time.sleep(0.05)
    return what()


@pytest.mark.parametrize("is_script", [True, False], ids=["the script is ended", "Dagster is ended"])
def test_a_sigterm_ends_all_of_it(checkout: Path, *, is_script: bool) -> None:
    environment = {**os.environ, "KEPTLOG_SPARK_MASTER": "local[1]"}
    background = "scripts/dev 3000 & echo $! >script; wait"
    command = ["bash", "-c", background]
    with subprocess.Popen(command, cwd=checkout, env=environment, start_new_session=True) as shell:
        try:
            up = checkout / "up"
            assert wait_for(lambda: up.exists() and bool(up.read_text()))
            os.kill(int((checkout / "script" if is_script else up).read_text()), signal.SIGTERM)
            assert wait_for((checkout / "ended").exists)
            shell.wait(120)
            assert (checkout / "ended").read_text() == "dev --port 3000"
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
            elif not (checkout / "ended").exists():
                os.kill(int(up.read_text()), signal.SIGKILL)
