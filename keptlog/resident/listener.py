"""The resident: waits for clients, forks for each, and does nothing else.

So it has one thread, no connection and no open file, and nothing that a fork must not take along. Where a library has
started a thread all the same, it forks nothing, and its clients do their commands themselves. So does a client for whom
the machine has no process left, or no memory: that passes, and costs nobody else.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import NoReturn

from keptlog.foreign_json import json_value
from keptlog.resident.command import NEVER_BEGAN, carry_out
from keptlog.resident.handover import PASSED_ON, SIGNAL
from keptlog.resident.place import as_short

_ALL_BUT_ITS_USERS = 0o177
_WAITING = 64
_PAUSE_SECONDS = 0.1
_HANDLED = (signal.SIGCHLD, signal.SIGTERM)
"""Signals of its own, which a fork is not to take for its own."""


def serve(path: str, own_likeness: list[object], run: Callable[[], object], keeper: int) -> None:
    """Carry out by ``run`` what clients at this socket ask for, until the file ``keeper`` is at its end.

    It ends also of a SIGTERM. Commands that have begun go on.

    Raises:
        OSError: the socket can't be made.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whoever sees the socket may end it, and it takes the socket along.
    signal.signal(signal.SIGTERM, _end)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        _bind(listening, path)
        own = os.stat(path).st_ino  # noqa: PTH116
        try:
            _serve(listening, json_value(json.dumps(own_likeness)), run, keeper)
        finally:
            # Another one may have taken its place.
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == own:  # noqa: PTH116
                    os.unlink(path)  # noqa: PTH108


def thread_count() -> int:
    """Of this process, those of libraries too."""
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError:
        return threading.active_count()


def _bind(listening: socket.socket, path: str) -> None:
    """Under another name first: a socket that is found is one that answers, and nobody else's from its first moment."""
    new = f"{path}.{os.getpid()}"
    before = os.umask(_ALL_BUT_ITS_USERS)
    try:
        with as_short(new) as short:
            listening.bind(short)
    finally:
        os.umask(before)
    listening.listen(_WAITING)
    os.replace(new, path)  # noqa: PTH105


def _serve(listening: socket.socket, own_likeness: object, run: Callable[[], object], keeper: int) -> None:
    clients: dict[int, socket.socket] = {}

    def reap(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                _tell(clients.pop(ended[0], None), ended[1])

    gc.collect()
    gc.freeze()  # what was imported stays in the pages that all forks share
    signal.signal(signal.SIGCHLD, reap)
    while True:
        events = _next(listening, keeper, clients)
        if keeper in events:
            return
        _kill_left(clients, events)
        if listening.fileno() in events:
            client = _accepted(listening)
            if client is None:
                continue
            pid = _forked() if thread_count() == 1 else None
            if pid == 0:
                try:
                    for each in (listening, *clients.values()):
                        each.close()
                    _as_in_a_new_process()
                    carry_out(client, own_likeness, run)
                finally:  # a fork is not to end as the resident does, which takes its socket along
                    os._exit(NEVER_BEGAN)
            if pid:
                clients[pid] = client
            else:
                client.close()


def _accepted(listening: socket.socket) -> socket.socket | None:
    """The next client; null if it is gone already, or this process has no room for it, which may pass."""
    try:
        return listening.accept()[0]
    except OSError:
        select.select((), (), (), _PAUSE_SECONDS)  # it still waits, and would be told of again at once
        return None


def _forked() -> int | None:
    """A fork, as ``os.fork`` tells it; null if there is no room for one more process."""
    try:
        return os.fork()
    except OSError:
        return None


def _next(listening: socket.socket, keeper: int, clients: Mapping[int, socket.socket]) -> dict[int, int]:
    """Wait for something to do: file descriptors, and what poll says of each. Signals are heard here alone."""
    waiting = select.poll()
    for each in (listening.fileno(), keeper):
        waiting.register(each, select.POLLIN)
    for client in clients.values():
        waiting.register(client, 0)  # that its other end is gone is told all the same
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    try:
        return dict(waiting.poll())
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)


def _kill_left(clients: Mapping[int, socket.socket], events: Mapping[int, int]) -> None:
    """Kill the commands whose clients are gone. They would do so themselves, but one that Ctrl-Z has stopped can't."""
    for pid, client in clients.items():
        if events.get(client.fileno(), 0) & select.POLLHUP:
            os.kill(pid, signal.SIGKILL)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit()


def _as_in_a_new_process() -> None:
    # Under nohup, or in the background of a script, a resident itself ignores what its clients do not.
    for number in (*_HANDLED, *PASSED_ON):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


def _tell(client: socket.socket | None, status: int) -> None:
    """How a command was ended that could not say so itself."""
    if client is None:
        return
    with client:
        if os.WIFSIGNALED(status):
            with contextlib.suppress(OSError):
                client.sendall(f"{SIGNAL} {os.WTERMSIG(status)}\n".encode())
