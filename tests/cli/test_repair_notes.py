"""What a topic notes beside its logs can be written anew: nonsense there hides the topic, and ``repair`` mends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.metadata.state import (
    CONDEMNED,
    ERASURES,
    OPEN_ERASURES,
    SNAPSHOT_ID,
    as_of,
    last_pass,
    leader_epoch,
    read_open_erasures,
    uncleanable,
)
from keptlog.table.removal.journal import DeletedFile, Journal, write_journal
from tests.cli.conftest import Run
from tests.table.foreign import current_id, roll_back, set_properties

_NAMES = (last_pass(0), uncleanable(0), OPEN_ERASURES)
_DOES = "keptlog repair users does that"


@pytest.fixture(autouse=True)
def _users(keptlog: Run, lines: Callable[..., str]) -> None:
    """Two topics with an open erasure each."""
    for topic in ("orders", "users"):
        keptlog("topic", "create", topic, "--config", "cleanup.policy=compact")
        keptlog("append", topic, "--file", lines({"key": "a", "value": "1"}))
        keptlog("erase", topic, "--key", "a", "--yes")


def _properties(home: Path) -> dict[str, str]:
    return dict(open_home(home).store.load_table("users").properties)


@pytest.mark.parametrize("name", _NAMES)
def test_whoever_looks_at_all_topics_names_the_command_and_tells_the_others(
    keptlog: Run, home: Path, name: str
) -> None:
    set_properties(home, {name: '{"count":"x"}'}, "users")
    for command in ("status", "plan", "verify --full"):
        done = keptlog(*command.split())
        assert (done.code, f"property {name}=" in done.err, _DOES in done.err) == (1, True, True), command
        assert "orders" in done.out or command == "plan"


@pytest.mark.parametrize("name", _NAMES)
def test_doctor_calls_it_a_problem_of_that_topic_alone_and_gives_the_command(
    keptlog: Run, home: Path, name: str
) -> None:
    set_properties(home, {name: "nonsense"}, "users")
    topics = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "topics")
    (problem,) = topics["problems"]
    assert (problem["subject"], problem["command"]) == ("users", "keptlog repair users")
    assert name in problem["what"]


@pytest.mark.parametrize("name", _NAMES)
def test_a_repair_writes_it_anew_and_the_topic_is_as_before(keptlog: Run, home: Path, name: str) -> None:
    before = read_open_erasures("users", _properties(home))
    records = keptlog("read", "users").out
    set_properties(home, {name: "nonsense"}, "users")

    shown = keptlog("repair", "users", "--dry-run")
    assert (shown.code, f"to be written anew: property {name}" in shown.out) == (0, True)
    assert _properties(home)[name] == "nonsense"
    told = keptlog("repair", "users", "--json").json

    assert (told["is_repaired"], told["happened"], told["notes"], told["broken"]) == (True, None, [name], [])
    assert keptlog("status").code == 0
    assert keptlog("doctor").out.endswith(": 0 problems\n")
    now = read_open_erasures("users", _properties(home))
    assert (now.count, now.needs, now.deadlines) == (before.count, before.needs, before.deadlines)
    assert keptlog("read", "users").out == records
    assert keptlog("repair", "users", "--json").json["notes"] == []


def test_a_program_mends_it_by_the_same_call(keptlog: Run, home: Path) -> None:
    set_properties(home, dict.fromkeys(_NAMES, "nonsense"), "users")
    assert open_home(home).repair("users") is None
    assert keptlog("status").code == 0


def test_several_are_mended_at_once(keptlog: Run, home: Path) -> None:
    set_properties(home, dict.fromkeys(_NAMES, "nonsense"), "users")
    done = keptlog("repair", "users")
    assert (done.code, done.out.count("written anew: property log.")) == (0, 3)
    assert keptlog("status").code == 0


def test_erasures_that_cannot_be_read_are_not_counted_as_none(keptlog: Run, home: Path) -> None:
    set_properties(home, {OPEN_ERASURES: "nonsense"}, "users")
    (register,) = (home / "warehouse/keptlog/users").rglob("erasures/*.json")
    register.unlink()
    done = keptlog("repair", "users")
    assert (done.code, str(register) in done.err) == (1, True)
    assert _properties(home)[OPEN_ERASURES] == "nonsense"


_BEFORE_WRITES = (CONDEMNED, SNAPSHOT_ID)


@pytest.mark.parametrize("name", _BEFORE_WRITES)
def test_who_writes_names_the_command_that_mends_what_only_writers_read(
    keptlog: Run, lines: Callable[..., str], home: Path, name: str
) -> None:
    set_properties(home, {name: "nonsense"}, "users")
    done = keptlog("append", "users", "--file", lines({"key": "b", "value": "1"}))
    assert (done.code, f"property {name}=" in done.err, _DOES in done.err) == (1, True, True)
    topics = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "topics")
    assert [(each["subject"], each["command"]) for each in topics["problems"]] == [("users", "keptlog repair users")]

    shown = keptlog("repair", "users", "--dry-run")
    assert (shown.code, f"to be written anew: property {name}" in shown.out) == (0, True)
    assert _properties(home)[name] == "nonsense"
    told = keptlog("repair", "users", "--json").json

    assert (told["is_repaired"], told["happened"], told["notes"], told["broken"]) == (True, None, [name], [])
    assert keptlog("append", "users", "--file", lines({"key": "b", "value": "1"})).code == 0
    assert keptlog("doctor").out.endswith(": 0 problems\n")


@pytest.mark.parametrize("name", [leader_epoch(0), as_of(0)])
def test_what_is_noted_of_a_position_is_written_anew(keptlog: Run, home: Path, name: str) -> None:
    set_properties(home, {name: "7"}, "users")
    assert keptlog("repair", "users", "--json").json["notes"] == [name]
    assert _properties(home)[name] == ""


def test_a_rollback_is_repaired_although_the_snapshot_before_it_is_nonsense(
    keptlog: Run, lines: Callable[..., str], home: Path
) -> None:
    before = current_id(home, "users")
    keptlog("append", "users", "--file", lines({"key": "b", "value": "1"}))
    records = keptlog("read", "users").out
    roll_back(home, before, "users")
    set_properties(home, {SNAPSHOT_ID: "nonsense"}, "users")

    done = keptlog("repair", "users")

    assert (done.code, f"written anew: property {SNAPSHOT_ID}" in done.out, "rolled back" in done.out) == (
        0,
        True,
        True,
    )
    assert keptlog("read", "users").out == records


def test_what_a_sweep_is_about_to_delete_is_condemned_again(keptlog: Run, home: Path) -> None:
    """Whoever has stopped before his commit would land on it."""
    store = open_home(home).store
    folder = f"{store.load_table('users').location()}/metadata/gc/"
    for kind in ("sweep", "expiry"):
        write_journal(store.files, f"{folder}{kind}.json", Journal((), (), (DeletedFile("file:///x", 1),), kind))
    set_properties(home, {CONDEMNED: "nonsense"}, "users")

    assert keptlog("repair", "users").code == 0

    assert _properties(home)[CONDEMNED] == '["sweep.json"]'


def test_what_was_written_anew_before_a_proposal_is_told_in_json(
    keptlog: Run, lines: Callable[..., str], home: Path
) -> None:
    before = current_id(home, "users")
    keptlog("append", "users", "--file", lines({"key": "b", "value": "1"}))
    roll_back(home, before, "users")
    set_properties(home, {SNAPSHOT_ID: "nonsense"}, "users")
    told = keptlog("repair", "users", "--json").json
    assert (told["is_repaired"], told["current_snapshot"], told["notes"]) == (True, before, [SNAPSHOT_ID])


def test_erasures_are_not_counted_as_none_where_the_name_of_their_file_is_gone(keptlog: Run, home: Path) -> None:
    set_properties(home, {OPEN_ERASURES: "nonsense"}, "users")
    set_properties(home, {ERASURES: None}, "users")
    done = keptlog("repair", "users")
    assert (done.code, f"property {ERASURES} is gone" in done.err) == (1, True)
    assert _properties(home)[OPEN_ERASURES] == "nonsense"
