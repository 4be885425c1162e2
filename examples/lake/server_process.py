"""A server as a process of its own: started until it answers, ended for sure, killed, paused and started again.

    start    wait until it answers, or say why it does not
    stop     ask it to end, then kill what is left of it
    kill     as ``kill -9`` does, its children in its process group included; of a server that writes its own records in
             place, between two such writes
    pause    it holds its ports and does not answer; resume

``leash`` ends it if this process is gone, and deletes a folder that is held. Ctrl-C at the terminal does not reach it,
but whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from keptlog.errors import StorageUnavailable

DEADLINE_SECONDS = 120.0
"""What takes longer than this never comes."""
_LEASH = Path(__file__).with_name("leash.py")
_PAUSE_SECONDS = 0.05
_PAUSES = 100
"""What is not whole after so many of them does not become so: nobody writes it."""


@dataclass
class ServerProcess:
    """One server."""

    what: str
    """Name and version, for people."""
    command: Sequence[str]
    answers: Callable[[], bool]
    """Whether it is ready; an ``OSError`` says no, and so does an answer that is not HTTP where HTTP was asked for."""
    output: Path
    """What it wrote to stdout and stderr since it was started last."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """On top of this process's own."""
    user: str = ""
    is_whole: Callable[[], bool] | None = None
    """Whether what it keeps could be read again: of a server that would not survive each ``kill``."""
    pid: int = 0
    """Of the server, and of its process group."""
    _leash: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            StorageUnavailable: it does not.
        """
        with self.output.open("wb") as output:
            self._leash = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LEASH), self.user, *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        try:
            self.pid = self._told_pid(self._leash)
            self._wait_until_ready(self._leash)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask it to end, and wait until it is gone."""
        if self._leash and self._leash.stdin:
            self._leash.stdin.close()
        self._wait_until_gone()

    def kill(self) -> None:
        """End it as ``kill -9`` does, at a moment at which what it keeps is whole."""
        if self.is_whole:
            self._pause_where_whole(self.is_whole)
        self.send(signal.SIGKILL)
        self.stop()

    def restart(self) -> None:
        """Kill it, and start it again with all that it has stored."""
        self.kill()
        self.start()

    def pause(self) -> None:
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    @property
    def is_alive(self) -> bool:
        return self._leash is not None and self._leash.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and to its children."""
        if self.pid and self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def said(self) -> str:
        """The last line that it wrote; stack traces are left out."""
        lines = self.output.read_bytes().decode(errors="replace").splitlines()
        told = [line for line in lines if line.strip() and not line[0].isspace()]
        return told[-1] if told else "it did not say why"

    def _pause_where_whole(self, is_whole: Callable[[], bool]) -> None:
        for _ in range(_PAUSES):
            self.pause()
            time.sleep(_PAUSE_SECONDS)
            if is_whole():
                return
            self.resume()
            time.sleep(_PAUSE_SECONDS)

    def _told_pid(self, leash: subprocess.Popen[bytes]) -> int:
        assert leash.stdout
        told = leash.stdout.readline()
        if not told:
            raise StorageUnavailable(f"{self.what} can't be started: {self.said()}")
        return int(told)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self._is_ready():
            if process.poll() is not None:
                raise StorageUnavailable(
                    f"{self.what} ended with {process.returncode} before it was ready: {self.said()}"
                )
            if time.monotonic() > deadline:
                raise StorageUnavailable(f"{self.what} is not ready after {DEADLINE_SECONDS:.0f} s: {self.said()}")
            time.sleep(_PAUSE_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return self.answers()
        except (OSError, HTTPException):
            return False

    def _wait_until_gone(self) -> None:
        if self._leash:
            self._leash.wait(DEADLINE_SECONDS)
            if self._leash.stdout:
                self._leash.stdout.close()
        self.pid = 0


@contextmanager
def running(server: ServerProcess) -> Iterator[None]:
    """Start it; it is gone when the block ends."""
    server.start()
    try:
        yield
    finally:
        server.stop()


@contextmanager
def held_folder(prefix: str) -> Iterator[Path]:
    """A new temporary folder. It is gone when the block ends, and soon after this process was killed."""
    folder = tempfile.mkdtemp(prefix=prefix)
    command = [sys.executable, "-I", "-S", str(_LEASH), "--folder", folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


def listens(port: int) -> bool:
    """Whether somebody does, at 127.0.0.1."""
    socket.create_connection(("127.0.0.1", port), timeout=1).close()
    return True


def get(url: str) -> bytes:
    """What is there, by HTTP and past every proxy of the environment."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as answer:
        content: bytes = answer.read()
    return content
