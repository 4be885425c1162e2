"""What a command that runs in this process writes to stderr, without what others write meanwhile.

The process has threads of earlier tests: Py4J's, Arrow's, gRPC's. What one of them complains about is no word of the
command, and would be taken for one. It is not lost: it goes to the stderr of the process.

A thread is the command's if it is the one that runs it, or was started since by Python. Threads of libraries are
neither; Python knows them as dummies.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


@contextmanager
def stderr_of_own_threads() -> Iterator[None]:
    """While it lasts, ``sys.stderr`` takes nothing from threads that were there before."""
    whole = sys.stderr
    sys.stderr = _Sorted(whole, sys.__stderr__ or whole)
    try:
        yield
    finally:
        sys.stderr = whole


class _Sorted:
    """A stream that hands on what it is not meant for."""

    def __init__(self, own: TextIO, others: TextIO) -> None:
        self._own, self._others = own, others
        # Not by their numbers: those of threads that have ended are given to new ones.
        self._before = set(threading.enumerate()) - {threading.current_thread()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def write(self, text: str) -> int:
        thread = threading.current_thread()
        is_other = thread in self._before or isinstance(thread, threading._DummyThread)
        return (self._others if is_other else self._own).write(text)
