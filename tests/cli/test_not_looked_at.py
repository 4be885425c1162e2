"""What ``keptlog doctor`` and ``keptlog status`` could not look at is said: it is neither fine nor a problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import new_id, open_home
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from tests.cli.conftest import Run

CHECKS, TICKS = "checks.json", "ticks-keptlog.json"


@pytest.fixture
def users(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a topic; other Sparks of this machine are not looked at."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    open_home().store.create_topic("users", 1, {"cleanup.policy": "compact"})
    (home / "notify").mkdir()
    return home


def conditions(keptlog: Run) -> dict[str, Any]:
    told = keptlog("doctor", "--no-probes", "--json")
    assert told.code == 1, told.out
    [check] = [each for each in told.json["checks"] if each["name"] == "conditions"]
    assert isinstance(check, dict)
    return check


def _damaged(name: str) -> Callable[[Path], object]:
    return lambda home: (home / "notify" / name).write_text("garbage")


def _nested(name: str) -> Callable[[Path], object]:
    """More deeply than Python reads."""
    return lambda home: (home / "notify" / name).write_text("[" * 100_000)


def _a_folder(name: str) -> Callable[[Path], object]:
    return lambda home: (home / "notify" / name).mkdir()


def _no_client_settings(home: Path) -> None:
    """For the broker that the topic comes from."""
    source = SourceIdentity("users", bootstrap="127.0.0.1:1")
    open_home().store.ingest("users", [Arrival(OffsetRange(0, None, 0, 1), ())], source, 1, new_id())
    (home / "kafka.properties").write_text("no such line\n")


@pytest.mark.parametrize(
    ("break_home", "said"),
    [
        pytest.param(_damaged(CHECKS), "{home}/notify/checks.json: it is damaged; delete it", id="damaged findings"),
        pytest.param(_nested(CHECKS), "{home}/notify/checks.json: it is damaged; delete it", id="nested findings"),
        pytest.param(_nested(TICKS), "{home}/notify/ticks-keptlog.json is damaged", id="nested ticks"),
        pytest.param(_a_folder(CHECKS), "{home}/notify/checks.json: it can't be read (", id="unreadable findings"),
        pytest.param(_damaged(TICKS), "{home}/notify/ticks-keptlog.json is damaged", id="damaged ticks"),
        pytest.param(_a_folder(TICKS), "{home}/notify/ticks-keptlog.json can't be read (", id="unreadable ticks"),
        pytest.param(_no_client_settings, "whether ingests are stopped is not known: ", id="a broker nobody can ask"),
    ],
)
def test_doctor_says_what_of_the_conditions_it_could_not_look_at(
    keptlog: Run, users: Path, break_home: Callable[[Path], object], said: str
) -> None:
    break_home(users)
    check = conditions(keptlog)
    assert (check["diagnosis"], check["problems"]) == ("not looked at", [])
    [why] = check["not_looked_at"]
    assert why.startswith(said.format(home=users))
    told = keptlog("doctor", "--no-probes").out
    assert f"not looked at: conditions: {why}\n" in told
    [fine] = [line for line in told.splitlines() if line.startswith("fine: ")]
    assert "conditions" not in fine


@pytest.mark.parametrize("names", [[], ["users"]])
def test_status_says_that_it_does_not_know_what_verify_has_found(keptlog: Run, users: Path, names: list[str]) -> None:
    file = users / "notify" / CHECKS
    file.write_text("garbage")
    told = keptlog("status", *names, "--json")
    [error] = told.json["errors"]
    assert (told.code, error["subject"], told.json["broken"]) == (1, str(file), {})
    assert error["message"].startswith(f"{file}: it is damaged; delete it, and run keptlog verify")
    for_people = keptlog("status", *names)
    assert (for_people.code, for_people.err) == (1, f"keptlog: {error['message']}\n")
    assert "users-0" in for_people.out


def test_verify_leaves_findings_alone_that_nobody_understands_and_says_so(keptlog: Run, users: Path) -> None:
    file = users / "notify" / CHECKS
    file.write_text("garbage")
    told = keptlog("verify")
    assert (told.code, told.err.count("\n")) == (0, 1)
    assert f"is not remembered for keptlog notify: {file}: it is damaged" in told.err
    assert file.read_text() == "garbage"
