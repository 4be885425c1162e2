"""The command on a copied home: it shows what is there, says what it is, and changes nothing."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.passes.doctor.home_patient import NO_FILES
from tests.cli.conftest import Run
from tests.table.stores import store_at
from tests.table.test_home_of_two_paths import OTHER, of_an_earlier_keptlog

COMPACTED = {"cleanup.policy": "compact"}


@pytest.fixture
def copy(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The copy of a home, which the command then uses."""
    open_home().store.create_topic("users", 1, COMPACTED)
    shutil.copytree(home, tmp_path / "copy")
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "copy"))
    return tmp_path / "copy"


def test_status_says_that_a_home_is_a_copy_each_time_and_fails(keptlog: Run, copy: Path, home: Path) -> None:
    for _ in range(2):
        outcome = keptlog("status")
        assert outcome.code == 1
        assert "users-0" in outcome.out
        assert outcome.err.startswith(f"keptlog: home {copy} is a copy of the home at {home}")
        assert len(outcome.err.splitlines()) == 1
    assert keptlog("status", "--json").json["read_only"] == outcome.err.removeprefix("keptlog: ").strip()


def test_status_of_the_original_says_nothing_of_it(
    keptlog: Run, copy: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(home))
    assert keptlog("status").code == 0
    assert keptlog("status", "--json").json["read_only"] is None


@pytest.mark.parametrize(
    "arguments",
    [["purge"], ["topic", "create", "orders"], ["topic", "delete", "users", "--yes"], ["retain"], ["clean"]],
)
def test_a_command_that_changes_something_refuses_a_copy_in_one_line(
    keptlog: Run, copy: Path, arguments: list[str]
) -> None:
    outcome = keptlog(*arguments)
    assert outcome.code == 2
    assert "use KEPTLOG_HOME=" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_verify_of_a_copy_does_not_say_that_anything_is_gone_from_it(keptlog: Run, copy: Path, home: Path) -> None:
    for names in ([], ["users"]):
        outcome = keptlog("verify", *names)
        assert outcome.code == 1
        [gone] = [line for line in outcome.out.splitlines() if " G8 " in line]
        assert "not looked at" in gone
        assert f"home {copy} is a copy of the home at {home}" in gone
        assert outcome.err.startswith(f"keptlog: home {copy} is a copy of the home at {home}")
        assert len(outcome.err.splitlines()) == 1
    checks = keptlog("verify", "--json").json["checks"]
    assert [each["result"] for each in checks if each["check"] == "G8"] == ["not looked at"]


def test_explain_of_a_copy_names_its_own_files_as_not_looked_at(keptlog: Run, copy: Path, home: Path) -> None:
    assert f"not looked at: the files of this home itself: home {copy} is a copy of " in keptlog("explain", "users").out


def test_verify_of_the_original_looks_at_its_own_files(
    keptlog: Run, copy: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(home))
    outcome = keptlog("verify")
    assert (outcome.code, outcome.err, copy.exists()) == (0, "", True)


def test_a_home_that_was_moved_is_one_line_however_many_topics_it_has(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("customers", "orders", "stock", "users", "visits"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    home.rename(tmp_path / "moved")
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "moved"))
    for command in (["status"], ["topic", "list"], ["plan"], ["verify"]):
        outcome = keptlog(*command)
        assert outcome.code == 1
        [line] = outcome.err.splitlines()
        assert line.startswith(
            f"keptlog: customers, orders, stock and 2 more: home {tmp_path / 'moved'} was moved from "
        )


@pytest.mark.parametrize(
    "words",
    [
        "files users",
        "explain users-0",
        "history users",
        "reader list users",
        "plan",
        "topic list",
        "topic describe users",
        "status users",
    ],
)
def test_what_was_remembered_before_a_home_was_moved_is_not_told_as_if_it_were_there(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    open_home().store.create_topic("users", 1, COMPACTED)
    open_home().store.append("users", [NewRecord(b"a", b"1", 1_700_000_000_000)], "run", 1_700_000_000_000)
    assert keptlog("status").code == 0
    assert keptlog(*words.split()).code == 0
    home.rename(tmp_path / "moved")
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "moved"))
    outcome = keptlog(*words.split())
    assert outcome.code in {1, 2}
    assert f"home {tmp_path / 'moved'} was moved from {home}" in outcome.err
    assert not outcome.out or any(
        told in outcome.out for told in ("not all topics can be read", "no topic can be looked at")
    )


def test_doctor_names_each_path_that_tables_are_named_by_and_that_does_not_lead_to_the_home(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_home().store.create_topic("users", 1, COMPACTED)
    moved = home.rename(tmp_path / "moved")
    with contextlib.closing(sqlite3.connect(moved / "catalog.db")) as connection:
        # An earlier keptlog remembered this one for a home of before format 1.1.
        query = "update iceberg_namespace_properties set property_value = ? where property_key = ?"
        connection.execute(query, (str(moved), "keptlog.home-location"))
        connection.commit()
    monkeypatch.setenv("KEPTLOG_HOME", str(moved))

    checks = {check["name"]: check for check in keptlog("doctor", "--json").json["checks"]}

    assert [name for name, check in checks.items() if check["problems"]] == ["home"]
    [problem] = checks["home"]["problems"]
    assert "its catalog names the files of users by their paths there" in problem["what"]
    assert problem["command"] == f"ln -s {moved} {home}"
    assert [name for name, check in checks.items() if NO_FILES in check["not_looked_at"]] == ["folders"]
    home.symlink_to(moved)
    assert keptlog("doctor").code == 0


def test_doctor_tells_a_damaged_topic_also_where_it_is_named_in_a_copy(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = of_an_earlier_keptlog(tmp_path, monkeypatch)
    copy = Path(shutil.copytree(disk, tmp_path / "disk2" / "home"))
    (tmp_path / "home").unlink()
    (tmp_path / "home").symlink_to(copy)
    Path(store_at(copy).metadata_locations()[OTHER].removeprefix("file://")).write_bytes(b"damaged")
    monkeypatch.setenv("KEPTLOG_HOME", str(copy))

    checks = {check["name"]: check for check in keptlog("doctor", "--json").json["checks"]}

    assert [name for name, check in checks.items() if check["problems"]] == ["home", "topics"]
