"""A topic whose table another program has put into another topic's folder: no file there is called its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.broken_topics import metadata_file
from tests.cli.conftest import Run

_SAID = "is not where the topic lay before"


@pytest.fixture(autouse=True)
def _moved(keptlog: Run, lines: Callable[..., str], home: Path) -> None:
    """``odd`` lies in the folder of ``users``, as its metadata says."""
    for topic in ("odd", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact")
        for value in "12":
            keptlog("append", topic, "--file", lines({"key": "a", "value": value}))
    file = metadata_file(open_home(home).store, "odd")
    moved = json.loads(file.read_text()) | {"location": f"file://{home}/warehouse/keptlog/users"}
    file.write_text(json.dumps(moved))


def test_g8_is_not_looked_at_and_names_no_file_of_the_other_topic(keptlog: Run) -> None:
    checks = [each for each in keptlog("verify", "odd", "--json").json["checks"] if each["check"] == "G8"]
    assert [each["result"] for each in checks] == ["not looked at"]
    assert _SAID in checks[0]["what"]
    assert "orphan" not in checks[0]["what"]
    assert all(each["result"] == "ok" for each in keptlog("verify", "users", "--json").json["checks"])


def test_doctor_names_no_command_that_refuses(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(1_900_000_000_000))
    checks = {each["name"]: each for each in keptlog("doctor", "--json").json["checks"]}
    assert [_SAID in each["what"] for each in checks["folders"]["problems"]] == [True]
    assert [each["command"] for each in checks["holders"]["problems"] if each["subject"] == "odd"] == []
    assert any(_SAID in each for each in checks["holders"]["not_looked_at"])
