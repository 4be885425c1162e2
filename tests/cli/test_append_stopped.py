"""Ctrl-C in an append that still reads: whoever pipes records in must hear that none of them has landed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from keptlog import open_home
from tests.cli.conftest import Run

_MORE_THAN_A_STEP = 100_001
"""Of records: then the first line of progress is there."""


def test_an_append_that_is_stopped_while_it_reads_says_that_nothing_was_appended(keptlog: Run, home: Path) -> None:
    keptlog("topic", "create", "users")
    command = [sys.executable, "-m", "keptlog", "append", "users"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write('{"key": "ada", "value": "1"}\n' * _MORE_THAN_A_STEP)
        process.stdin.flush()
        assert process.stderr.readline().startswith("read 100000 records")
        process.send_signal(signal.SIGINT)
        told = process.stderr.read().strip()
        assert process.wait(60) == 130
    assert told == "keptlog: stopped before all records were read; nothing was appended now, append all of them again"
    assert not list(open_home(str(home)).read("users"))
