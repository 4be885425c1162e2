"""A leash ends its server also if its starter is gone before it was told of the server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from examples.lake import leash
from tests.processes import with_environment

_DEADLINE_SECONDS = 120.0


def test_a_starter_that_is_interrupted_at_the_first_moment_leaves_no_server(tmp_path: Path) -> None:
    mark = {"KEPTLOG_TEST_MARK": str(tmp_path)}
    held = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(leash.__file__)), "", "sleep", "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **mark},
        start_new_session=True,
    )
    assert held.stdin
    assert held.stdout
    # What ``Popen`` does when Ctrl-C arrives while it waits for its child.
    held.stdout.close()
    held.stdin.close()
    held.wait(_DEADLINE_SECONDS)
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while (left := with_environment(**mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == set()
