"""A process that may write no large file (ulimit -f): its catalog's database says no, which is one line at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run

_LIMITED = "import resource as r, keptlog.cli as k; r.setrlimit(r.RLIMIT_FSIZE, (4096, 4096)); k.main()"


@pytest.fixture
def users(keptlog: Run, lines: Callable[..., str]) -> str:
    keptlog("topic", "create", "users", "--partitions", "2", "--config", "cleanup.policy=compact")
    file = lines({"key": "a", "value": "1"}, {"key": "a", "value": "2"}, {"key": "b", "value": None})
    keptlog("append", "users", "--file", file)
    return "users"


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "orders", "--config", "cleanup.policy=compact"),
        ("alter", "users", "--config", "delete.retention.ms=5"),
        ("delete", "users", "--yes"),
    ],
)
def test_a_database_that_may_not_grow_is_told_once_with_the_limit(
    keptlog: Run, users: str, arguments: tuple[str, ...]
) -> None:
    before = (keptlog("topic", "describe", users).out, keptlog("read", users).out)
    command = [sys.executable, "-c", _LIMITED, "topic", *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stdout, len(outcome.stderr.splitlines())) == (1, "", 1), outcome.stderr
    assert "takes no file as large as that" in outcome.stderr
    assert "ulimit -f" in outcome.stderr
    assert before == (keptlog("topic", "describe", users).out, keptlog("read", users).out)
    assert keptlog("topic", "list", "--json").json["topics"][0]["topic"] == users
