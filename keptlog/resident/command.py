"""A resident's fork: it becomes the process that its client would have been, and tells it how that ended.

A thread waits for the client's end, and then kills this process: as if the command itself had been killed. The process
stays until the client has heard how it ended.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from keptlog.ending import exit_code_of
from keptlog.foreign_json import json_value
from keptlog.interrupted import EXIT_STOPPED, NOT_BEGUN, if_stopped, told_if_stopped
from keptlog.resident.handover import EXIT, GO, HERE, LENGTH, PID, STREAMS, is_of_this_user

_REQUEST_SECONDS = 10.0
NEVER_BEGAN = 1
"""What a fork ends with that has not begun; nobody looks at it."""


def carry_out(client: socket.socket, own_likeness: object, run: Callable[[], object]) -> NoReturn:
    """Do what the client asks for, by ``run``; or end, so that it does it itself."""
    if_stopped(NOT_BEGUN)  # the resident that was forked has begun
    try:
        _carry_out(client, own_likeness, run)
    except KeyboardInterrupt:  # before the command could take it
        print(f"keptlog: {told_if_stopped()}", file=sys.stderr)  # noqa: T201
        _tell_end(client, EXIT_STOPPED)
        with contextlib.suppress(OSError):
            while client.recv(len(GO)):  # until the client has heard it
                pass
        os._exit(EXIT_STOPPED)


def _carry_out(client: socket.socket, own_likeness: object, run: Callable[[], object]) -> NoReturn:
    try:
        asked = _request(client, own_likeness)
        _become(asked)
        client.sendall(f"{PID} {os.getpid()}\n".encode())
        client.settimeout(None)
        has_begun = client.recv(len(GO)) == GO
    except Exception:  # noqa: BLE001  # nothing was done yet, and the client does it
        os._exit(NEVER_BEGAN)
    if not has_begun:
        os._exit(NEVER_BEGAN)
    has_ended = threading.Event()
    watch = threading.Thread(target=_end_with, args=(client, has_ended), daemon=True)
    watch.start()
    code = exit_code_of(run)
    has_ended.set()
    if _tell_end(client, code):
        watch.join()
    os._exit(code)


def _tell_end(client: socket.socket, code: int) -> bool:
    """Whether the client could be told."""
    with contextlib.suppress(OSError):
        client.sendall(f"{EXIT} {code}\n".encode())
        return True
    return False


def _request(client: socket.socket, own_likeness: object) -> Mapping[str, Any]:
    """What is asked for; the client's streams are this process's from here on.

    Raises:
        ValueError: the client is another user's, or would import something else.
        OSError: it is gone.
    """
    client.settimeout(_REQUEST_SECONDS)
    if not is_of_this_user(client):
        raise ValueError("another user's")
    client.sendall(f"{HERE} {os.getpid()}\n".encode())
    head, streams, _, _ = socket.recv_fds(client, LENGTH.size, len(STREAMS))
    if len(head) != LENGTH.size or len(streams) != len(STREAMS):
        raise ValueError("no request")
    (left,) = LENGTH.unpack(head)
    parts = []
    while left:
        parts.append(client.recv(min(left, 1 << 20)))
        if not parts[-1]:
            raise ValueError("half a request")
        left -= len(parts[-1])
    asked: dict[str, Any] = json_value(b"".join(parts))
    if asked["likeness"] != own_likeness:
        raise ValueError("not alike")
    for given, stream in zip(streams, STREAMS, strict=True):
        os.dup2(given, stream)
        os.close(given)
    return asked


def _become(asked: Mapping[str, Any]) -> None:
    """All that the client's process would have had from its beginning.

    Raises:
        OSError, ValueError: this process can't have it, such as a limit that is higher than its own.
    """
    os.setsid()
    os.chdir(asked["folder"])
    os.umask(asked["umask"])
    for name, limits in asked["limits"].items():
        which = getattr(resource, name)
        if resource.getrlimit(which) != tuple(limits):
            resource.setrlimit(which, tuple(limits))
    if asked["niceness"] != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, asked["niceness"])
    if asked["processors"] is not None:
        os.sched_setaffinity(0, asked["processors"])
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    tempfile.tempdir = None
    sys.argv = asked["argv"]
    for number, name in zip(STREAMS, ("stdin", "stdout", "stderr"), strict=True):
        stream = _opened(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # one of those just made


def _opened(number: int, before: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream as Python makes it: what the one before had found out was true of another file."""
    stream = open(  # noqa: SIM115  # it stays open
        number, "w" if number else "r", encoding=before.encoding, errors=before.errors, newline="\n", closefd=False
    )
    stream.reconfigure(write_through=before.write_through)
    stream.buffer.raw.name = before.name  # type: ignore[attr-defined]  # "<stdin>", as in messages
    return stream


def _end_with(client: socket.socket, has_ended: threading.Event) -> None:
    """Wait until the client is gone, or content."""
    with contextlib.suppress(OSError):
        client.recv(1)
    if not has_ended.is_set():
        os.kill(os.getpid(), signal.SIGKILL)
