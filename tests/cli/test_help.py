"""What somebody types who does not know the command by heart: nothing, a wrong name, half a name, a log for a topic."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from keptlog.cli import _ELSEWHERE, cli
from keptlog.cli.completion import SHELLS
from keptlog.cli.output import EXIT_BAD_INPUT, EXIT_FAILED
from keptlog.home import open_home
from keptlog.interrupted import EXIT_STOPPED
from keptlog.log.record import NewRecord
from keptlog.passes.observer import observe
from tests.cli.conftest import Run
from tests.readme.page import ROOT

Complete = Callable[..., list[str]]


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


@pytest.fixture
def topics(home: Path) -> Path:
    """Two topics, one of them with a hyphen and a number in its name, and three logs."""
    store = open_home().store
    for name, partitions in (("users", 2), ("events-7", 1)):
        store.create_topic(name, partitions, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"%d" % p, 1_700_000_000_000, p) for p in (0, 1)], "r", 1_700_000_000_000)
    return home


@pytest.mark.parametrize("place", ["docs/commands.md", "docs/json.md", "keptlog --help"])
def test_wherever_the_exit_codes_are_listed_all_of_them_are(keptlog: Run, place: str) -> None:
    told = keptlog("--help").out if place == "keptlog --help" else (ROOT / place).read_text(encoding="utf-8")
    [listed] = [
        " ".join(each.split()) for each in told.split("\n\n") if re.search("[Ee]xit codes? .*0", each, re.DOTALL)
    ]
    codes = (0, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_STOPPED)
    assert [code for code in codes if not re.search(rf"\b{code}\b", listed)] == []


@pytest.mark.parametrize(
    "group", [[], ["topic"], ["reader"], ["receipt"], ["erasure"], ["ingest"], ["import"], ["metrics"]]
)
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
    ],
)
def test_a_wrong_command_brings_the_one_that_may_be_meant(keptlog: Run, typed: list[str], meant: str) -> None:
    refused = keptlog(*typed)
    assert refused.code == 2
    assert f"did you mean {meant}?" in refused.err
    assert refused.err.count("\n") == 1


def test_what_is_looked_for_elsewhere_is_there() -> None:
    context = click.Context(cli)
    for path in _ELSEWHERE.values():
        group = cli.get_command(context, path.split()[0])
        assert isinstance(group, click.Group)
        assert path.split()[1] in group.list_commands(context)


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


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What the Tab key shows behind these words, as the script of a shell asks for it."""

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["keptlog", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_KEPTLOG_COMPLETE", "bash_complete")
        with pytest.raises(SystemExit):
            cli.main(args=[], prog_name="keptlog")
        return [line.partition(",")[2] for line in capsys.readouterr().out.split()]

    return ask


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["stat"], ["status"]),
        (["topic", "desc"], ["describe"]),
        (["topic", "describe", "u"], ["users"]),
        (["explain", "e"], ["events-7"]),
        (["explain", "users-"], ["users-0", "users-1"]),
        (["clean", "users", "users-1"], ["users-1"]),
        (["delete-records", "users-1"], ["users-1"]),
        (["topic", "create", "a", "--config", "max.c"], ["max.compaction.lag.ms="]),
        (["read", "nobody"], []),
    ],
)
def test_a_shell_completes_commands_topics_logs_and_settings(
    topics: Path, complete: Complete, words: list[str], shown: list[str]
) -> None:
    observe(open_home(topics).store, now_ms=1_700_000_000_000)
    assert complete(*words) == shown


def test_a_home_that_is_not_there_completes_to_nothing(home: Path, complete: Complete) -> None:
    assert complete("explain", "u") == []
    assert not home.exists()


def test_completing_topics_opens_no_catalog(topics: Path) -> None:
    code = (
        "import sys\nfrom keptlog.cli.completion import topics\nprint(topics('u'))\n"
        "print([name for name in ('pyarrow', 'pyiceberg', 'sqlalchemy', 'pyspark', 'pandas') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "['users']\n[]\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_for_each_shell_asks_this_command(keptlog: Run, shell: str) -> None:
    told = keptlog("completion", shell)
    assert told.code == 0
    assert f"_KEPTLOG_COMPLETE={shell}_complete" in told.out
