"""What a resident does not do, so that its client does it itself; and what a fork of it takes along."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from keptlog import resident as package
from keptlog.resident.place import as_short, socket_beside
from tests.resident.conftest import REFUSED, Resident, client, running


def code_of(resident: Resident, *words: str, **variables: str) -> int:
    environment = {**resident.variables, "KEPTLOG_HOME": "nowhere", **variables}
    done = subprocess.run(client(*words), env=environment, capture_output=True, check=False)
    return done.returncode


def test_a_resident_has_one_thread_and_no_connection(resident: Resident) -> None:
    assert code_of(resident, "--version") == 0
    assert os.listdir(f"/proc/{resident.pid}/task") == [str(resident.pid)]  # noqa: PTH208
    deadline = time.monotonic() + 60
    # The client has ended by its command's own word. The resident hears of that end from the system, a little later.
    while len(opened := opened_by(resident.pid)) > 1:
        assert time.monotonic() < deadline, opened
        time.sleep(0.01)
    assert opened.pop().startswith("socket:")


def opened_by(pid: int) -> set[str]:
    files = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            files |= {os.readlink(each)} if int(each.name) > 2 else set()  # noqa: PTH115
    return files


def test_only_its_user_reaches_it(resident: Resident) -> None:
    path = Path(socket_beside(str(resident.address)))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o660)
    try:
        assert code_of(resident, "--version") == REFUSED
    finally:
        path.chmod(0o600)
    assert code_of(resident, "--version") == 0


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONHASHSEED": "7"},
        {"PYICEBERG_CATALOG__KEPTLOG__URI": "sqlite://"},
        {"KEPTLOG_SPARK_MASTER": "local[*]"},
        {"KEPTLOG_SPARK_MASTER": "file:/nowhere/address"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_who_would_import_something_else_does_it_himself(resident: Resident, variables: dict[str, str]) -> None:
    assert code_of(resident, "--version", **variables) == REFUSED


@pytest.mark.parametrize(
    "words",
    [["spark-server"], ["metrics", "serve"], ["notify", "--every", "1"], ["append", "users", "--file", "/dev/fd/63"]],
)
def test_what_lasts_or_needs_other_files_of_its_client_is_not_handed_over(resident: Resident, words: list[str]) -> None:
    assert code_of(resident, *words) == REFUSED


def test_a_variable_that_names_a_file_of_its_client_is_not_handed_over(resident: Resident) -> None:
    """``KEPTLOG_SIGNING_KEY_FILE=<(pass show key)``: the resident has no such file, or has another one there."""
    assert code_of(resident, "--version", KEPTLOG_SIGNING_KEY_FILE="/dev/fd/63") == REFUSED
    assert code_of(resident, "--version", A_FUNCTION="() { cat /dev/fd/63; }") == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_who_has_closed_a_stream_does_it_himself(resident: Resident, closed: str) -> None:
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *client("--version")]
    assert subprocess.run(shell, env=resident.variables, capture_output=True, check=False).returncode == REFUSED


def likeness_of(folder: Path) -> str:
    """Of a process that imports keptlog from this folder."""
    program = "import keptlog.resident.likeness as own; print(own.__file__, own.likeness())"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(folder))
    return done.stdout


def test_a_changed_file_makes_another_likeness(tmp_path: Path) -> None:
    source = Path(package.__file__).parent
    shutil.copytree(source, tmp_path / "keptlog" / "resident")
    shutil.copy(source.parent / "__init__.py", tmp_path / "keptlog")
    told = likeness_of(tmp_path)
    assert likeness_of(tmp_path) == told
    module = tmp_path / "keptlog" / "resident" / "place.py"
    text, status = module.read_text(), module.stat()
    module.write_text(text.replace("_OF_OTHERS", "_OF_OTHER5"))
    assert likeness_of(tmp_path) != told
    module.write_text(text)
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert likeness_of(tmp_path) == told
    (tmp_path / "keptlog" / "new.py").write_text("")
    assert likeness_of(tmp_path) != told


def test_a_resident_that_is_stopped_keeps_nothing_of_its_clients_open(tmp_path: Path) -> None:
    with running(tmp_path / "address") as stopped:
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            # It reads what the client writes through a pipe, to its end.
            impatient = {**stopped.variables, "KEPTLOG_TEST_ANSWER_SECONDS": "2"}
            done = subprocess.run(client("--version"), env=impatient, capture_output=True, check=False, timeout=60)
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        assert done.returncode == REFUSED
        assert code_of(stopped, "--version") == 0


def test_a_client_imports_next_to_nothing() -> None:
    program = (
        "import sys\nfrom keptlog.resident.handover import hand_over\nassert hand_over(['keptlog', 'status']) is None\n"
        "print(*(name for name in ('click', 'pathlib', 'typing', 'logging') if name in sys.modules))"
    )
    environment = {**os.environ, "KEPTLOG_SPARK_MASTER": "file:/nowhere"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "click" not in done.stdout


_SHORT_OF_EVERYTHING = """
import errno, os, socket, sys
from keptlog.resident import listener
fork, accept, failures = os.fork, socket.socket.accept, {"fork": 1, "accept": 1}
def failing(name, call):
    def called(*args):
        if failures[name]:
            failures[name] -= 1
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return call(*args)
    return called
os.fork, socket.socket.accept = failing("fork", fork), failing("accept", accept)
listener.serve(sys.argv[1], ["nobody is like it"], lambda: 0, 0)
"""
"""A resident for which the machine has at first no file for its client, and then no process."""


def test_a_machine_that_is_full_for_a_moment_costs_one_client_a_resident_and_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with subprocess.Popen([sys.executable, "-c", _SHORT_OF_EVERYTHING, path], stdin=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + 60
            while not path.is_socket():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert [first_word(path) for _ in range(3)] == [b"", b"here", b"here"]
            assert process.poll() is None
        finally:
            process.kill()


def first_word(path: Path) -> bytes:
    """What a resident says to who asks for something; nothing if it does nothing for him."""
    with socket.socket(socket.AF_UNIX) as asking, as_short(str(path)) as short:
        asking.settimeout(60)
        asking.connect(short)
        return asking.recv(4)
