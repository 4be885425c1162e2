"""Ctrl-C in an append: whoever pipes records in must hear whether they have to be given again, for they are gone."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from keptlog import open_home
from tests.cli.conftest import Run
from tests.processes import open_files

_RECORD = '{"key": "ada", "value": "1"}\n'
_MORE_THAN_A_STEP = 100_001
"""Of records: then the first line of progress is there."""
_NOTHING = "keptlog: stopped; nothing was appended now, append all records again"
_AGAIN = "append all files again with --skip-existing, which leaves out what is there by then"
_TELLS_ITS_STEPS = """
import runpy, sys
from keptlog import interrupted

def told(name):
    does = getattr(interrupted, name)
    setattr(interrupted, name, lambda *given: (does(*given), print(name, *given, file=sys.stderr, flush=True)))

told("if_stopped")
told("note_sent")
runpy.run_module("keptlog", run_name="__main__")
"""


@pytest.fixture
def users(keptlog: Run, home: Path) -> Path:
    """A home with a topic."""
    keptlog("topic", "create", "users")
    return home


@contextmanager
def _locked(home: Path, how: str) -> Iterator[None]:
    with closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute(f"begin {how}")
        yield


def _appending(*options: str, by: tuple[str, str] = ("-m", "keptlog")) -> subprocess.Popen[str]:
    command = [sys.executable, *by, "append", "users", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _give(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write(_RECORD)
    process.stdin.close()


def _stopped(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    assert process.stderr
    told = process.stderr.read().strip()
    assert process.wait(60) == 130
    return told


def _stopped_at(step: str, home: Path, *options: str) -> str:
    """What an append of a small pipe says that is stopped behind a step, for the catalog takes no commit."""
    with _locked(home, "immediate"), _appending(*options, by=("-c", _TELLS_ITS_STEPS)) as process:
        _give(process)
        assert process.stderr
        while not (line := process.stderr.readline()).startswith(step):
            assert line
        return _stopped(process)


def test_an_append_that_is_stopped_while_it_reads_says_that_nothing_was_appended(users: Path) -> None:
    with _appending() as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(_RECORD * _MORE_THAN_A_STEP)
        process.stdin.flush()
        assert process.stderr.readline().startswith("read 100000 records")
        assert _stopped(process) == _NOTHING
    assert not list(open_home(str(users)).read("users"))


@pytest.mark.parametrize(("options", "how"), [((), ""), (("--run-id", "mine"), " with --run-id mine")])
def test_one_that_waits_for_the_catalog_before_it_reads_says_so_too_with_the_run_id_that_was_given(
    users: Path, options: tuple[str, ...], how: str
) -> None:
    """It may repeat one that has landed, and without its id all records would be appended twice."""
    with _locked(users, "exclusive"), _appending(*options) as process:
        _give(process)
        while str(users / "catalog.db") not in open_files(process.pid):
            assert process.poll() is None
            time.sleep(0.01)
        assert _stopped(process) == _NOTHING + how


@pytest.mark.parametrize("options", [(), ("--run-id", "mine")])
def test_one_whose_commit_was_sent_names_the_run_id_under_which_it_can_be_repeated(
    keptlog: Run, users: Path, options: tuple[str, ...]
) -> None:
    told = _stopped_at("note_sent", users, *options)
    before, _, rest = told.partition("--run-id ")
    run_id, _, after = rest.partition(",")
    assert before == (
        "keptlog: stopped; whether the records were appended is not known: see what keptlog read shows, or append all "
        "of them again with "
    )
    assert after == " which appends nothing twice"
    assert run_id == "mine" if options else run_id
    (users.parent / "users.jsonl").write_text(_RECORD, encoding="utf-8")
    again = ("append", "users", "--file", "users.jsonl", "--run-id", run_id)
    assert "appended 1 record" in keptlog(*again).out
    assert "nothing was added now" in keptlog(*again).out
    assert len(list(open_home(str(users)).read("users"))) == 1


def test_one_of_records_with_offsets_is_repeated_as_ever(keptlog: Run, users: Path) -> None:
    file = str(users.parent / "users.parquet")
    parquet.write_table(pa.table({"key": ["ada"], "value": ["1"], "offset": [7]}), file)
    options = ("--file", file, "--column", "offset=offset", "--partition", "0")
    told = _stopped_at(f"if_stopped stopped; {_AGAIN}", users, *options)
    assert told == f"keptlog: stopped; {_AGAIN}"
    assert "appended 1 record" in keptlog("append", "users", *options, "--skip-existing").out
    assert "1 were there already" in keptlog("append", "users", *options, "--skip-existing").out
