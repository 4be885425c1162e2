"""Tables in a terminal that is narrower than they are."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from keptlog.cli.narrow import fitted
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run
from tests.readme.page import ROOT

_LONG = f"server.{'very.' * 20}long.changelog"
_HEADS = ["topic-partition", "log start", "due"]


def on_a_terminal(width: int, *words: str, **variables: str) -> str:
    """What a command shows on a terminal of this width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = os.environ | {"TERM": "dumb", "KEPTLOG_RESIDENT": "off", "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-m", "keptlog", *words]
    shown = b""
    with subprocess.Popen(command, stdout=its, stderr=its, stdin=subprocess.DEVNULL, env=environment):
        os.close(its)
        try:
            while more := os.read(ours, 10_000):
                shown += more
        except OSError:  # that is how a terminal ends
            pass
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def a_long_and_a_short_topic() -> None:
    store = open_home().store
    for name in (_LONG, "users"):
        store.create_topic(name, 1, {"cleanup.policy": "compact"})
        store.append(name, [NewRecord(b"a", b"1", 1_700_000_000_000, 0)], "r", 1_700_000_000_000)


def test_a_narrow_terminal_has_no_line_of_status_in_two_and_is_told_what_is_missing(keptlog: Run, home: Path) -> None:
    a_long_and_a_short_topic()
    shown = on_a_terminal(80, "status").splitlines()
    assert [line for line in shown if len(line) > 80] == []
    assert shown[0].split()[:2] == ["topic-partition", "cleanable"]
    assert shown[0].endswith("due")
    assert shown[1].startswith("server.very.ve…g.changelog-0")
    assert shown[2].startswith("users-0 ")
    told = "log start, segments, clean, log end, oldest uncompacted: --json and a pipe show all"
    assert " ".join(shown[3:5]).endswith(told), shown


def test_a_narrow_terminal_tells_below_the_table_what_each_erasure_waits_for(
    keptlog: Run, home: Path, lines: Callable[..., str]
) -> None:
    """The rows took two lines each: a terminal broke them in the middle of a column."""
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "x"}))
    ids = ("3f2b8c7e9a1d4e6fb0c5d2a1e8f7c6b4", "ticket-4711")
    for each in ids:
        keptlog("erase", "users", "--key", "a", "--yes", "--run-id", each, "--by", "1h")
    table, below = on_a_terminal(80, "erasure", "list").split("this window is too narrow for ")
    assert [line for line in table.splitlines() if len(line) > 80] == []
    assert table.split("\n")[0].split() == ["id", "topic", "state", "deadline"]
    told = [
        line.split(" in users: waits for segment.ms, until ")[0] for line in below.splitlines() if " in users: " in line
    ]
    assert ", ".join(told) == ", ".join(ids)
    assert " waits for " not in on_a_terminal(200, "erasure", "list").split("\n", 1)[1]


def test_a_wide_terminal_and_a_pipe_have_all_of_it(keptlog: Run, home: Path) -> None:
    a_long_and_a_short_topic()
    piped = keptlog("topic", "list").out
    assert f"{_LONG} " in piped
    assert on_a_terminal(200, "topic", "list") == piped
    assert on_a_terminal(40, "topic", "list", COLUMNS="200") != piped
    assert on_a_terminal(0, "topic", "list") == piped, "nobody knows how wide it is"


def test_names_are_cut_in_the_middle_and_only_as_far_as_they_must() -> None:
    rows = [_HEADS, ["a" * 30 + "-0", "1", "now"], ["b" * 20, "2", "now"]]
    assert fitted(rows, 48, ["log start"]) == (rows, None)
    shown, note = fitted(rows, 46, ["log start"])
    assert shown == [_HEADS, ["a" * 15 + "…" + "a" * 12 + "-0", "1", "now"], ["b" * 20, "2", "now"]]
    assert note == "this window is too narrow for whole names:\n--json and a pipe show all"


def test_columns_go_one_after_the_other_once_names_are_cut() -> None:
    rows = [_HEADS, ["a" * 30 + "-0", "1", "now"]]
    shown, note = fitted(rows, 40, ["log start", "due"])
    assert shown == [["topic-partition", "due"], ["a" * 14 + "…" + "a" * 11 + "-0", "now"]]
    assert note
    assert note.replace("\n", " ") == "this window is too narrow for whole names, log start: --json and a pipe show all"


def test_two_names_that_differ_do_not_look_alike() -> None:
    names = [f"{'a' * 20}{letter}{'z' * 20}" for letter in "bcd"]
    shown, _ = fitted([["topic"], *([name] for name in names)], 10, [])
    assert len({line[0] for line in shown}) == 4


def test_an_id_and_a_text_are_never_cut() -> None:
    rows = [["id", "why"], ["1" * 36, "because " * 9]]
    assert fitted(rows, 20, ["since"]) == (rows, None)
