"""Holds one server, or a folder: it ends with whoever started it, whatever ended that.

    starter ──stdin, which nobody writes to──> leash ──> the server and its children, a process group of their own
            <──────── the server's pid ────────

A pipe is closed by the system when the last process that holds it is gone, after ``kill -9`` too. Then the server is
asked to end (SIGINT: to Postgres the fast way, to others Ctrl-C), and after a while its group is killed.

    python leash.py USER SERVER …         USER is empty, or who the server is to be: Postgres refuses to be root
    python leash.py --folder FOLDER       which is deleted then, although servers may still be leaving it

It imports nothing of ours, so that it starts at once and from anywhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

_GRACE_SECONDS = 5.0
_DELETIONS = 60
"""Tries, until the last server has left."""


def main() -> int:
    user, *command = sys.argv[1:]
    if user == "--folder":
        return _delete_with_starter(*command)
    whom = {"user": user, "group": user, "extra_groups": []} if user else {}
    # Whoever started us may have been told to ignore it, and a server would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        process_group=0,
        **whom,  # type: ignore[call-overload]
    )
    threading.Thread(target=_end_with_starter, args=[server], daemon=True).start()
    # A starter that was interrupted at this moment reads no more; the thread ends the server then.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, b"%d\n" % server.pid)
    code = server.wait()
    _kill_group(server)
    return int(code)


def _end_with_starter(server: subprocess.Popen[bytes]) -> None:
    _wait_for_starter()
    for number in (signal.SIGCONT, signal.SIGINT):
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, number)
    time.sleep(_GRACE_SECONDS)
    _kill_group(server)


def _delete_with_starter(folder: str) -> int:
    _wait_for_starter()
    for _ in range(_DELETIONS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):  # noqa: PTH110  # pathlib takes longer to import than all else here
            return 0
        time.sleep(_GRACE_SECONDS / 20)
    return 1


def _wait_for_starter() -> None:
    # Not sys.stdin: its lock would be held when this process ends.
    while os.read(0, 1):
        pass


def _kill_group(server: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main() & 0xFF)
