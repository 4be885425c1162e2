"""``keptlog resident``: commands of its user that need no Spark find it by themselves, and nobody else's is used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import children
from tests.resident.conftest import REFUSED, client

_SECONDS = 200


@dataclass(frozen=True)
class Own:
    """One that is running in the foreground, as in a terminal of its own."""

    process: subprocess.Popen[str]
    variables: dict[str, str]
    folder: Path

    def code_of(self, *words: str, **variables: str) -> int:
        """How a client ends that can do nothing itself."""
        environment = {**self.variables, **variables}
        done = subprocess.run(client(*words), env=environment, capture_output=True, check=False, timeout=_SECONDS)
        return done.returncode


def started(runtime: Path) -> Own:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KEPTLOG_", "XDG_"))}
    variables = {**own, "XDG_RUNTIME_DIR": str(runtime), "KEPTLOG_HOME": str(runtime / "home")}
    command = [sys.executable, "-m", "keptlog", "resident"]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout
    assert "commands are carried out here" in process.stdout.readline()
    return Own(process, variables, runtime / "keptlog")


def stop(own: Own, number: int = signal.SIGTERM) -> str:
    own.process.send_signal(number)
    told, _ = own.process.communicate(timeout=_SECONDS)
    return told


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    found = started(tmp_path_factory.mktemp("own"))
    yield found
    stop(found)


def test_it_is_found_in_a_folder_that_is_longer_than_the_path_of_a_socket_may_be(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    found = started(deep)
    assert found.code_of("topic", "create", "users") == 0
    stop(found)
    assert not list((deep / "keptlog").iterdir())


def test_commands_find_it_and_answer_as_they_would_without_it(own: Own, tmp_path: Path) -> None:
    file = tmp_path / "users.jsonl"
    file.write_text('{"key": "ada", "value": "1", "timestamp": 1767225600000}\n')
    assert own.code_of("topic", "create", "users", "--config", "cleanup.policy=compact") == 0
    assert own.code_of("append", "users", "--file", str(file)) == 0
    for told in ("read users", "history users", "status", "explain users-0", "verify users", "erasure list"):
        words = told.split()
        assert own.code_of(*words) == 0
        command = [sys.executable, "-m", "keptlog", *words]
        answers = [
            subprocess.run(command, env={**own.variables, **more}, capture_output=True, text=True, check=False)
            for more in ({}, {"KEPTLOG_RESIDENT": "off"})
        ]
        assert answers[0].stdout == answers[1].stdout
        assert answers[0].returncode == answers[1].returncode == 0


@pytest.mark.parametrize(
    "words",
    ["clean users", "expire", "erase users --key a", "erasure verify", "ingest kafka", "resident", "--help"],
)
def test_what_may_need_a_spark_or_lasts_is_not_handed_over(own: Own, words: str) -> None:
    assert own.code_of(*words.split()) == REFUSED


def test_of_notify_only_what_looks_once_is_handed_over(own: Own) -> None:
    for words in ("notify", "notify --every 5", "notify --json"):
        assert own.code_of(*words.split(), KEPTLOG_NOTIFY_LOG="true") == REFUSED
    for words in ("notify --once", "notify --test --json"):
        assert own.code_of(*words.split(), KEPTLOG_NOTIFY_LOG="true") == 0
    assert own.code_of("notify", "--dry-run", KEPTLOG_NOTIFY_LOG="true") in {0, 1}


def test_a_variable_turns_it_off(own: Own) -> None:
    assert own.code_of("status", KEPTLOG_RESIDENT="off") == REFUSED
    assert own.code_of("status", KEPTLOG_RESIDENT="") == 0


def test_a_socket_or_a_folder_that_others_may_reach_is_not_used(own: Own) -> None:
    for path, mode in ((own.folder / "commands", 0o600), (own.folder, 0o700)):
        assert path.stat().st_mode & 0o777 == mode
        path.chmod(mode | 0o050)
        try:
            assert own.code_of("status") == REFUSED
        finally:
            path.chmod(mode)
        assert own.code_of("status") == 0


def test_a_folder_that_is_a_link_is_not_used(own: Own, tmp_path: Path) -> None:
    (tmp_path / "keptlog").symlink_to(own.folder)
    assert own.code_of("status", XDG_RUNTIME_DIR=str(tmp_path)) == REFUSED


def test_a_second_one_is_refused(own: Own) -> None:
    command = [sys.executable, "-m", "keptlog", "resident"]
    done = subprocess.run(command, env=own.variables, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "a resident listens at" in done.stderr
    assert own.code_of("status") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_terminal_and_commands_do_their_work_themselves(tmp_path: Path, number: int) -> None:
    found = started(tmp_path)
    (resident,) = [each for each in children(found.process.pid) if b"cli.resident" in _words(each.pid)]
    assert found.code_of("--version") == REFUSED
    stop(found, number)
    deadline = time.monotonic() + _SECONDS
    while b"cli.resident" in _words(resident.pid):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.05)
    assert found.code_of("status") == REFUSED
    assert not (found.folder / "commands").exists()


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_a_folder_in_which_somebody_else_could_put_a_socket_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keptlog").mkdir(mode=0o755)
    (tmp_path / "keptlog").chmod(0o755)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    environment.pop("KEPTLOG_RESIDENT", None)
    command = [sys.executable, "-m", "keptlog", "resident"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "you alone can reach" in done.stderr
