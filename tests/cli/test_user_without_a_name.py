"""A user whom this machine has no name for, as in a container that runs as a mere number, cleans as any other."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run

DAY_MS = 86_400_000


@pytest.fixture
def nameless() -> tuple[str, ...]:
    """Begins a command of such a user, who may still read wherever this Python lies."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root works as another user: needs setpriv, of util-linux")
    known = {each.pw_uid for each in pwd.getpwall()}
    user_id = next(each for each in range(12345, 60000) if each not in known)
    rights = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return ("setpriv", f"--reuid={user_id}", f"--regid={user_id}", "--clear-groups", *rights)


@pytest.fixture
def own_folder() -> Iterator[str]:
    """Java enters none that is root's alone, as those of tests are, whatever the user may."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield folder


@pytest.mark.parametrize("has_home", [True, False], ids=["home", "none"])
def test_a_user_without_a_name_cleans(
    nameless: tuple[str, ...], keptlog: Run, lines: Callable[..., str], own_folder: str, *, has_home: bool
) -> None:
    """Java calls his home "?", and Spark ended with "basedir must be absolute: ?/.ivy2.5.2/local"."""
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}, {"key": "a", "value": "2"})).code == 0
    variables = {name: value for name, value in os.environ.items() if name != "HOME"} | {
        "TMPDIR": own_folder,
        "SPARK_LOCAL_DIRS": own_folder,
        "KEPTLOG_NOW_MS": str(time.time_ns() // 1_000_000 + 30 * DAY_MS),
    }
    if has_home:
        variables["HOME"] = f'{own_folder}/a "home"'
    command = [*nameless, sys.executable, "-m", "keptlog", "clean", "users"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    assert "users-0" in done.stdout
    assert "Invalid UID" not in done.stderr
    assert keptlog("read", "users").out.count("\n") == 1
