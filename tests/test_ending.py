"""A process ends as Python ends one: the same exit code, output and errors, and what asked to be called is called."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_AT_ONCE = """
import os, sys
from keptlog.ending import exit_code_of
os._exit(exit_code_of(run))
"""
_HEAD = """
import atexit, os, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
folder = []
"""
_FREED = "class Freed:\n    def __del__(self): print('freed')\nfreed = Freed()"


def _ended(program: str, *, shell: str = '"$0" -c "$1"') -> tuple[int, str, str]:
    done = subprocess.run(["bash", "-c", shell, sys.executable, program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "print('answer')",
        "print('answer', end='')",
        "sys.exit(3)",
        "sys.exit(300)",
        "sys.exit('a reason')",
        "sys.exit(None)",
        "sys.exit(True)",
        "atexit.register(print, 'first asked'); atexit.register(print, 'last asked'); sys.exit(1)",
        "threading.Timer(1, print, ['by a thread']).start(); print('before it')",
        "ThreadPoolExecutor(1).submit(time.sleep, 1).add_done_callback(lambda _: print('by a pool')); print('first')",
        "threading.Thread(target=time.sleep, args=[60], daemon=True).start()",
        "folder.append(tempfile.TemporaryDirectory()); atexit.register(lambda: print(os.path.isdir(folder[0].name)))",
    ],
)
@pytest.mark.parametrize("shell", ['"$0" -c "$1"', '"$0" -c "$1" >&-', '"$0" -c "$1" 2>&-', '"$0" -c "$1" >/dev/full'])
def test_it_ends_as_by_itself(body: str, shell: str) -> None:
    program = f"{_HEAD}def run():\n    {body}\n    return 'nothing'\n"
    code, out, err = _ended(f"{program}{_AT_ONCE}", shell=shell)
    by_itself, its_out, its_err = _ended(f"{program}run()", shell=shell)
    assert (code, out) == (by_itself, its_out)
    if "full" not in shell:
        # Python has words of its own for what could not be written.
        assert err == its_err


def test_what_nobody_caught_is_told_with_its_trace() -> None:
    code, out, err = _ended(f"def run():\n    raise LookupError('nobody looks')\n{_AT_ONCE}")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith("LookupError: nobody looks\n")


def test_what_was_imported_is_not_taken_apart() -> None:
    assert _ended(f"{_FREED}\nrun = lambda: print('answer')") == (0, "freed\n", "")
    assert _ended(f"{_FREED}\nrun = lambda: print('answer'){_AT_ONCE}") == (0, "answer\n", "")


def test_ctrl_c_after_the_answer_changes_nothing() -> None:
    ctrl_c = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)"
    assert _ended(f"{ctrl_c}\nrun = lambda: print('answer'){_AT_ONCE}") == (0, "answer\n", "")


def test_ctrl_c_ends_the_waiting_for_a_thread(tmp_path: Path) -> None:
    waits = "threading._register_atexit(print, flush=True)\n    threading.Thread(target=time.sleep, args=[600]).start()"
    program = f"{_HEAD}def run():\n    {waits}"
    command = [sys.executable, "-c", f"{program}{_AT_ONCE}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (130, "")


@pytest.mark.parametrize("begins_after_seconds", [0, 0.5])
def test_ctrl_c_while_a_pool_starts_its_first_thread_leaves_nobody_waiting_for_that_thread(
    begins_after_seconds: float,
) -> None:
    # Neither Python nor the pool gets to know of it, so nobody tells it that there is no more to do.
    program = f"""{_HEAD}
start, begin = threading.Thread.start, threading.Thread._bootstrap
def begin_later(thread):
    time.sleep({begins_after_seconds})
    begin(thread)
def interrupted():
    raise KeyboardInterrupt
def start_interrupted(thread):
    thread._started.wait = interrupted
    start(thread)
def run():
    folder.append(ThreadPoolExecutor(2))
    threading.Thread.start, threading.Thread._bootstrap = start_interrupted, begin_later
    try:
        folder[0].submit(print, "what was begun", flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
{_AT_ONCE}"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out) in {(130, "what was begun\n"), (130, "")}
