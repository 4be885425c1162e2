"""Nobody can tell whether a resident has carried a command out, but by the time that it took."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.resident.conftest import REFUSED, Resident, client

_RECORD = '{"key": "bob", "value": "2", "timestamp": 1767225600001}\n'
_PLAIN = {"KEPTLOG_HOME": "home", "KEPTLOG_NOW_MS": "1767312000000"}


def both(
    resident: Resident, home: Path, words: str, stdin: str | None, **variables: str
) -> list[tuple[int, str, str, list[str]]]:
    """Code, stdout, stderr and the files beside the home, of a process of its own and of the resident's."""
    found = []
    for begin in ([sys.executable, "-m", "keptlog"], client()):
        handed = resident.variables if begin == client() else os.environ
        done = subprocess.run(
            [*begin, *words.split()],
            cwd=home,
            env={**handed, **_PLAIN, **variables},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            text=True,
            check=False,
            capture_output=True,
        )
        assert done.returncode != REFUSED
        found.append((done.returncode, done.stdout, done.stderr, sorted(os.listdir(home))))  # noqa: PTH208
    return found


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--version", 0),
        ("topic --help", 0),
        ("status", 0),
        ("plan users --json", 0),
        ("explain users-0", 0),
        ("history users --json", 0),
        ("read users", 0),
        ("verify users", 0),
        ("topic list", 0),
        ("--log-level debug topic describe users", 0),
        ("read nowhere", 2),
        ("read users --from-offset x", 2),
        ("nonsense --json", 2),
        ("topic delete users", 2),
        ("append users --file nowhere.jsonl", 2),
    ],
)
def test_output_and_exit_code_are_the_same(resident: Resident, home: Path, words: str, code: int) -> None:
    alone, handed = both(resident, home, words, None)
    assert handed == alone
    assert alone[0] == code


def test_what_is_piped_is_read(resident: Resident, home: Path) -> None:
    alone, handed = both(resident, home, "append users --file - --json", _RECORD, KEPTLOG_NOW_MS="")
    assert (alone[0], handed[0]) == (0, 0), alone[2] + handed[2]
    assert '"base_offset": 1' in alone[1]
    assert '"base_offset": 2' in handed[1]


def test_a_piped_answer_is_one(resident: Resident, home: Path) -> None:
    alone, handed = both(resident, home, "topic delete users", "no\n")
    assert handed == alone
    assert alone[0] == 130


def test_a_name_is_completed(resident: Resident, home: Path) -> None:
    words = {"_KEPTLOG_COMPLETE": "bash_complete", "COMP_WORDS": "keptlog read us", "COMP_CWORD": "2"}
    alone, handed = both(resident, home, "", None, **words)
    assert handed == alone
    assert "users" in alone[1]


def test_variables_are_those_of_the_client_alone(resident: Resident, home: Path) -> None:
    for variables in ({"KEPTLOG_HOME": "elsewhere"}, {"KEPTLOG_NOW_MS": "soon"}, {"KEPTLOG_LOG_LEVEL": "all"}):
        alone, handed = both(resident, home, "status", None, **variables)
        assert handed == alone
        assert alone[0] == 2


def test_files_are_made_with_the_clients_umask(resident: Resident, home: Path) -> None:
    for umask, mode in ((0o027, 0o750), (0o077, 0o700)):
        folder = home / f"of-{umask}"
        done = subprocess.run(
            client("topic", "create", "other", "--config", "cleanup.policy=compact"),
            env={**resident.variables, "KEPTLOG_HOME": str(folder)},
            check=False,
            umask=umask,
        )
        assert done.returncode == 0
        assert folder.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("begin", [[sys.executable, "-m", "keptlog"], client()])
def test_who_is_asked_at_a_terminal_answers_there(resident: Resident, home: Path, begin: list[str]) -> None:
    ours, theirs = pty.openpty()
    variables = resident.variables if begin == client() else os.environ
    command = [*begin, "topic", "delete", "users"]
    environment = {**variables, "KEPTLOG_HOME": "home"}
    with subprocess.Popen(
        command, cwd=home, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, b"n\n")
        assert process.wait() == 130
    os.close(ours)
    assert (home / "home" / "warehouse" / "keptlog" / "users").is_dir()
