"""``explain`` and ``status`` know what a clean would fail of before one is tried, and what keeps one from a try."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.passes.stored_files import room_text
from tests.cli.conftest import Run
from tests.storage_errors import unlisted

OLD_MS = 1_700_000_000_000


@pytest.fixture
def due(home: Path) -> Path:
    """The first segment of a log that is due."""
    store = open_home(home).store
    store.create_topic("users", 2, {"cleanup.policy": "compact", "segment.ms": "1000"})
    for number in range(2):
        store.append("users", [NewRecord(b"a", b"1", OLD_MS, 0)], f"append-{number}", OLD_MS)
    return Path(store.logs("users")[0].segments[0].path.removeprefix("file://"))


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize(
    ("breaks", "said"), [(_truncate, "has 100 bytes, not"), (Path.unlink, "is missing from storage though the table")]
)
def test_a_broken_file_is_named_by_every_command_that_needs_it(
    keptlog: Run, due: Path, breaks: Callable[[Path], None], said: str
) -> None:
    breaks(due)
    for command in ("explain users 0", "status", "read users", "restore users --to jsonl -", "verify users-0"):
        outcome = keptlog(*command.split())
        assert outcome.code == 1, command
        assert due.name in outcome.out + outcome.err, command
        assert said in outcome.out + outcome.err, command
        assert len(outcome.err.splitlines()) == (0 if "verify" in command else 1), command
    explained = keptlog("explain", "users", "0", "--json")
    assert (explained.code, explained.json["due"]) == (1, "now, but a clean would fail")
    assert [said in each for each in explained.json["obstacles"]] == [True]
    assert list(keptlog("status", "--json").json["damaged"]) == ["users-0"]
    assert keptlog("explain", "users", "1").code == 0
    assert keptlog("status", "users-1").code == 0


def test_files_in_a_folder_that_can_not_be_listed_are_not_looked_at(
    keptlog: Run, due: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlisted(monkeypatch, due.parent.name)
    explained = keptlog("explain", "users", "0")
    assert "is missing from storage" not in explained.out + explained.err
    assert "files of the log were not looked at: " in explained.out
    document = keptlog("explain", "users", "0", "--json").json
    assert document["obstacles"] == []
    assert str(due.parent) in document["files_not_looked_at"][0]
    checked = keptlog("verify", "users-0", "--json")
    results = {row["check"]: row["result"] for row in checked.json["checks"]}
    assert (checked.code, results["G8"]) == (1, "not looked at")


def test_what_could_not_be_read_is_not_ok(keptlog: Run, due: Path) -> None:
    _truncate(due)
    results = {row["check"]: row["result"] for row in keptlog("verify", "users-0", "--json").json["checks"]}
    assert results["G1"] == "BROKEN"
    assert {results[name] for name in ("G2", "G3", "G4", "G5")} == {"not looked at"}


def test_a_cleaner_that_is_switched_off_is_said_to_be(keptlog: Run, due: Path, home: Path) -> None:
    assert keptlog("explain", "users", "0").out.startswith("users-0: to be cleaned now")
    (home / "server.properties").write_text("log.cleaner.enable=false\n")
    off = "log.cleaner.enable=false in the broker settings: this machine cleans and retains no compacted log"
    explained = keptlog("explain", "users", "0", "--json")
    assert (explained.code, explained.json["verdict"]) == (0, f"left alone: {off}")
    assert explained.json["due"] == "when log.cleaner.enable=true is in the broker settings"
    assert f"\n{off}\n" in keptlog("status").out
    assert keptlog("status", "--json").json["cleaner_disabled"] == off


def test_a_disk_without_room_for_the_clean_is_said_with_what_is_needed(
    keptlog: Run, due: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.disk_usage(due.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: real._replace(free=1))
    explained = keptlog("explain", "users", "0")
    assert explained.code == 1
    assert f"users-0: the disk of {due.parent} has 1 B left, and a clean may write up to" in explained.err
    assert "due: now, but a clean would fail" in explained.out
    assert (
        room_text("t-0", "there", 1, 2)
        == "t-0: the disk of there has 1 B left, and a clean may write up to 2 B: make room"
    )
