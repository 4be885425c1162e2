"""A command whose caller has closed standard streams does the same as with ``/dev/null`` in their place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.home import open_home

CLOSED = ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"]
_OPENED = "from keptlog.streams import open_closed_streams; open_closed_streams()"
_PRINTED_BESIDE_A_FILE = """
import os, subprocess
with open("segment", "wb"):
    for stream in (1, 2):
        try:
            os.write(stream, b"as a library prints")
        except OSError:
            pass
"""
_OF_A_CHILD = """
import json, subprocess, sys
json.dump([stream is None for stream in (sys.stdin, sys.stdout, sys.stderr)], open("none", "w"))
child = "import json, os; [os.fstat(each) for each in range(3)]; open('whole', 'w').close()"
subprocess.run([sys.executable, "-c", child])
"""


def _python(folder: Path, closed: str, *words: str) -> tuple[int, str, str]:
    """Exit code and output of Python, called with these words by a shell that closes streams."""
    environment = os.environ | {"KEPTLOG_HOME": str(folder / "home")}
    command = ["bash", "-c", f'"$0" "$@" {closed}', sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("closed", CLOSED[1:])
def test_nothing_that_is_printed_comes_into_a_file_that_is_opened(tmp_path: Path, closed: str) -> None:
    _python(tmp_path, closed, "-c", _PRINTED_BESIDE_A_FILE)
    by_itself = (tmp_path / "segment").read_bytes()
    _python(tmp_path, closed, "-c", _OPENED + _PRINTED_BESIDE_A_FILE)

    # Where stdin is closed too, it is stdin's place that the file gets.
    assert (by_itself != b"") == ("<&-" not in closed)
    assert (tmp_path / "segment").read_bytes() == b""


@pytest.mark.parametrize("closed", CLOSED)
def test_this_process_and_those_that_it_starts_have_three_streams(tmp_path: Path, closed: str) -> None:
    _python(tmp_path, closed, "-c", _OPENED + _OF_A_CHILD)

    assert json.loads((tmp_path / "none").read_text()) == [False, False, False]
    assert (tmp_path / "whole").exists()


@pytest.mark.parametrize("closed", CLOSED)
def test_a_command_whose_streams_are_closed_is_carried_out_and_says_so_by_its_exit_code(
    tmp_path: Path, closed: str
) -> None:
    (tmp_path / "records.jsonl").write_text('{"key": "k", "value": "v"}\n')
    keptlog = ("-m", "keptlog")

    made = _python(tmp_path, closed, *keptlog, "topic", "create", "users", "--config", "cleanup.policy=compact")
    appended = _python(tmp_path, closed, *keptlog, "append", "users", "--file", "records.jsonl")
    refused = _python(tmp_path, closed, *keptlog, "append", "nobody", "--file", "records.jsonl")
    read_from_nowhere = _python(tmp_path, "<&-", *keptlog, "append", "users", "--file", "-")

    assert [made[0], appended[0], refused[0]] == [0, 0, 2]
    assert [made[2], appended[2], len(refused[2].splitlines())] == ["", "", "2>&-" not in closed]
    assert read_from_nowhere == (0, "appended 0 records (0 B) to users\n", "")
    assert len(list(open_home(tmp_path / "home").read("users"))) == 1
