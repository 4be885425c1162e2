"""What somebody types who does not know the command by heart: nothing, a wrong name, half a name, a log for a topic."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from keptlog.cli import _COMMANDS, _ELSEWHERE, _SECTIONS, cli
from keptlog.cli.output import EXIT_BAD_INPUT, EXIT_FAILED
from keptlog.cli.topics import topic
from keptlog.home import open_home
from keptlog.interrupted import EXIT_STOPPED
from tests.cli.conftest import Run
from tests.readme.page import ROOT

GROUPS: list[list[str]] = [
    [],
    ["topic"],
    ["reader"],
    ["receipt"],
    ["erasure"],
    ["ingest"],
    ["import"],
    ["metrics"],
]
_MANY = "1" * 5_000
LONG_NUMBERS = (
    ["read", f"users-{_MANY}"],
    ["files", f"users-{_MANY}"],
    ["explain", f"users-{_MANY}"],
    ["explain", "users", _MANY],
    ["delete-records", f"users-{_MANY}", "1", "--yes"],
    ["delete-records", "users", _MANY, "1", "--yes"],
    ["truncate", f"users-{_MANY}", "1", "--yes"],
    ["reader", "commit", "users", "me", f"{_MANY}=1"],
    ["reader", "commit", "users", "me", f"0={_MANY}"],
)
"""Python itself refuses to make a number of so many digits."""


@pytest.mark.parametrize("place", ["docs/commands.md", "docs/json.md", "keptlog --help"])
def test_wherever_the_exit_codes_are_listed_all_of_them_are(keptlog: Run, place: str) -> None:
    told = keptlog("--help").out if place == "keptlog --help" else (ROOT / place).read_text(encoding="utf-8")
    [listed] = [
        " ".join(each.split()) for each in told.split("\n\n") if re.search("[Ee]xit codes? .*0", each, re.DOTALL)
    ]
    codes = (0, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_STOPPED)
    assert [code for code in codes if not re.search(rf"\b{code}\b", listed)] == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_bare_group_prints_its_help(keptlog: Run, group: list[str]) -> None:
    bare = keptlog(*group)
    assert (bare.code, bare.err) == (0, "")
    assert bare.out == keptlog(*group, "--help").out
    assert "Commands:" in bare.out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["staus"], "keptlog status"),
        (["topics"], "keptlog topic"),
        (["topic", "lst"], "keptlog topic list"),
        (["erasure", "verfy"], "keptlog erasure verify"),
        (["list"], "keptlog topic list"),
        (["create", "users"], "keptlog topic create"),
        (["compact", "users"], "keptlog clean"),
        (["ls"], "keptlog topic list"),
        (["topic", "show", "users"], "keptlog topic describe"),
        (["help", "staus"], "keptlog status"),
    ],
)
def test_a_wrong_command_brings_the_one_that_may_be_meant(keptlog: Run, typed: list[str], meant: str) -> None:
    refused = keptlog(*typed)
    assert refused.code == 2
    assert f"did you mean {meant}?" in refused.err
    assert refused.err.count("\n") == 1


def test_what_is_looked_for_elsewhere_is_there() -> None:
    context = click.Context(cli)
    for path in (*_ELSEWHERE.values(), *(f"topic {name}" for name in topic.elsewhere.values())):
        command: click.Command | None = cli
        for name in path.split():
            assert isinstance(command, click.Group)
            command = command.get_command(context, name)
        assert command, path


def test_every_command_is_in_one_section_of_the_help() -> None:
    assert sorted(name for names in _SECTIONS.values() for name in names) == sorted(_COMMANDS)


@pytest.mark.parametrize("group", GROUPS)
def test_no_line_of_a_help_is_cut_off_at_80_columns(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch, group: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, _, commands = keptlog(*group, "--help").out.partition("Commands:\n")
    lines = [line for line in commands.splitlines() if line and not line.endswith(":")]
    assert len(lines) == len(cli.list_commands(click.Context(cli))) or group
    assert [line for line in lines if line.endswith("...") or line.startswith("      ")] == []


@pytest.mark.parametrize("path", [[], ["clean"], ["topic"], ["topic", "create"]])
def test_help_is_a_command_too(keptlog: Run, path: list[str]) -> None:
    assert keptlog("help", *path).out == keptlog(*path, "--help").out != ""


@pytest.mark.parametrize("command", ["clean", "expire"])
def test_who_wants_a_clean_only_told_is_sent_to_plan(keptlog: Run, command: str) -> None:
    refused = keptlog(command, "--dry-run")
    assert refused.code == 2
    assert "keptlog plan says what" in refused.err
    assert "keptlog plan" in keptlog("clean", "--help").out


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["topic", "describe", "user"], "there is no topic 'user': did you mean users?"),
        (["append", "usrs", "--file", __file__], "did you mean users?"),
        (["reader", "add", "usres", "me"], "did you mean users?"),
        (["explain", "usrs-1"], "did you mean users-1?"),
        (["status", "nobody"], "see keptlog topic list"),
        (["topic", "describe", "users-0"], "a whole topic is meant here, and it looks like a log of users"),
        (["purge", "users-0"], "a whole topic is meant here"),
        (["explain", "users-2"], "there is no topic-partition 'users-2': those of users are users-0 to users-1"),
        (["read", "users-2"], "there is no topic-partition 'users-2': those of users are users-0 to users-1"),
        (["files", "users-2"], "there is no topic-partition 'users-2': those of users are users-0 to users-1"),
        (["restore", "users-2", "--to", "jsonl", "-"], "those of users are users-0 to users-1"),
        (["read", "users-01"], "those of users are users-0 to users-1"),
        (["status", "users--1"], "did you mean users-1?"),
        (["status", "users--7"], "there is no topic or topic-partition 'users--7': did you mean users?"),
        (["explain", "events-7-7"], "events-7 has only events-7-0"),
        *((command, "keptlog: ") for command in LONG_NUMBERS),
        (["explain", "users"], "users has 2 logs: name one of users-0 to users-1"),
        (["read", "users-0", "--partition", "1"], "leave one of them out"),
    ],
)
def test_a_wrong_topic_or_log_is_told_in_one_line(keptlog: Run, topics: Path, typed: list[str], told: str) -> None:
    refused = keptlog(*typed)
    assert refused.code == 2
    assert told in refused.err
    assert refused.err.count("\n") == 1


def test_a_log_that_may_have_been_meant_is_one_that_is_there(keptlog: Run, topics: Path) -> None:
    """``users-0`` is more like ``users-`` than ``users`` is, and has no log of this number."""
    open_home().store.create_topic("users-0", 1, {})
    told = "keptlog: there is no topic or topic-partition 'users--1': did you mean users-1?\n"
    assert keptlog("status", "users--1").err == told


def test_a_log_is_named_in_one_word_wherever_one_is_meant(keptlog: Run, topics: Path, tmp_path: Path) -> None:
    assert keptlog("explain", "users-1").out == keptlog("explain", "users", "1").out
    assert keptlog("explain", "events-7").out.startswith("events-7-0: ")
    assert keptlog("read", "users-1").out == keptlog("read", "users", "--partition", "1").out != ""
    assert "/partition=1/" in keptlog("files", "users-1").out
    assert "/partition=0/" not in keptlog("files", "users-1").out
    restored = tmp_path / "log.jsonl"
    assert keptlog("restore", "users-1", "--to", "jsonl", str(restored)).code == 0
    assert restored.read_text() == keptlog("read", "users-1").out
    assert keptlog("delete-records", "users-1", "1").out.startswith("users-1 begins at offset 1 now")
    assert keptlog("delete-records", "events-7-0", "--", "-1").out.startswith("events-7-0 begins at offset 0 now")
