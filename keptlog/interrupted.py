"""Ctrl-C as an exception that is over once it was handled.

Python's own is not. It notes whenever a KeyboardInterrupt leaves code that ``exec`` was given, and a process that was
begun by ``python -m`` then ends as if the signal had killed it, whatever exit code it was to have. Every dataclass is
made by ``exec``, so that is where Ctrl-C often comes while a command imports what it needs.

Python goes by the very class, and makes no such note of a class that is derived from it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

STOPPED = "stopped; nothing is lost, uncommitted work will be swept by a purge"
EXIT_STOPPED = 130
"""By Ctrl-C, or by somebody who was asked: the number by which shells tell the first."""

_Handler = Callable[[int, FrameType | None], Any]


class Interrupted(KeyboardInterrupt):
    """Somebody wants this process to end."""


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """A handler of signals."""
    raise Interrupted


def watch_ctrl_c() -> None:
    """From now on Ctrl-C raises ``Interrupted``, after what its handler does now; for the main thread.

    A process that ignores it goes on to do so. Who replaces the handler makes this call necessary again.
    """
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and not isinstance(handler, _Watching) and handler is not interrupt:
        is_pythons = handler is signal.default_int_handler
        signal.signal(signal.SIGINT, interrupt if is_pythons else _Watching(handler))


class _Watching:
    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self._handler(number, frame)
        except KeyboardInterrupt as interrupted:
            raise Interrupted from interrupted
