"""A home whose last writer was killed in the middle of a commit of its database is opened as it was before."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.logs import open_store

_KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("pragma cache_size = 1")
connection.execute("begin immediate")
connection.execute("create table large (text)")
connection.executemany("insert into large values (?)", [("x" * 4000,)] * 500)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_commit_has_left_is_taken_back_when_the_home_is_opened(tmp_path: Path) -> None:
    open_store(tmp_path).create_topic("t", 1, {"cleanup.policy": "compact"})
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "catalog.db")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "catalog.db-journal").stat().st_size > 0
    assert open_store(tmp_path).topics() == ["t"]
