"""Ctrl-C as an exception that is over once it was handled.

Python's own is not. It notes whenever a KeyboardInterrupt leaves code that ``exec`` was given, and a process that was
begun by ``python -m`` then ends as if the signal had killed it, whatever exit code it was to have. Every dataclass is
made by ``exec``, so that is where Ctrl-C often comes while a command imports what it needs.

Python goes by the very class, and makes no such note of a class that is derived from it.

And it may be lost. What is raised while something is collected (the callback of a weak reference, ``__del__``) goes to
nobody: Python tells of it and goes on. Then the signal comes again, a moment later.

Or it becomes another error. Who calls Python from another language may tell of its own failure instead: pydantic, of a
document that it could not write.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

NOT_BEGUN = "stopped before anything was done"
STOPPED = "stopped; nothing is lost, uncommitted work will be swept by a purge"
EXIT_STOPPED = 130
"""By Ctrl-C, or by somebody who was asked: the number by which shells tell the first."""

_COLLECTED_BY_SECONDS = 0.05
"""Longer than a callback takes that swallows what is raised in it; if it was not, the signal comes once more."""

_Handler = Callable[[int, FrameType | None], Any]


_raised: list[str] = []
"""Not empty once an interruption was."""


_told = [NOT_BEGUN]
"""What is true if it comes now; and what is once a commit was sent, if that differs."""
_sent: list[str] = []
"""The run whose commit was sent since."""
_under_way: list[str] = []
"""What is true instead, of each step that is under way and can't be taken back."""


def if_stopped(*told: str) -> None:
    """From now on that is told of a command that is stopped.

    A second text is told once an append was sent, and names its run where it has ``{run_id}``.
    """
    _told[:] = told
    _sent.clear()
    _under_way.clear()


def note_sent(run_id: str) -> None:
    """From now on nobody knows whether the append of this run has landed."""
    _sent[:] = [run_id]


@contextmanager
def if_stopped_within(told: str) -> Iterator[None]:
    """That is told of whatever command is stopped within, for what is done there can't be taken back."""
    _under_way.append(told)
    try:
        yield
    except Exception:
        # One that an interruption has become is told at the end.
        if not was_interrupted():
            _under_way.remove(told)
        raise
    _under_way.remove(told)


def told_if_stopped() -> str:
    """What is told of a command that was stopped now."""
    newest = _under_way[-1:]  # looked at once, for a thread may be just ending such a step
    if newest:
        return newest[0]
    return _told[-1].format(run_id=_sent[0]) if _sent else _told[0]


class Interrupted(KeyboardInterrupt):
    """Somebody wants this process to end."""

    def __init__(self) -> None:
        super().__init__()
        _raised.append(STOPPED)


def was_interrupted() -> bool:
    """Whether what fails now may be an interruption that a library has made a failure of its own of."""
    return bool(_raised)


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """A handler of signals."""
    raise Interrupted


def watch_ctrl_c() -> None:
    """From now on Ctrl-C raises ``Interrupted``, after what its handler does now; for the main thread.

    A process that ignores it goes on to do so. Who replaces the handler makes this call necessary again.
    """
    raise_again_if_swallowed()
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and not isinstance(handler, _Watching) and handler is not interrupt:
        is_pythons = handler is signal.default_int_handler
        signal.signal(signal.SIGINT, interrupt if is_pythons else _Watching(handler))


def raise_again_if_swallowed() -> None:
    """From now on an interruption that Python swallows comes again; for the main thread, whose handlers raise one."""
    if not isinstance(sys.unraisablehook, _RaisingAgain):
        sys.unraisablehook = _RaisingAgain(sys.unraisablehook)


class _RaisingAgain:
    def __init__(self, hook: Callable[[UnraisableHookArgs], Any]) -> None:
        self._hook = hook
        self._main = _thread.get_ident()

    def __call__(self, swallowed: UnraisableHookArgs) -> None:
        if not issubclass(swallowed.exc_type, KeyboardInterrupt) or _thread.get_ident() != self._main:
            self._hook(swallowed)
            return
        before = signal.getsignal(signal.SIGINT)

        def once(_number: int, _frame: FrameType | None) -> NoReturn:
            signal.signal(signal.SIGINT, before)
            raise Interrupted

        # The handler that raised may ignore further ones by now, since it knows of this one.
        signal.signal(signal.SIGINT, once)
        # No class of threading: its locks may be held by what the collection came between.
        _thread.start_new_thread(_send, (self._main,))


def _send(thread: int) -> None:
    time.sleep(_COLLECTED_BY_SECONDS)  # noqa: TID251  # a process has one, and only a test would give another
    signal.pthread_kill(thread, signal.SIGINT)


class _Watching:
    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self._handler(number, frame)
        except KeyboardInterrupt as interrupted:
            raise Interrupted from interrupted
