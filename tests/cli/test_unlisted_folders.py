"""A folder that a user can't list is told, and what it may hold is never called left out, gone or complete."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from keptlog.receipts.key_files import signing_key
from tests.cli.conftest import Outcome, Run


def is_refused(told: Outcome, folder: Path) -> bool:
    return told.code == 1 and f"{folder} can't be listed" in told.err and "Permission denied" in told.err


def records_in(folder: Path, key: str) -> None:
    folder.mkdir(parents=True)
    (folder / "part-0.jsonl").write_text(json.dumps({"key": key, "value": "1"}) + "\n")


def test_records_of_a_folder_are_appended_all_or_none(user: Run, tmp_path: Path) -> None:
    """The files of such a folder were left out without a word."""
    exported = tmp_path / "export"
    records_in(exported / "day=1", "b")
    records_in(exported / "day=2", "c")
    records_in(exported / "_temporary", "d")
    for name in ("day=2", "_temporary"):
        (exported / name).chmod(0)

    told = user("append", "users", "--file", str(exported), "--quiet")
    assert is_refused(told, exported / "day=2")
    assert user("read", "users").out.count("\n") == 1

    (exported / "day=2").chmod(0o755)
    assert user("append", "users", "--file", str(exported), "--quiet").code == 0
    assert user("read", "users").out.count("\n") == 3


def test_a_file_of_a_folder_that_can_not_be_read_may_hold_records(user: Run, tmp_path: Path) -> None:
    exported = tmp_path / "export"
    records_in(exported, "b")
    (exported / "000000_0").touch(mode=0)
    told = user("append", "users", "--file", str(exported), "--quiet")
    assert told.code == 2
    assert f"{exported / '000000_0'} can't be read (Permission denied), so its records would be left out" in told.err


def test_receipts_of_a_folder_are_not_checked_without_those_that_can_not_be_seen(user: Run, home: Path) -> None:
    signing_key(home, {})
    exported = home.parent / "audit"
    for name in ("one", "two"):
        (exported / name).mkdir(parents=True)
        (exported / name / "receipt.json").write_text("{}")
    (exported / "two").chmod(0)
    told = user("receipt", "verify", str(exported), "--part", "--public-key", str(home / "receipts.pub"))
    assert is_refused(told, exported / "two")


def test_public_keys_that_can_not_be_seen_are_not_taken_for_none(user: Run, home: Path) -> None:
    """A receipt of an earlier key was called signed by nobody that is trusted."""
    signing_key(home, {})
    home.chmod(0o300)
    told = user("receipt", "verify")
    assert is_refused(told, home)


@pytest.mark.parametrize("unlisted", ["warehouse/keptlog", "warehouse/keptlog/users/metadata"])
def test_a_home_that_has_lost_its_catalog_is_not_taken_for_an_empty_one(user: Run, home: Path, unlisted: str) -> None:
    """A second catalog was begun above the files of the first."""
    (home / "catalog.db").unlink()
    shutil.rmtree(home / "warehouse/keptlog/odd")
    (home / unlisted).chmod(0o300)
    for command in (("topic", "create", "new"), ("status",)):
        assert is_refused(user(*command), home / unlisted)
    assert not (home / "catalog.db").exists()


def test_a_home_without_a_catalog_that_can_not_be_listed_is_told_in_one_line(user: Run, home: Path) -> None:
    (home / "catalog.db").unlink()
    shutil.rmtree(home / "warehouse")
    home.chmod(0o300)
    assert is_refused(user("status"), home)
