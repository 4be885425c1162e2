"""A file that a command is to write: only a file gives way to it, links stay, and it is as private as before."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

_WRITERS = {
    "restore": "restore users --to jsonl --overwrite FILE",
    "metrics": "metrics write FILE",
}
_REFUSED = _WRITERS | {"address file": "spark-server --address-file FILE"}
_at_each_writer = pytest.mark.parametrize("words", _WRITERS.values(), ids=_WRITERS)


@pytest.fixture(autouse=True)
def _users(keptlog: Run, lines: Callable[..., str]) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))


def _write(keptlog: Run, words: str, file: Path) -> int:
    return keptlog(*words.replace("FILE", str(file)).split()).code


@pytest.mark.parametrize("words", _REFUSED.values(), ids=_REFUSED)
@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a pipe", "link to a folder"])
def test_what_is_no_file_is_refused_in_one_line_and_stays(keptlog: Run, tmp_path: Path, words: str, kind: str) -> None:
    """Never tried with a real device, which a mistake would take away from the machine."""
    there = tmp_path / "there"
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "socket":
            listening.bind(str(there))
        elif kind == "pipe":
            os.mkfifo(there)
        elif kind == "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            there.symlink_to("pipe")
        else:
            there.symlink_to("home")
        before = there.lstat()
        refused = keptlog(*words.replace("FILE", str(there)).split())

    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert str(there) in refused.err
    after = there.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


@_at_each_writer
def test_a_file_stays_as_private_as_it_was(keptlog: Run, tmp_path: Path, words: str) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    file.chmod(0o600)

    assert _write(keptlog, words, file) == 0
    assert file.read_text() != "before"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@_at_each_writer
def test_a_link_stays_and_what_it_leads_to_is_written(keptlog: Run, tmp_path: Path, words: str) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    for before in (None, "before"):
        if before:
            file.write_text(before)
        assert _write(keptlog, words, link) == 0
        assert link.readlink() == file
        assert file.read_text() not in {"", "before"}


def test_what_a_link_leads_to_is_there_and_stays_unless_it_may_be_overwritten(keptlog: Run, tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    file.write_text("before")

    assert _write(keptlog, "restore users --to jsonl FILE", link) == 2
    assert (link.readlink(), file.read_text()) == (file, "before")
