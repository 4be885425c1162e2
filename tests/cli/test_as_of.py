"""A command that judges as of another time than now says so, once, and stdout stays the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run

COMMANDS = (["status", "--json"], ["plan"], ["verify", "--json"], ["clean"], ["retain"], ["purge", "--json"])
WHATEVER_THE_TIME = (["delete-records", "users-0", "0", "--yes"], ["topic", "create", "others"], ["topic", "list"])
SAID = "keptlog: as of 2027-01-15T08:00:00.000Z, as KEPTLOG_NOW_MS says"


@pytest.fixture(autouse=True)
def _users(home: Path) -> None:
    open_home(home).store.create_topic("users", 1, {"cleanup.policy": "compact"})


def test_each_command_says_as_of_when_it_judges(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    assert keptlog("status").as_of == ""
    monkeypatch.setenv("KEPTLOG_NOW_MS", "1800000000000")
    for command in COMMANDS:
        outcome = keptlog(*command)
        assert outcome.as_of == SAID, command
        assert "as of" not in outcome.out + outcome.err
    assert keptlog("topic", "list").as_of == ""


def test_a_time_that_can_not_be_meant_stops_a_command_before_it_does_anything(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    monkeypatch.setenv("KEPTLOG_NOW_MS", "1800000000")
    for command in (*COMMANDS, *WHATEVER_THE_TIME):
        outcome = keptlog(*command)
        answered = outcome.json.keys() if "--json" in command else outcome.out
        assert answered == ({"schema_version", "errors"} if "--json" in command else ""), command
        assert (outcome.code, len(outcome.err.splitlines())) == (2, 1), command
        assert "are these seconds?" in outcome.err
    assert open_home().topics() == ["users"]
