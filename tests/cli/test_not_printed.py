"""A command whose answer could not be printed says so, and never that it may be tried again: what it did is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.home import open_home
from tests.cli.conftest import Run

FULL = Path("/dev/full")
"""Always there, always full."""
_CHANGES = {
    "append": "append users --file more.jsonl --quiet",
    "append --json": "append users --file more.jsonl --json",
    "delete-records": "delete-records users-0 1 --yes",
    "create": "topic create others",
    "alter": "topic alter users --config segment.ms=7",
}


@pytest.fixture
def users(keptlog: Run, tmp_path: Path) -> Path:
    records = tmp_path / "more.jsonl"
    records.write_text('{"key": "k", "value": "1"}\n{"key": "k", "value": "2"}\n')
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", str(records))
    return tmp_path


def _into(out: Path, line: str) -> tuple[int, list[str]]:
    """Exit code and lines on stderr of a command in a process of its own."""
    with out.open("wb") as stdout:
        command = [sys.executable, "-m", "keptlog", *line.split()]
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


def _state() -> object:
    store = open_home().store
    topics = [store.describe_topic(name) for name in store.topics()]
    return topics, [(log.log_start_offset, log.log_end_offset) for log in store.logs("users")]


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("line", _CHANGES.values(), ids=_CHANGES)
def test_what_was_changed_is_not_told_as_failed(line: str) -> None:
    before = _state()
    code, told = _into(FULL, line)

    assert _state() != before
    assert code == 1
    assert told == [
        "keptlog: the answer can't be printed: No space left on device; what was done by then stays done, "
        "so look before you run it again"
    ]


@pytest.mark.parametrize(
    ("line", "position"),
    [("read users", None), ("read users --as-reader rr", 0), ("status --json", None), ("--help", None)],
)
def test_so_is_an_answer_of_which_nothing_was_printed(
    keptlog: Run, users: Path, line: str, position: int | None
) -> None:
    """A reader stays where he began; that he did is stored before he gets anything."""
    keptlog("reader", "add", "users", "rr")
    code, told = _into(FULL, line)

    assert (code, len(told)) == (1, 1)
    assert told[0].startswith("keptlog: the answer can't be printed: No space left on device; ")
    assert keptlog("reader", "list", "--json").json["readers"][0]["position"] == position


def test_a_reader_of_the_output_who_has_gone_is_told_nothing(users: Path) -> None:
    command = f"{sys.executable} -m keptlog read users | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_command_whose_stderr_takes_nothing_is_carried_out(users: Path) -> None:
    with FULL.open("wb") as full:
        command = [sys.executable, "-m", "keptlog", "topic", "create", "warned"]  # of its policy, when it is there
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True, check=False)

    assert (done.returncode, done.stdout.startswith("created warned with 1 partition")) == (0, True)


@pytest.mark.parametrize("line", ["read users", "read users --as-reader rr", "restore users --to jsonl -"])
def test_records_that_would_go_to_a_closed_stdout_are_refused_and_no_position_moves(
    keptlog: Run, users: Path, line: str
) -> None:
    keptlog("reader", "add", "users", "rr")
    command = f"{sys.executable} -m keptlog {line} >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == "keptlog: records go to standard output, and that is closed: open it\n"
    assert keptlog("reader", "list", "--json").json["readers"][0]["position"] is None


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("files users", "paths"),
        ("topic export", "declarations"),
        ("status --json", "answers as JSON"),
        ("metrics write -", "metrics"),
    ],
)
def test_what_a_program_would_read_is_not_said_to_be_printed_to_a_closed_stdout(
    users: Path, line: str, what: str
) -> None:
    command = f"{sys.executable} -m keptlog {line} >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == f"keptlog: {what} go to standard output, and that is closed: open it\n"


@pytest.mark.usefixtures("users")
def test_nothing_is_changed_where_json_is_asked_for_and_stdout_is_closed() -> None:
    before = _state()
    command = f"{sys.executable} -m keptlog {_CHANGES['append --json']} >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == "keptlog: answers as JSON go to standard output, and that is closed: open it\n"
    assert _state() == before
