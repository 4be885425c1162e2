"""How commands end that a resident carries out: by signals, with their client, and without the resident."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from keptlog.cli.resident import resident_beside
from keptlog.resident.place import socket_beside
from tests.processes import Started, descendants, left
from tests.resident.conftest import REFUSED, Resident, client, running

_STOPPED_EARLY = """
import os, signal, sys
from keptlog.resident import handover
def stop(resident, pid):
    os.kill(pid, signal.SIGINT)
    how, number = handover._line(resident)
    return number if how == handover.EXIT else 98
handover._until_it_ends = stop
sys.exit(handover.hand_over(sys.argv))
"""
"""A client that Ctrl-C reaches before it has let its command begin."""
_RECORD = '{"key": "bob", "value": "2"}\n'


@contextmanager
def appending(
    resident: Resident, home: Path, begin: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], Started]]:
    """A client of a command that waits for its input, and the command's process."""
    with subprocess.Popen(
        [*(begin or client()), "append", "users", "--file", "-"],
        cwd=home,
        env={**resident.variables, "KEPTLOG_HOME": "home"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, resident.waiting_command()
        finally:
            process.kill()


def test_ctrl_c_ends_the_command_as_it_ends_one_of_its_own(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        process.send_signal(signal.SIGINT)
        process.wait(60)  # its input ends after it, and not before it has heard of the signal
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert err.strip() == "keptlog: stopped; nothing was appended now, append all records again"
    assert not left({command})


def test_ctrl_c_just_before_a_command_begins_ends_that_command_alone(resident: Resident, home: Path) -> None:
    for _ in range(2):  # the next one finds the resident as this one did
        done = subprocess.run(
            [sys.executable, "-c", _STOPPED_EARLY, "read", "users"],
            cwd=home,
            env={**resident.variables, "KEPTLOG_HOME": "home"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr == "keptlog: stopped before anything was done\n"
        assert Path(socket_beside(str(resident.address))).is_socket()


def test_a_resident_that_ignores_hangups_hands_that_to_no_command(tmp_path: Path, home: Path) -> None:
    ignored = {signal.SIGHUP: signal.SIG_IGN, signal.SIGQUIT: signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in ignored.items()}  # as under nohup
    try:
        with running(tmp_path / "address") as found:
            for number in before:
                signal.signal(number, signal.SIG_DFL)  # the tests themselves may be run under nohup
            for number in before:
                with appending(found, home) as (process, command):
                    process.send_signal(number)
                    assert process.wait(60) == -number
                assert not left({command})
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_client_that_is_asked_to_end_ends_by_that_signal(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert not left({command})


def test_a_command_that_is_killed_looks_so(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        os.kill(command.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL


def test_a_client_that_is_killed_leaves_no_command(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        process.kill()
        process.wait()
        assert not left({command})


def test_a_stopped_client_stops_its_command_until_it_goes_on(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert _is_stopped(command)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(_RECORD, timeout=60)
        assert (process.returncode, "appended 1 record" in out) == (0, True)


def _is_stopped(command: Started) -> bool:
    """Whether each of its threads is, which takes a moment after the signal."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError):  # a thread that has ended meanwhile
            tasks = Path(f"/proc/{command.pid}/task").glob("*/stat")
            if {each.read_text().rpartition(")")[2].split()[0] for each in tasks} == {"T"}:
                return True
        time.sleep(0.01)
    return False


def test_a_client_that_is_killed_while_it_is_stopped_leaves_no_command(resident: Resident, home: Path) -> None:
    with appending(resident, home) as (process, command):
        process.send_signal(signal.SIGTSTP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert _is_stopped(command)
        process.kill()
        process.wait()
        assert not left({command})


@pytest.fixture
def own_resident(tmp_path: Path) -> Iterator[Resident]:
    with running(tmp_path / "address") as found:
        yield found


def test_a_killed_resident_leaves_its_commands_and_a_socket_that_costs_nothing(
    own_resident: Resident, home: Path
) -> None:
    with appending(own_resident, home) as (process, command):
        os.kill(own_resident.pid, signal.SIGKILL)
        out, err = process.communicate(_RECORD, timeout=60)
        assert (process.returncode, err) == (0, "")
        assert "offsets 1..1" in out
    assert not left({command})
    path = socket_beside(str(own_resident.address))
    assert Path(path).is_socket()
    environment = {**own_resident.variables, "KEPTLOG_HOME": "home"}
    for begin, code in ((client(), REFUSED), ([sys.executable, "-m", "keptlog"], 0)):
        done = subprocess.run(
            [*begin, "read", "users"], cwd=home, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (code, "")
    with running(own_resident.address) as next_one:
        again = subprocess.run(client("read", "users"), cwd=home, env=environment, capture_output=True, check=False)
        assert again.returncode == 0
        assert next_one.pid != own_resident.pid


def test_who_keeps_a_resident_starts_another_one_where_it_was_killed(tmp_path: Path) -> None:
    before = descendants(os.getpid())
    with resident_beside(tmp_path / "address") as revived:
        assert revived() is None
        [first] = descendants(os.getpid()) - before
        os.kill(first.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while (ended := revived()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert ended == -signal.SIGKILL
        [second] = descendants(os.getpid()) - before
        assert second != first
        assert revived() is None


def test_a_resident_that_ends_takes_its_socket_along_and_lets_commands_finish(tmp_path: Path, home: Path) -> None:
    with running(tmp_path / "address") as found:
        appended = appending(found, home)
        process, _ = appended.__enter__()
    assert not Path(socket_beside(str(found.address))).exists()
    out, _ = process.communicate(_RECORD, timeout=60)
    assert (process.returncode, "appended 1 record" in out) == (0, True)
    appended.__exit__(None, None, None)


_SLOW_TO_BEGIN = """
import gc, sys, time
from keptlog.resident import listener
gc.collect = lambda: time.sleep(3)
listener.serve(sys.argv[1], ["nobody is like it"], lambda: 0, 0)
"""
"""A resident on a machine that is so busy that it does not get from its socket to its first client."""


def test_one_that_is_ended_in_its_first_moment_takes_its_socket_along(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with subprocess.Popen([sys.executable, "-c", _SLOW_TO_BEGIN, path], stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not path.is_socket():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.terminate()
        assert process.wait(60) == 0
    assert list(tmp_path.iterdir()) == []
