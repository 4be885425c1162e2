"""A command's stderr is its own, whatever other threads of the process complain about."""

from __future__ import annotations

import _thread
import sys
import threading

import pytest

from tests.cli.own_threads import stderr_of_own_threads


def test_what_older_threads_and_those_of_libraries_write_is_no_word_of_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere: list[str] = []
    begins, done, done_too = threading.Event(), threading.Event(), threading.Event()

    def older() -> None:
        begins.wait(60)
        sys.stderr.write("older\n")
        done.set()

    def of_a_library() -> None:
        sys.stderr.write("of a library\n")
        done_too.set()

    class Process:
        def write(self, text: str) -> int:
            elsewhere.append(text)
            return len(text)

    monkeypatch.setattr("sys.__stderr__", Process())
    thread = threading.Thread(target=older)
    thread.start()
    with stderr_of_own_threads():
        begins.set()
        assert done.wait(60)
        _thread.start_new_thread(of_a_library, ())
        assert done_too.wait(60)
        own = threading.Thread(target=lambda: sys.stderr.write("its thread\n"))
        own.start()
        own.join()
        sys.stderr.write("the command\n")
    thread.join()
    assert capsys.readouterr().err == "its thread\nthe command\n"
    assert "".join(elsewhere) == "older\nof a library\n"
