"""Standard streams that the caller has closed (``>&-``) lead nowhere from the first moment on.

Python does without a stream that is closed. But then its number is free, and the next file that is opened gets it:

    stderr is closed     0 stdin   1 stdout
    a segment is opened  0 stdin   1 stdout   2 segment
    Arrow complains                           into the segment

So ``/dev/null`` is opened in the place of each, for this process and for those that it starts. A command then does what
it does with ``>/dev/null``. Where stdout is what is asked for, and not just where the answer goes, it asks
``closed_streams``.

A stdout that takes nothing any more, as on a full disk, has an error of its own: ``NotPrinted``. What the command did
is done by then, so nobody may take it for a failure of that. A stderr that takes nothing ends no work.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


_closed: set[str] = set()


def closed_streams() -> frozenset[str]:
    """Which of this process's streams its caller had closed: ``stdin``, ``stdout``, ``stderr``."""
    return frozenset(_closed)


def open_closed_streams() -> None:
    """Open them; to be called before anything else is opened."""
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            _closed.add(name)
            # The lowest that is free is taken, and that is this one: those below it are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", errors="replace", closefd=False))


class NotPrinted(Exception):
    """Stdout did not take the answer. It is no ``OSError``, because whoever handles one means a file or the network."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.is_reader_gone = error.errno == errno.EPIPE


class _Stdout(io.FileIO):
    def write(self, part: ReadableBuffer, /) -> int:
        try:
            return super().write(part)
        except OSError as error:
            raise NotPrinted(error) from error


class _Stderr(io.FileIO):
    def write(self, part: ReadableBuffer, /) -> int:
        try:
            return super().write(part)
        except OSError:
            # There is nowhere left to tell it, and what is told there is not worth ending the work.
            return memoryview(part).nbytes


def guard_output() -> None:
    """From now on a stdout that takes nothing raises ``NotPrinted``, and a stderr that takes nothing is read by nobody.

    Both are UTF-8, whatever the locale: JSON is. For a process that is a command's alone.
    """
    out = _text(_Stdout(1, "w", closefd=False), "<stdout>", "surrogateescape", is_by_line=os.isatty(1))
    err = _text(_Stderr(2, "w", closefd=False), "<stderr>", "backslashreplace", is_by_line=True)
    for name, stream in (("stdout", out), ("stderr", err)):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _text(raw: io.FileIO, name: str, errors: str, *, is_by_line: bool) -> TextIO:
    """A standard stream as Python makes it; a file's name that is no UTF-8 is printed as the bytes that it is."""
    raw.name = name
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors=errors, newline="\n", line_buffering=is_by_line
    )
