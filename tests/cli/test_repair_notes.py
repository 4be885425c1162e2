"""What a topic notes beside its logs can be written anew: nonsense there hides the topic, and ``repair`` mends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.metadata.state import OPEN_ERASURES, last_pass, read_open_erasures, uncleanable
from tests.cli.conftest import Run
from tests.table.foreign import set_properties

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
    for command in ("status", "plan", "verify"):
        done = keptlog(command)
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
