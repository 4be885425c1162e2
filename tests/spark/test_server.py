"""A Spark that is kept warm: commands find it by what it prints, share its workers, and nobody else may use it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from examples.ports import free_port
from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.resident.place import is_own_socket, socket_beside
from tests.processes import descendants, left
from tests.resident.conftest import client

_EXPORT = re.compile(r"export (\w+)='(.*)'\n")
_IN_TIME_SECONDS = 300
_RECORDS = [NewRecord(b"key-%d" % (number % 3), b"", number) for number in range(10)]


@dataclass(frozen=True)
class Server:
    """A running ``keptlog spark-server``, and what it tells others to set: the file that has its address."""

    process: subprocess.Popen[str]
    exported: Mapping[str, str]

    def worker_daemons(self) -> set[str]:
        """The processes that fork its Python workers."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        parents = {pid: (parent, args) for pid, parent, args in (line.split(None, 2) for line in listed.splitlines())}
        java = {pid for pid, (parent, _) in parents.items() if parent == str(self.process.pid)}
        return {pid for pid, (parent, args) in parents.items() if parent in java and "worker_daemon" in args}

    def java(self) -> int | None:
        """The process that answers, if there is one."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        processes = [line.split(None, 2) for line in listed.splitlines()]
        found = [
            pid for pid, parent, args in processes if parent == str(self.process.pid) and "java" in args.split()[0]
        ]
        return int(found[0]) if found else None


def spark_server(port: int, address_file: Path) -> list[str]:
    words = ["spark-server", "--port", str(port), "--address-file", str(address_file)]
    return [sys.executable, "-m", "keptlog", *words]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("spark") / "address"
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != "KEPTLOG_SPARK_MASTER"}
    with subprocess.Popen(spark_server(port, file), stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        match = _EXPORT.fullmatch(process.stdout.readline())
        assert match
        assert file.stat().st_mode & 0o777 == 0o600
        yield Server(process, {match[1]: match[2]})
        process.send_signal(signal.SIGTERM)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def clean_once_more(home: Path, exported: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Append to a topic, and clean it in a process of its own."""
    store = open_home(home, {}).store
    if not store.topics():
        store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", _RECORDS, new_id(), now_ms=0)
    environment = {**os.environ, **exported, "KEPTLOG_HOME": str(home)}
    command = [sys.executable, "-m", "keptlog", "clean", "users", "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_the_commands_of_other_processes_clean_on_it_and_share_its_workers(server: Server, tmp_path: Path) -> None:
    daemons = server.worker_daemons()
    assert len(daemons) == 1
    for rounds in (1, 2):
        done = clean_once_more(tmp_path, server.exported)
        assert done.returncode == 0, done.stderr
        [log] = open_home(tmp_path, {}).store.logs("users")
        assert log.checkpoint == rounds * len(_RECORDS)
    assert server.worker_daemons() == daemons


def test_a_resident_beside_it_carries_out_what_uses_its_file(server: Server, tmp_path: Path) -> None:
    address = Path(server.exported["KEPTLOG_SPARK_MASTER"].removeprefix("file:"))
    deadline = time.monotonic() + _IN_TIME_SECONDS
    while not is_own_socket(socket_beside(str(address))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    store = open_home(tmp_path, {}).store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", _RECORDS, new_id(), now_ms=0)
    environment = {**os.environ, **server.exported, "KEPTLOG_HOME": str(tmp_path)}
    done = subprocess.run(
        client("clean", "users", "--quiet"), capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    [log] = open_home(tmp_path, {}).store.logs("users")
    assert log.checkpoint == len(_RECORDS)


def test_who_does_not_know_the_token_is_refused(server: Server, tmp_path: Path) -> None:
    address = Path(server.exported["KEPTLOG_SPARK_MASTER"].removeprefix("file:")).read_text()
    guessed = {"KEPTLOG_SPARK_MASTER": re.sub(r"token=\S+", "token=guessed", address).strip()}
    done = clean_once_more(tmp_path, guessed)
    assert done.returncode == 1
    assert open_home(tmp_path, {}).store.logs("users")[0].checkpoint is None
    assert "no Spark session could be started: " in done.stderr.splitlines()[-1], done.stderr


def test_a_server_that_died_is_started_again_where_it_was(server: Server, tmp_path: Path) -> None:
    died = server.java()
    assert died
    os.kill(died, signal.SIGKILL)
    for _ in range(240):
        if server.java() not in {died, None} and server.worker_daemons():
            break
        time.sleep(0.5)
    done = clean_once_more(tmp_path, server.exported)
    assert done.returncode == 0, done.stderr
    assert server.java() not in {died, None}


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_one_that_is_killed_leaves_no_process_and_a_free_port(server: Server) -> None:
    """The last one here that uses it: it ends the server of the others."""
    [at] = server.exported.values()
    place = urlsplit(Path(at.removeprefix("file:")).read_text().partition("/;")[0])
    assert is_open(place.port or 0)
    started = descendants(server.process.pid)
    server.process.kill()
    assert not left(started, _IN_TIME_SECONDS)
    deadline = time.monotonic() + _IN_TIME_SECONDS
    while is_open(place.port or 0):  # of a process that counts as gone, threads may be on their way
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_so_does_one_that_is_killed_while_its_java_starts(tmp_path: Path) -> None:
    process = subprocess.Popen(spark_server(free_port(), tmp_path / "address"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + _IN_TIME_SECONDS
    while not any("java" in each.command for each in descendants(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started = descendants(process.pid)
    process.kill()
    process.wait()
    assert not left(started, _IN_TIME_SECONDS)
