"""What is wrong is red on a terminal, and nowhere else; NO_COLOR holds."""

from __future__ import annotations

import os
import pty

import pytest

from keptlog.cli.colour import Wrong
from keptlog.cli.output import print_table, tell_wrong

_RED = "\x1b[31m\x1b[1m"
_PLAIN = "log      late\nusers-0  2 h\nusers-1  -\nkeptlog: it is late\n"


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """What is shown where standard output and error are a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    ours, its = pty.openpty()
    # In here, and in no fixture: pytest puts streams of its own back when the test itself begins.
    with os.fdopen(its, "w") as stream, monkeypatch.context() as streams:
        streams.setattr("sys.stdout", stream)
        streams.setattr("sys.stderr", stream)
        tell()
        stream.flush()
        shown = ""
        # A terminal hands over line by line; if nothing came any more, the test's time would end.
        while not shown.endswith("it is late\r\n"):
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
    return shown.replace("\r\n", "\n")


def tell() -> None:
    print_table([{"log": "users-0", "late": Wrong("2 h")}, {"log": "users-1", "late": None}], empty="")
    tell_wrong("it is late")


def test_a_terminal_shows_it_in_red(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_on_a_terminal(monkeypatch)
    assert f"users-0  {_RED}2 h\x1b[0m\nusers-1  -\n" in shown
    assert f"{_RED}keptlog:\x1b[0m it is late\n" in shown


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colour_gets_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    assert shown_on_a_terminal(monkeypatch, **{name: value}) == _PLAIN


def test_a_file_gets_none(capsys: pytest.CaptureFixture[str]) -> None:
    tell()
    printed = capsys.readouterr()
    assert printed.out + printed.err == _PLAIN
