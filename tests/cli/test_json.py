"""``--json``: every command has a declared form and keeps it; errors are told in it too; docs/json.md shows it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from keptlog.cli import cli
from keptlog.cli.answers import ANSWERS, NO_DOCUMENT, WITHOUT_JSON, ErrorForm
from keptlog.cli.output import SCHEMA_VERSION
from keptlog.errors import Action
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from scripts.json_reference import PAGE, with_reference
from tests.cli.answer_forms import check_answer
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def users(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A topic with two logs, records in one of them, and a reader."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    opened = open_home()
    opened.store.create_topic("users", 2, {"cleanup.policy": "compact"})
    opened.store.append("users", [NewRecord(b"a", b"1", NOW_MS, 0), NewRecord(b"b", None, NOW_MS, 0)], "r", NOW_MS)
    opened.readers.add("users", "search", now_ms=NOW_MS)
    (home.parent / "users.jsonl").write_text('{"key": "a", "value": "2"}\n')
    (home.parent / "topics.yaml").write_text("topics:\n  orders:\n    partitions: 1\n  users:\n    partitions: 2\n")
    return home


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """All commands with their names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def test_every_command_takes_json_and_its_form_is_declared() -> None:
    found = dict(commands(cli))
    with_json = {name for name, each in found.items() if any("--json" in option.opts for option in each.params)}
    assert found.keys() - with_json == WITHOUT_JSON.keys()
    assert with_json == ANSWERS.keys() | NO_DOCUMENT.keys()
    assert not ANSWERS.keys() & NO_DOCUMENT.keys()


def test_the_commands_of_a_home_answer_in_their_form(keptlog: Run, users: Path) -> None:
    """What needs neither Spark nor a broker; the fixture holds each answer against its form."""
    answered = [
        keptlog(*line.split(), "--json")
        for line in (
            "topic list",
            "topic describe users",
            "topic alter users --config segment.ms=5",
            "topic apply topics.yaml --dry-run",
            "topic apply topics.yaml",
            "append users --file users.jsonl",
            "files users",
            "plan",
            "explain users-0",
            "status",
            "verify",
            "retain",
            "delete-records users-0 1 --dry-run",
            "delete-records users-0 1",
            "purge --dry-run",
            "purge",
            "erase --hash --key a",
            "erase users --key a --dry-run",
            "erase users --key a --yes --quiet --run-id r1",
            "erasure list",
            "erasure show r1",
            "reader add users again",
            "reader commit users search 0=1",
            "reader list",
            "reader remove users again",
            "receipt list",
            "receipt verify",
            "receipt export receipts",
            "repair users",
            "restore users --to jsonl out.jsonl",
            "notify --dry-run",
            "spark-pack",
            "topic create more",
            "topic delete more --yes",
        )
    ]
    for each in answered:
        assert each.json["schema_version"] == SCHEMA_VERSION
        assert each.json["errors"] == [], each.err
        assert each.json.keys() > {"schema_version", "errors"}


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOSPC])
def test_what_a_disk_refuses_unexpectedly_is_told_in_the_document_too(
    keptlog: Run, users: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "/disk/file")

    monkeypatch.setattr("keptlog.cli.status.look_at_standings", fails)
    answer = keptlog("status", "--json")
    [error] = answer.json["errors"]
    assert (answer.code, error["kind"], error["message"].partition(";")[0]) == (
        1,
        "OSError",
        f"/disk/file: {os.strerror(number)}",
    )
    assert error["action"] == Action.FIX_STORAGE


@pytest.mark.parametrize(
    ("line", "code", "kind"),
    [
        ("explain nobody 0", 2, "UnknownTopic"),
        ("topic create a/b", 2, "InvalidConfig"),
        ("explain", 2, "UsageError"),
        ("statuss", 2, "UsageError"),
        ("status --colour", 2, "UsageError"),
        ("topic create new --partitions many", 2, "UsageError"),
        ("topic apply --delete", 2, "UsageError"),
        ("append users --file bad.jsonl", 2, "InvalidRecord"),
        ("read nobody", 2, "UnknownTopic"),
    ],
)
def test_an_error_is_a_document_too(keptlog: Run, users: Path, line: str, code: int, kind: str) -> None:
    (users.parent / "bad.jsonl").write_text("{no json\n")
    refused = keptlog(*line.split(), "--json")
    (error,) = refused.json["errors"]
    assert (refused.code, error["kind"], error["subject"]) == (code, kind, None)
    assert refused.err == f"keptlog: {error['message']}\n"
    assert error["action"] in set(Action)
    assert error.keys() == typing.get_type_hints(ErrorForm).keys()
    assert refused.json.keys() == {"schema_version", "errors"}
    assert keptlog(*line.split()).out == ""


@pytest.mark.parametrize(("line", "code"), [("explain nobody 0", 2), ("topic list", 1)])
def test_where_stdout_takes_nothing_one_line_on_stderr_says_what_was_wrong(users: Path, line: str, code: int) -> None:
    command = [sys.executable, "-m", "keptlog", *line.split(), "--json"]
    with Path("/dev/full").open("wb") as full:  # always there, always full
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == code
    assert len([line for line in told.stderr.splitlines() if "KEPTLOG_NOW_MS" not in line]) == 1, told.stderr


def test_what_can_not_be_read_is_told_beside_the_answer(keptlog: Run, users: Path) -> None:
    store = open_home().store
    store.create_topic("odd", 1, {})
    store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    for line in ("status", "plan", "verify", "reader list"):
        told = keptlog(*line.split(), "--json")
        assert [(each["subject"], each["kind"]) for each in told.json["errors"]] == [("odd", "LogCorrupt")], line
        assert told.code == 1
        assert "users" in json.dumps({name: told.json[name] for name in told.json if name != "errors"})


def test_a_form_refuses_what_it_does_not_declare() -> None:
    fine = {"schema_version": 1, "topic": "t", "partitions": 1, "location": "here", "errors": []}
    check_answer(["topic", "create"], "", fine)
    for wrong in (fine | {"partitions": "1"}, fine | {"more": 1}, {**fine, "location": None}):
        with pytest.raises(AssertionError, match="topic create --json"):
            check_answer(["topic", "create"], "", wrong)


def test_the_page_shows_the_forms_as_they_are() -> None:
    page = PAGE.read_text()
    assert page == with_reference(page), "python -m scripts.json_reference writes it anew"
