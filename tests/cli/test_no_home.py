"""A home that is not there, or has lost its catalog: whoever looks is told so, and nothing is made in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run

LOOKING = [
    *("status", "topic list", "plan", "verify", "clean", "expire", "retain", "purge", "explain users 0"),
    *("topic export", "reader list", "erasure list", "erasure show r1", "erasure verify"),
    *("receipt list", "receipt show 1", "receipt verify"),
]
NAMING = ["read users", "files users", "history users", "topic describe users", "topic delete users", "repair users"]
"""Of these the topic is unknown, and why is the home."""
NOT_THERE, LOST = 2, 1


def _nothing(_home: Path) -> None:
    pass


def _file(home: Path) -> None:
    home.write_text("no folder")


def _settings_alone(home: Path) -> None:
    home.mkdir()
    (home / "server.properties").write_text("log.cleaner.threads=2\n")


def _topic(home: Path) -> Path:
    open_home(home).create_topic("users", 1, {"cleanup.policy": "compact"})
    return home / "catalog.db"


def _folder_for_the_catalog(home: Path) -> None:
    """As a container engine makes one, if it is to bind a file that is not there."""
    _topic(home).unlink()
    (home / "catalog.db").mkdir()


@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [
        pytest.param(_nothing, NOT_THERE, "there is no home at {home};", id="it is not there"),
        pytest.param(Path.mkdir, NOT_THERE, "home {home} is an empty folder:", id="its disk is not mounted"),
        pytest.param(_settings_alone, NOT_THERE, "home {home} has no catalog:", id="it has nothing but settings"),
        pytest.param(_file, NOT_THERE, "home {home} is a file, and a home is a folder:", id="it is a file"),
        pytest.param(
            lambda home: _topic(home).unlink(),
            LOST,
            "home {home} has lost its catalog: {home}/catalog.db is not there, and the files of 1 topic are (users):",
            id="its catalog is gone",
        ),
        pytest.param(
            lambda home: _topic(home).write_bytes(b""),
            LOST,
            "home {home} has lost its catalog: {home}/catalog.db is empty,",
            id="its catalog is empty",
        ),
        pytest.param(
            _folder_for_the_catalog,
            LOST,
            "home {home} has lost its catalog: {home}/catalog.db is a folder,",
            id="a folder is in the place of its catalog",
        ),
        pytest.param(
            lambda home: _topic(home).write_bytes(b"no database" * 1000),
            LOST,
            "home {home} can't be opened: its catalog {home}/catalog.db is damaged",
            id="its catalog is damaged",
        ),
    ],
)
def test_who_looks_is_told_and_nothing_is_changed(
    keptlog: Run, home: Path, broken: Callable[[Path], object], code: int, said: str
) -> None:
    broken(home)
    before = _content(home.parent)
    for command in [*LOOKING, *NAMING] if code == LOST else [*LOOKING, *NAMING, "status --json"]:
        told = keptlog(*command.split())
        # With --json the error is a document on stdout too.
        answered = told.json.keys() if "--json" in command else told.out
        assert told.code == code, command
        assert answered == ({"schema_version", "errors"} if "--json" in command else ""), command
        assert told.err.startswith(f"keptlog: {said.format(home=home)}"), command
        assert len(told.err.splitlines()) == 1, command
    assert _content(home.parent) == before


def _pages_of_the_schema(database: Path) -> None:
    _overwrite(database, 1, 9)


def _page_of_one_table(database: Path) -> None:
    _overwrite(database, 1, 1)


def _overwrite(database: Path, first: int, pages: int) -> None:
    content = bytearray(database.read_bytes())
    content[first * 4096 : (first + pages) * 4096] = b"\xff" * len(content[first * 4096 : (first + pages) * 4096])
    database.write_bytes(content)


@pytest.mark.parametrize(
    "broken", [Path.unlink, lambda path: path.write_bytes(b""), _pages_of_the_schema, _page_of_one_table]
)
def test_a_program_is_not_told_to_try_again_where_the_catalog_is_to_be_put_back(
    keptlog: Run, home: Path, broken: Callable[[Path], object]
) -> None:
    broken(_topic(home))
    told = keptlog("topic", "list", "--json")
    [error] = told.json["errors"]
    assert (told.code, error["kind"], error["action"]) == (1, "StorageUnavailable", "fix_data")
    assert "put it back from a backup" in error["message"]
    doctor = keptlog("doctor").out
    assert "from a copy" in doctor or "put back what is missing" in doctor
    assert "put nothing back" not in doctor


def test_people_are_told_of_a_catalog_that_is_lost(keptlog: Run, home: Path) -> None:
    _topic(home).unlink()
    told = keptlog("notify", "--dry-run", "--json")
    assert told.code == 1
    [condition] = told.json["conditions"]
    assert condition["condition"] == "catalog"
    assert "has lost its catalog" in condition["text"]


def test_no_second_catalog_is_begun_above_the_files_of_the_first(keptlog: Run, home: Path) -> None:
    _topic(home).unlink()
    refused = keptlog("topic", "create", "orders")
    assert refused.code == 1
    assert "has lost its catalog" in refused.err
    assert not (home / "catalog.db").exists()


def test_where_a_folder_is_in_the_place_of_the_catalog_nothing_is_appended_or_made_and_that_is_told(
    keptlog: Run, home: Path, tmp_path: Path
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text('{"key": "a", "value": "1"}\n')
    _folder_for_the_catalog(home)
    for command in (f"append users --file {records}", "topic create orders", "purge users"):
        told = keptlog(*command.split())
        assert (told.code, told.out) == (1, ""), command
        assert told.err.startswith(f"keptlog: home {home} has lost its catalog: {home}/catalog.db is a folder,"), (
            command
        )


def test_a_new_home_with_a_folder_in_the_place_of_its_catalog_says_so(keptlog: Run, home: Path) -> None:
    (home / "catalog.db").mkdir(parents=True)
    told = keptlog("topic", "create", "orders")
    assert told.code == 2
    assert told.err == (
        f"keptlog: home {home} can't be opened: {home}/catalog.db is a folder, and a catalog is a file: move it away, "
        "or set KEPTLOG_HOME to the home that you mean\n"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "s3://bucket/home",
            "home s3://bucket/home is an address, and a home is a folder of this machine:",
        ),
        ("file:///data/home", "give the path alone: /data/home"),
        ("~nobody-is-called-so/home", "begins with the home folder of a user whom this machine does not know"),
    ],
)
def test_what_is_no_path_is_refused(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", given)
    for command in ("status", "topic create users", "doctor", "notify --dry-run"):
        refused = keptlog(*command.split())
        assert (refused.code, refused.out) == (2, ""), command
        assert said in refused.err, command
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["~", "what? 100% (a#b&c=d;e)", "[x]*{y} 'so' %2F%20 ü"])
def test_a_home_may_be_called_anything(
    keptlog: Run, lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / name / "home"))
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"})).code == 0
    for command in ("status", "verify", "purge", "topic list"):
        told = keptlog(*command.split())
        assert (told.code, told.err) == (0, ""), command
    [record] = keptlog("read", "users", "--json").json_lines
    assert record["value"] == "1"
    assert [each.name for each in tmp_path.iterdir() if each.name != "records.jsonl"] == [name]


def test_a_home_below_the_users_own_folder(keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEPTLOG_HOME", "~/changelogs")
    assert keptlog("topic", "create", "users").code == 0
    assert (tmp_path / "changelogs" / "catalog.db").is_file()


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("is_absolute", [True, False])
@pytest.mark.parametrize("command", ["status", "topic list", "explain users", "clean users"])
def test_the_folder_in_which_it_was_called_is_gone(
    home: Path, tmp_path: Path, command: str, *, is_absolute: bool
) -> None:
    _topic(home)
    environment = os.environ | {"KEPTLOG_HOME": str(home) if is_absolute else "./home"}
    shell = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" -m keptlog "$@"'
    done = subprocess.run(
        ["bash", "-c", shell, sys.executable, *command.split()],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "keptlog: the folder in which this was called is gone; change to another one\n"
