"""More logs than anybody reads end a text after the first of them, and it says how to see the others; JSON has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED


@pytest.fixture
def three_logs(home: Path) -> None:
    open_home().store.create_topic("users", 3, COMPACTED)


@pytest.mark.usefixtures("three_logs")
def test_a_plan_says_how_many_lines_there_are_more_and_how_to_see_them(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.cli.inspection.MOST_SHOWN", 2)
    *lines, note = keptlog("plan").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["users-0", "users-1"]
    command = "keptlog plan users-2"
    assert note == f"these are the first 2 of 3 lines; name topics or logs to see theirs ({command}), --json has all"
    assert len(keptlog("plan", "--json").json["left_alone"]) == 3
    assert [line.partition(":")[0] for line in keptlog(*command.split()[1:]).out.splitlines()] == ["users-2"]
    assert len(keptlog("plan", "users").out.splitlines()) == 3


@pytest.mark.usefixtures("three_logs")
def test_a_topic_is_described_with_its_first_logs(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.cli.topics.MOST_SHOWN", 2)
    *_, first, second, note = keptlog("topic", "describe", "users").out.splitlines()
    assert [line.partition(" ")[0] for line in (first, second)] == ["users-0", "users-1"]
    told = "keptlog explain users-2 tells of one of the others"
    assert note == f"these are the first 2 of 3 logs; {told}, --json has all"
    assert len(keptlog("topic", "describe", "users", "--json").json["logs"]) == 3


@pytest.mark.usefixtures("three_logs")
def test_where_all_are_shown_nothing_is_said_of_others(keptlog: Run) -> None:
    assert len(keptlog("plan").out.splitlines()) == 3
    assert "these are" not in keptlog("topic", "describe", "users").out
