"""Where another process holds the catalog's file, a command says so soon, and so does doctor, whatever else it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run

COMMANDS = (
    ["status"],
    ["plan"],
    ["topic", "list"],
    ["append", "users", "--file", "records.jsonl"],
    ["read", "users"],
    ["verify"],
    ["purge"],
)
HELD = "another process holds its database"


@pytest.fixture(autouse=True)
def _held(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    open_home(home).store.create_topic("users", 1, {"cleanup.policy": "compact"})
    monkeypatch.setattr("keptlog.table.catalogs.embedded._LOOK_WAIT_SECONDS", 0.1)
    monkeypatch.setattr("keptlog.table.catalogs.embedded_catalog.LOCK_WAIT_SECONDS", 0.1)
    other = sqlite3.connect(home / "catalog.db", isolation_level=None)
    other.execute("begin exclusive")
    yield
    other.close()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_ends_with_one_line_that_says_so(keptlog: Run, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "records.jsonl").write_text('{"key": "a", "value": "1"}\n')
    outcome = keptlog(*command)
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (1, "", 1), outcome.err
    assert HELD in outcome.err


def test_doctor_tells_it_as_what_is_wrong_with_the_home_and_names_what_it_could_not_look_at(keptlog: Run) -> None:
    outcome = keptlog("doctor", "--json")
    assert outcome.code == 1
    [problem] = [each for check in outcome.json["checks"] for each in check["problems"]]
    assert HELD in problem["what"]
    assert "has locked it" in problem["cause"]
    assert any(check["not_looked_at"] for check in outcome.json["checks"])
