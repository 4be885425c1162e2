"""``keptlog doctor`` on every way in which a home can be broken: the cause, and a command that mends it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keptlog.log.broker import CLEANER_DISABLED
from tests.broken_homes import BROKEN_HOMES
from tests.broken_topics import cut_in_half, foreign_table, metadata_file
from tests.cli.conftest import Run
from tests.patched_home import BrokenHome, Patched
from tests.table.foreign import insert, roll_back, table_of
from tests.table.stores import COMPACTED, TOPIC, store_at

ORDERS_UNREAD = "orders, until what is wrong with it is mended"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that is made once, for all rows: its files are named by their whole paths."""
    home = tmp_path_factory.mktemp("homes") / "home"
    with pytest.MonkeyPatch.context() as monkeypatch:
        Patched(home, monkeypatch).make()
    return home


@pytest.fixture
def broken(made: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Patched]:
    """The home, whole; other Sparks of this machine are not looked at."""
    del home
    monkeypatch.setenv("KEPTLOG_HOME", str(made))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    patched = Patched(made, monkeypatch)
    yield patched
    patched.put_back()


def checks_of(keptlog: Run, code: int) -> dict[str, Any]:
    told = keptlog("doctor", "--json")
    assert told.code == code, told.out + told.err
    return {check["name"]: check for check in told.json["checks"]}


@pytest.mark.parametrize("row", BROKEN_HOMES, ids=lambda row: row.id)
def test_doctor_names_the_cause_and_what_mends_it_and_is_content_then(
    keptlog: Run, broken: Patched, row: BrokenHome
) -> None:
    row.do(broken)
    checks = checks_of(keptlog, 1)
    assert [name for name, check in checks.items() if check["problems"]] == [row.check]
    [found] = checks[row.check]["problems"]
    assert row.said in found["what"]
    assert found["cause"]
    assert found["todo"]
    assert (found["command"] or "").startswith(row.command or "")
    assert bool(found["command"]) == bool(row.command)
    if row.mend:
        row.mend(broken)
    else:
        carry_out(keptlog, broken, found["command"])
    checks_of(keptlog, 0)


def test_people_are_told_the_cause_the_next_step_and_the_command_of_each_problem(keptlog: Run, broken: Patched) -> None:
    insert(broken.home, 3)
    broken.write("server.properties", "log.cleaner.enable=false\n")
    told = keptlog("doctor")
    assert (told.code, told.err) == (1, "")
    what, cause, todo, command, *rest = told.out.splitlines()
    assert what.startswith(f"topic {TOPIC} was changed by somebody else, and nothing is written to it: ")
    assert cause == "  cause: another program has changed it"
    assert (todo, command) == (f"  next:  run keptlog repair {TOPIC}", f"  run:   keptlog repair {TOPIC}")
    assert f"hint: {CLEANER_DISABLED}: take it out to switch it on" in rest
    assert "unless it is named" not in told.out
    assert rest[-1] == f"{broken.home}: 1 problem"


def test_doctors_page_shows_what_is_told_of_a_topic_that_was_rolled_back(keptlog: Run, broken: Patched) -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    shown = page.partition("topic users was changed")[2].partition("```")[0].replace("users", TOPIC).splitlines()
    roll_back(broken.home, table_of(broken.home).metadata.snapshots[0].snapshot_id)
    told = keptlog("doctor").out.splitlines()
    assert shown[1:-1] == told[1:-1]


def test_one_broken_topic_costs_only_itself(keptlog: Run, broken: Patched) -> None:
    broken.store.create_topic("users", 1, COMPACTED)
    cut_in_half(metadata_file(broken.store, "orders"))
    broken.segment().unlink()
    checks = checks_of(keptlog, 1)
    assert [each["subject"] for each in checks["topics"]["problems"]] == ["orders"]
    assert [each["subject"] for each in checks["files"]["problems"]] == [TOPIC]
    assert checks["clock"]["diagnosis"] == "fine"


def test_a_topic_that_can_not_be_loaded_hides_no_folder_that_no_topic_owns(keptlog: Run, broken: Patched) -> None:
    table_of(broken.home).catalog.drop_table(("keptlog", TOPIC))
    path = metadata_file(broken.store, "orders")
    path.unlink()
    path.mkdir()
    folders = checks_of(keptlog, 1)["folders"]
    assert [each["subject"] for each in folders["problems"]] == [TOPIC]
    assert folders["not_looked_at"] == [ORDERS_UNREAD]


def test_what_is_asked_of_each_topic_is_not_fine_where_one_could_not_be_looked_at(
    keptlog: Run, broken: Patched
) -> None:
    cut_in_half(metadata_file(broken.store, "orders"))
    checks = checks_of(keptlog, 1)
    unseen = {name for name, each in checks.items() if each["not_looked_at"] == [ORDERS_UNREAD]}
    of_each_topic = {"formats", "files", "history", "folders", "timestamps", "holders", "receipts", "erasure records"}
    of_each_topic |= {"changes", "conditions"}
    assert unseen == of_each_topic
    assert {checks[name]["diagnosis"] for name in of_each_topic} == {"not looked at"}
    told = keptlog("doctor").out.splitlines()
    [fine] = [line for line in told if line.startswith("fine: ")]
    assert not of_each_topic & set(fine.removeprefix("fine: ").split(", "))
    assert [line.rpartition(": ")[2] for line in told if line.startswith("not looked at: ")] == [ORDERS_UNREAD]


def carry_out(keptlog: Run, broken: Patched, command: str) -> None:
    """Do what doctor says, to the letter."""
    first, *rest = shlex.split(command)
    if first == "keptlog":
        done = keptlog(*rest)
        assert done.code == 0, done.out + done.err
    elif first == "export":
        broken.set(*rest[0].split("=", 1))
    else:
        subprocess.run([first, *rest], check=True)


def test_a_whole_home_is_fine_and_nothing_of_it_is_changed(keptlog: Run, broken: Patched) -> None:
    before = {
        path: path.read_bytes() for path in broken.home.rglob("*") if path.is_file() and "cache" not in path.parts
    }
    told = keptlog("doctor", "--quiet")
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines()[-1] == f"{broken.home}: 0 problems"
    assert {each["diagnosis"] for each in keptlog("doctor", "--json").json["checks"]} == {"fine"}
    after = {path: path.read_bytes() for path in broken.home.rglob("*") if path.is_file() and "cache" not in path.parts}
    assert after == before


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Path]:
    """A disk of 80 MiB, which the home is on."""
    del home
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "none", disk], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root, to mount a small disk: {error}")
    monkeypatch.setenv("KEPTLOG_HOME", str(disk / "home"))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    yield disk
    # The catalog's connections are still open.
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_that_is_full_or_read_only_is_told_before_anything_fails_of_it(
    keptlog: Run, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keptlog("topic", "create", "users").code == 0
    checks_of(keptlog, 0)
    (small_disk / "filler").write_bytes(bytes(40 * 2**20))
    [full] = checks_of(keptlog, 1)["disk"]["problems"]
    assert "has room for " in full["what"]
    assert full["command"] == "keptlog purge"
    (small_disk / "filler").unlink()
    checks_of(keptlog, 0)
    # The same disk once more, read-only: SQLite keeps files open, and then it can't be remounted as it is.
    again = tmp_path / "again"
    again.mkdir()
    subprocess.run(["mount", "--bind", small_disk, again], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", again], check=True)
    monkeypatch.setenv("KEPTLOG_HOME", str(again / "home"))
    [read_only] = checks_of(keptlog, 1)["disk"]["problems"]
    assert "can't be written to" in read_only["what"]
    assert "this user" not in str(read_only)
    assert read_only["command"] is None
    subprocess.run(["umount", "--lazy", again], check=True)


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1", "spark://127.0.0.1:1", "file:/nowhere/spark-address"])
def test_a_spark_that_is_down_is_told_as_down_and_not_as_a_wrong_setting_or_a_missing_library(
    keptlog: Run, broken: Patched, address: str
) -> None:
    broken.set("KEPTLOG_SPARK_MASTER", address)
    [found] = [each for check in checks_of(keptlog, 1).values() for each in check["problems"]]
    assert found["cause"].startswith("the Spark server or cluster is down, or was never started")
    assert found["todo"].startswith("do what it says; ")


def test_an_address_that_is_none_of_sparks_is_told_as_a_setting(keptlog: Run, broken: Patched) -> None:
    broken.set("KEPTLOG_SPARK_MASTER", "bla")
    [found] = checks_of(keptlog, 1)["spark"]["problems"]
    assert "a setting of it is wrong" in found["cause"]


@pytest.mark.parametrize(
    ("name", "text", "mended"), [("segment.ms", "bogus", "3600000"), ("cleanup.policy", "tidy", "compact")]
)
def test_a_value_that_a_setting_can_not_have_is_told_with_the_command_that_gives_it_another(
    keptlog: Run, broken: Patched, name: str, text: str, mended: str
) -> None:
    table_of(broken.home).transaction().set_properties({f"kafka.{name}": text}).commit_transaction()
    refused = keptlog("explain", f"{TOPIC}-0")
    assert refused.code == 2
    command = f"keptlog topic alter {TOPIC} --config {name}=VALUE"
    assert f"{name}={text!r} " in refused.err
    assert f"({command})" in refused.err
    assert "upgrade" in refused.err
    [found] = checks_of(keptlog, 1)["topics"]["problems"]
    assert (found["todo"], found["command"]) == ("do what it says", None)
    assert command in found["what"]
    carry_out(keptlog, broken, command.replace("VALUE", mended))
    checks_of(keptlog, 0)


def test_a_configured_catalog_that_is_out_of_reach_sends_nobody_to_the_home(keptlog: Run, broken: Patched) -> None:
    broken.set("PYICEBERG_CATALOG__KEPTLOG__URI", "http://127.0.0.1:1")
    [found] = checks_of(keptlog, 1)["home"]["problems"]
    assert found["what"].startswith("the configured catalog 'keptlog' can't be opened")
    assert "its database or server is down" in found["cause"]
    assert found["todo"] == "start it or put it back, or correct the configuration"


def test_a_table_that_another_program_has_made_sends_nobody_to_a_copy_of_the_storage(
    keptlog: Run, broken: Patched
) -> None:
    foreign_table(store_at(broken.home), TOPIC)
    [found] = checks_of(keptlog, 1)["topics"]["problems"]
    assert "keptlog did not create it; move it elsewhere" in found["what"]
    assert (found["cause"], found["todo"]) == ("another program has made its table, or changed it", "do what it says")


@pytest.mark.parametrize(
    "name", ["log.p0.log-end-offset", "log.p0.truncations", "keptlog.format-version", "log.partitions"]
)
def test_a_property_that_is_wrong_sends_nobody_to_a_copy_of_the_storage(
    keptlog: Run, broken: Patched, name: str
) -> None:
    table_of(broken.home).transaction().set_properties({name: "many"}).commit_transaction()
    [found] = checks_of(keptlog, 1)["topics"]["problems"]
    assert f"{name}='many'" in found["what"]
    assert (found["cause"], found["todo"]) == ("another program has changed a property of its table", "do what it says")
