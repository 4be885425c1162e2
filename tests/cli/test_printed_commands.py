"""A command that is printed to be pasted does what it says, also where a path has a space in it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import open_home
from keptlog.notify.checks import leave_checks
from tests.cli.conftest import Run


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home below a folder whose name has a space, and a quote too."""
    spaced = home.parent / "Ada's disk" / "home"
    spaced.parent.mkdir()
    monkeypatch.setenv("KEPTLOG_HOME", str(spaced))
    return spaced


def _problems(keptlog: Run, check: str) -> list[dict[str, Any]]:
    checks = keptlog("doctor", "--json").json["checks"]
    found: list[dict[str, Any]] = next(each for each in checks if each["name"] == check)["problems"]
    return found


def _mend(keptlog: Run) -> str:
    (problem,) = _problems(keptlog, "home")
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


def test_the_link_for_a_home_that_was_moved_with_the_folder_around_it_leads_there(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(keptlog)
    moved = home.parent.rename(home.parent.with_name("another disk")) / home.name
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


def test_what_a_spark_has_left_is_removed_and_nothing_else(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(keptlog)
    left, other = home.with_name("spark dirs") / "blockmgr-1", home.with_name("spark")
    for folder in (left, other):
        folder.mkdir(parents=True)
        os.utime(folder, (1_600_000_000, 1_600_000_000))
    (left / "shuffle").write_bytes(b"a secret")
    for path in (left / "shuffle", left):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(left.parent))
    (problem,) = _problems(keptlog, "holders")
    command = str(problem["command"])
    assert command in keptlog("status").err
    subprocess.run(["sh", "-c", command], check=True, cwd=home.parent)
    assert (left.exists(), other.exists(), home.exists()) == (False, True, True)


def test_the_receipts_of_an_earlier_chain_are_verified_where_they_lie(keptlog: Run, home: Path) -> None:
    _made(keptlog)
    keptlog("topic", "delete", "users", "--yes")
    open_home(home).store.committer.catalog.drop_table(("keptlog_receipts", "chain"))
    said = keptlog("receipt", "list").err
    words = shlex.split(said.partition("catalog no longer knows: ")[2].partition(" checks them")[0])
    assert keptlog(*words[1:]).out.startswith("1 receipt, number 1")


def test_the_line_that_checks_an_export_names_its_folder_and_key_whole(keptlog: Run, home: Path) -> None:
    _made(keptlog)
    keptlog("topic", "delete", "users", "--yes")
    said = keptlog("receipt", "export", "for the auditor").out.splitlines()
    words = shlex.split(said[1].removeprefix("to check them: "))
    assert words == ["keptlog", "receipt", "verify", "for the auditor", "--public-key", str(home / "receipts.pub")]
    assert keptlog(*words[1:]).code == 0


def test_what_doctor_prints_for_a_topic_that_begins_with_a_dash_can_be_run(keptlog: Run, home: Path) -> None:
    made = keptlog("topic", "create", "--config", "cleanup.policy=compact", "--", "-users")
    assert made.code == 0
    leave_checks(home, {"-users-0": {"G1": "a file is damaged"}})
    [problem] = _problems(keptlog, "conditions")
    assert problem["command"] == "keptlog verify -- -users-0"
    assert keptlog(*str(problem["command"]).split()[1:]).code == 0
