"""What is wrong is red on a terminal, and nowhere else; NO_COLOR holds."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable, Iterator

import pytest

from keptlog.cli.colour import Wrong
from keptlog.cli.output import print_table, tell_wrong

_RED = "\x1b[31m\x1b[1m"
_PLAIN = "log      late\nusers-0  2 h\nusers-1  -\nkeptlog: it is late\n"
Shown = Callable[[], str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    """Standard output and error are a terminal; what it has shown."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, its = pty.openpty()
    with os.fdopen(its, "w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setattr("sys.stderr", stream)

        def shown() -> str:
            stream.flush()
            return os.read(ours, 10_000).decode().replace("\r\n", "\n")

        yield shown
    os.close(ours)


def tell() -> None:
    print_table([{"log": "users-0", "late": Wrong("2 h")}, {"log": "users-1", "late": None}], empty="")
    tell_wrong("it is late")


def test_a_terminal_shows_it_in_red(terminal: Shown) -> None:
    tell()
    shown = terminal()
    assert f"users-0  {_RED}2 h\x1b[0m\nusers-1  -\n" in shown
    assert f"{_RED}keptlog:\x1b[0m it is late\n" in shown


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_colour_gets_none(
    terminal: Shown, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    tell()
    assert terminal() == _PLAIN


def test_a_file_gets_none(capsys: pytest.CaptureFixture[str]) -> None:
    tell()
    printed = capsys.readouterr()
    assert printed.out + printed.err == _PLAIN
