"""A catalog that was put back over a lake that was purged since is told as that, and sends nobody the wrong way."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.home import open_home
from keptlog.passes.doctor import home_patient
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED, TOPIC, append_each, clean, values

DAY_MS = 24 * 3_600_000
HINT = "unless the catalog was put back from a backup (keptlog doctor tells)"


@pytest.fixture
def put_back(home: Path, request: pytest.FixtureRequest) -> Path:
    """A home whose catalog is older than its files; the backup lies beside it. Enough commits let metadata go too."""
    store = open_home(home).store
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    shutil.copytree(home, home.with_name("backup"))
    append_each(store, *[[("b", str(number))] for number in range(getattr(request, "param", 1))])
    clean(store)
    assert open_home(home).purger.purge([TOPIC], now_ms=time.time_ns() // 1_000_000 + 3 * DAY_MS).receipts
    shutil.copy(home / "catalog.db", home.with_name("newer.db"))
    shutil.copy(home.with_name("backup") / "catalog.db", home / "catalog.db")
    return home


def checks_of(keptlog: Run) -> dict[str, Any]:
    return {check["name"]: check for check in keptlog("doctor", "--json").json["checks"]}


@pytest.mark.parametrize("put_back", [1, 30], indirect=True)
def test_doctor_says_that_the_catalog_was_put_back_and_not_that_somebody_deleted_files(
    keptlog: Run, put_back: Path
) -> None:
    checks = checks_of(keptlog)
    for name in ("topics", "history"):
        [found] = checks[name]["problems"]
        assert found["subject"] == TOPIC
        assert found["cause"].startswith("the catalog was put back from a backup")
        assert found["todo"].startswith("put back the catalog that went on; ")
        assert found["command"] is None
    assert "its history, which ends with 00002-" in checks["history"]["problems"][0]["what"]
    assert checks["history"]["not_looked_at"] == []
    shutil.copy(put_back.with_name("newer.db"), put_back / "catalog.db")
    assert {name: each["problems"] for name, each in checks_of(keptlog).items() if name in ("topics", "history")} == {
        "topics": [],
        "history": [],
    }


def test_the_files_of_the_same_backup_bring_the_topic_back_and_doctor_names_what_is_to_be_moved(
    keptlog: Run, put_back: Path
) -> None:
    shutil.copytree(put_back.with_name("backup"), put_back, dirs_exist_ok=True)
    checks = checks_of(keptlog)
    assert checks["topics"]["problems"] == []
    [found] = checks["history"]["problems"]
    assert found["files"] == found["todo"].partition("elsewhere: ")[2].split(", ")
    for path in found["files"]:
        Path(path.removeprefix("file://")).unlink()
    assert checks_of(keptlog)["history"]["diagnosis"] == "fine"
    assert keptlog("purge", "--yes").code == 0
    assert [value for _, _, value in values(open_home(put_back).store)] == [b"1", b"2"]


@pytest.mark.parametrize("put_back", [1, 30], indirect=True)
@pytest.mark.parametrize("command", [["status"], ["read", TOPIC], ["verify", TOPIC], ["plan"], ["purge", "--yes"]])
def test_each_command_names_doctor_where_a_file_of_the_table_is_gone(
    keptlog: Run, put_back: Path, command: list[str]
) -> None:
    told = keptlog(*command)
    assert told.code == 1
    assert HINT in told.err
    assert "another purge was faster" not in told.err


def test_the_receipts_of_the_catalog_that_went_on_are_there_again_once_it_is_put_back(keptlog: Run, home: Path) -> None:
    for topic in ("a", "b", "kept", *(f"c{number}" for number in range(25))):
        open_home(home).store.create_topic(topic, 1, COMPACTED)
    assert keptlog("topic", "delete", "a", "--yes").code == 0
    shutil.copy(home / "catalog.db", home.with_name("older.db"))
    assert keptlog("topic", "delete", "b", "--yes").code == 0
    shutil.copy(home / "catalog.db", home.with_name("newer.db"))
    shutil.copy(home.with_name("older.db"), home / "catalog.db")
    for number in range(25):
        assert keptlog("topic", "delete", f"c{number}", "--yes").code == 0
    shutil.copy(home.with_name("newer.db"), home / "catalog.db")
    assert len(keptlog("receipt", "list", "--json").json["receipts"]) == 2
    assert keptlog("topic", "delete", "kept", "--yes").code == 0
    verified = keptlog("receipt", "verify", "--json").json
    assert (verified["receipts"], [each["flaw"] for each in verified["findings"]]) == (3, ["put back"])


def test_a_file_that_is_lost_is_not_told_as_a_catalog_that_was_put_back(keptlog: Run, home: Path) -> None:
    store = open_home(home).store
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    newest = store.load_table(TOPIC).current_snapshot()
    assert newest
    Path(newest.manifest_list.removeprefix("file://")).unlink()
    checks = checks_of(keptlog)
    [found] = checks["topics"]["problems"]
    assert found["cause"].startswith("the file was cut off, written over or deleted by something else than keptlog")
    assert checks["history"]["diagnosis"] == "fine"


def test_a_topic_that_could_not_be_asked_is_asked_no_second_time(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_home(home).store.create_topic(TOPIC, 1, COMPACTED)

    def silent(*_: object) -> None:
        raise StorageUnavailable("no answer")

    monkeypatch.setattr(home_patient, "examined", silent)
    monkeypatch.setattr(home_patient, "put_back", lambda *_: pytest.fail("it is asked again"))
    assert checks_of(keptlog)["history"]["not_looked_at"] != []
