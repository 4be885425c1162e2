"""A command that is printed to be pasted does what it says, also where a path has a space in it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home below a folder whose name has a space, and a quote too."""
    spaced = home.parent / "Ada's disk" / "home"
    spaced.parent.mkdir()
    monkeypatch.setenv("KEPTLOG_HOME", str(spaced))
    return spaced


def _mend(keptlog: Run) -> str:
    (problem,) = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "home")["problems"]
    assert f"run:   {problem['command']}" in keptlog("doctor", "--quiet").out
    return str(problem["command"])


def _made(keptlog: Run) -> None:
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0


def _require_link_leads(keptlog: Run, home: Path, moved: Path) -> None:
    subprocess.run(["sh", "-c", _mend(keptlog)], check=True)
    assert home.resolve() == moved
    assert keptlog("doctor", "--quiet").code == 0


def test_the_link_for_a_home_that_was_moved_leads_there(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(keptlog)
    moved = home.rename(home.with_name("the new home"))
    monkeypatch.setenv("KEPTLOG_HOME", str(moved))
    _require_link_leads(keptlog, home, moved)


def test_the_link_of_an_earlier_move_is_replaced(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(keptlog)
    home.symlink_to(home.rename(home.with_name("moved once")))
    moved = home.resolve().rename(home.with_name("moved twice"))
    monkeypatch.setenv("KEPTLOG_HOME", str(moved))
    _require_link_leads(keptlog, home, moved)


def test_the_home_of_a_copy_is_set_whole(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(keptlog)
    copy = home.with_name("a copy")
    subprocess.run(["cp", "-a", str(home), str(copy)], check=True)
    monkeypatch.setenv("KEPTLOG_HOME", str(copy))
    shell = subprocess.run(
        ["sh", "-c", f'{_mend(keptlog)}\nprintf %s "$KEPTLOG_HOME"'], check=True, stdout=-1, text=True
    )
    assert shell.stdout == str(home)


def test_the_line_that_checks_an_export_names_its_folder_and_key_whole(keptlog: Run, home: Path) -> None:
    _made(keptlog)
    keptlog("topic", "delete", "users", "--yes")
    said = keptlog("receipt", "export", "for the auditor").out.splitlines()
    words = shlex.split(said[1].removeprefix("to check them: "))
    assert words == ["keptlog", "receipt", "verify", "for the auditor", "--public-key", str(home / "receipts.pub")]
    assert keptlog(*words[1:]).code == 0
