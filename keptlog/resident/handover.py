"""The client: hands this process's command over to a resident, passes signals on to it, and ends as it ends.

It imports next to nothing, because that is all that it takes. Whatever speaks against handing over, before the command
has begun, means that this process does it itself: no resident, one that does not answer, standard streams that are
closed, a word or a variable that names another (``--file <(…)``), a terminal that this process may not read.

What is passed on are the signals that a terminal, a shell or a timer sends. Ctrl-Z stops the command, too. What this
process ignores, as under ``nohup``, it does not pass on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from keptlog.resident.likeness import likeness
from keptlog.resident.place import (
    address_file,
    as_short,
    is_off,
    is_own_folder,
    is_own_socket,
    own_folder,
    socket_beside,
    socket_in,
)
from keptlog.streams import closed_streams

LENGTH = struct.Struct("!I")
GO = b"go"
HERE, PID, EXIT, SIGNAL = "here", "pid", "exit", "signal"
"""What is answered, each as a line with a number: somebody listens; it is ready; how it ended."""
STREAMS = (0, 1, 2)
_LASTING = {"spark-server", "spark-archive", "metrics", "resident"}
"""Commands that may run for months, as services of their own, and one that starts a Spark of its own and ends it."""
_LASTING_UNLESS = {"notify": {"--once", "--dry-run", "--test"}}
"""Commands that may run for months too, but for those with one of these words."""
_WITHOUT_SPARK = {
    *("topic", "append", "read", "reader", "files", "plan", "explain", "history", "status", "verify", "retain"),
    *("delete-records", "truncate", "purge", "receipt", "repair", "notify", "doctor", "erasure list", "erasure show"),
}
"""Commands that start no Java, by their first words. Others would start one in a fork, which nobody has tried."""
_STREAM = "/fd/"
_OF_STREAM = re.compile(r"/(dev|proc/[^/]+)/fd/\d+").fullmatch
_ANSWER_SECONDS = 2.0
"""Who is not answered by then does its command itself, and the resident's fork ends without having begun."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_EXIT_FAILED = 1
_BY_SIGNAL = 128


def hand_over(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> int | None:
    """The exit code of this command, carried out by a resident; null if this process has to do it."""
    path = _socket_for(argv, environment)
    if path is None or not _is_plain(argv, environment):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as resident:
        try:
            resident.settimeout(_ANSWER_SECONDS)
            with as_short(path) as short:
                resident.connect(short)
            # What is sent stays open until somebody takes it, and who reads this command's output waits for its end.
            if not is_of_this_user(resident) or (_line(resident) or ("", 0))[0] != HERE:
                return None
            body = json.dumps(_asked(argv, environment)).encode()
            socket.send_fds(resident, [LENGTH.pack(len(body))], STREAMS)
            resident.sendall(body)
            ready = _line(resident)
        except (OSError, ValueError):
            return None
        what, pid = ready or ("", 0)
        return _until_it_ends(resident, pid) if what == PID else None


def _socket_for(argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Where somebody may listen who would do this command: beside a warm Spark, or for commands that need none."""
    if is_off(environment) or _may_last(argv):
        return None
    file = address_file(environment)
    if file and is_own_socket(socket_beside(file)):
        return socket_beside(file)
    folder = own_folder(environment)
    if folder is None or not _needs_no_spark(argv[1:]) or not is_own_folder(folder):
        return None
    return socket_in(folder) if is_own_socket(socket_in(folder)) else None


def _may_last(argv: Sequence[str]) -> bool:
    lasting = (name for name, ends in _LASTING_UNLESS.items() if name in argv and ends.isdisjoint(argv))
    return not _LASTING.isdisjoint(argv) or any(lasting)


def _needs_no_spark(words: Sequence[str]) -> bool:
    return not _WITHOUT_SPARK.isdisjoint((" ".join(words[:1]), " ".join(words[:2])))


def is_of_this_user(other: socket.socket) -> bool:
    """Whether the other end is this user's. Where the system does not tell, the socket's file does."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    told = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", told)
    return bool(uid == os.geteuid())


def _is_plain(argv: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether this process has its three streams, names no other that it inherited, and may read its terminal."""
    # A variable may hold a shell's whole function, in which one is written somewhere.
    names_other = any(_STREAM in word for word in argv) or any(map(_OF_STREAM, environment.values()))
    return not closed_streams() and not names_other and not _is_in_background()


def _is_in_background() -> bool:
    """Whether a terminal would stop this process if it read what is typed there."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        # It is no terminal that controls this process.
        return False


def _asked(argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, object]:
    umask = os.umask(0o077)
    os.umask(umask)
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name[:7] == "RLIMIT_"}
    return {
        "likeness": likeness(),
        "argv": list(argv),
        "environment": dict(environment),
        "folder": os.getcwd(),  # noqa: PTH109  # pathlib takes longer to import than all of this
        "umask": umask,
        "limits": limits,
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "processors": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "ignored": [number for number in PASSED_ON if signal.getsignal(number) is signal.SIG_IGN],
    }


def _line(resident: socket.socket) -> tuple[str, int] | None:
    """A word and its number; null if the other end is gone, or said no."""
    told = b""
    while not told.endswith(b"\n"):
        more = resident.recv(64)
        if not more:
            return None
        told += more
    word, _, number = told.decode().partition(" ")
    return word, int(number)


def _until_it_ends(resident: socket.socket, pid: int) -> int:
    """Let the command begin, and wait for it."""
    for passed_on in PASSED_ON:
        if signal.getsignal(passed_on) is not signal.SIG_IGN:
            signal.signal(passed_on, _passing_on(pid))
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, _stopping(pid))
    try:
        resident.settimeout(None)
        resident.sendall(GO)
        ended = _line(resident)
    except OSError:
        ended = None
    if ended is None:
        print("keptlog: the process that carried this out is gone, and has not said how it ended", file=sys.stderr)  # noqa: T201
        return _EXIT_FAILED
    how, number = ended
    if how == SIGNAL:
        with contextlib.suppress(OSError):  # what can't be caught needs no handler taken away
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return _BY_SIGNAL + number
    return number


def _passing_on(pid: int) -> Callable[[int, FrameType | None], None]:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        # Its process stays until this one has heard how it ended, so the number is nobody else's.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    return pass_on


def _stopping(pid: int) -> Callable[[int, FrameType | None], None]:
    """It is no member of the terminal's group, which Ctrl-Z stops."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    return stop
