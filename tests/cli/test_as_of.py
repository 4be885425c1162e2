"""A command that judges as of another time than now says so, once, and stdout stays the answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.notify.checks import broken_checks
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


def test_what_verify_finds_late_as_of_another_time_is_not_remembered(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_home(home)
    opened.store.alter_topic("users", {"max.compaction.lag.ms": "60000"})
    opened.append("users", [NewRecord(b"ada", b"1", time.time_ns() // 1_000_000)])
    monkeypatch.setenv("KEPTLOG_NOW_MS", "4000000000000")
    assert "max_compaction_lag  BROKEN" in keptlog("verify", "users").out
    [segment] = home.rglob("data/partition=0/*.parquet")
    content = segment.read_bytes()
    segment.write_bytes(content[:100])
    assert keptlog("verify", "users").code == 1
    monkeypatch.delenv("KEPTLOG_NOW_MS")
    [(name, found)] = broken_checks(home).items()
    assert (name, "max_compaction_lag" in found, "G1" in found) == ("users-0", False, True)
