"""A process that may open few files (ulimit -n) takes a batch for many partitions, or says which limit is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run

_LIMITED = (
    "import resource as r, keptlog.cli as k, keptlog.table.changes.partition_writers as p; p.HELD_BYTES = 1; "
    "r.setrlimit(r.RLIMIT_NOFILE, (128, {hard})); k.run()"
)
"""Each record is written at once, as those of a batch that is larger than memory."""


@pytest.fixture
def limited(keptlog: Run, lines: Callable[..., str]) -> Callable[[int], subprocess.CompletedProcess[str]]:
    keptlog("topic", "create", "users", "--partitions", "200")
    file = lines(*({"key": f"k{number}", "value": "1"} for number in range(600)))

    def append(hard: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _LIMITED.format(hard=hard), "append", "users", "--file", file]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return append


def test_a_command_takes_as_many_open_files_as_it_may_have(
    limited: Callable[[int], subprocess.CompletedProcess[str]],
) -> None:
    outcome = limited(1024)
    assert outcome.returncode == 0, outcome.stderr


def test_a_limit_that_can_not_be_raised_is_named_at_once(
    keptlog: Run, limited: Callable[[int], subprocess.CompletedProcess[str]]
) -> None:
    outcome = limited(128)
    assert (outcome.returncode, len(outcome.stderr.splitlines())) == (1, 1), outcome.stderr
    assert "ulimit -n" in outcome.stderr
    assert "try again" not in outcome.stderr
    assert keptlog("read", "users").out == ""
