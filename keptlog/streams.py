"""Standard streams that the caller has closed (``>&-``) lead nowhere from the first moment on.

Python does without a stream that is closed. But then its number is free, and the next file that is opened gets it:

    stderr is closed     0 stdin   1 stdout
    a segment is opened  0 stdin   1 stdout   2 segment
    Arrow complains                           into the segment

So ``/dev/null`` is opened in the place of each, for this process and for those that it starts. A command then does what
it does with ``>/dev/null``. Where a program is to read stdout, as with ``--json``, or records go there, it asks
``closed_streams``.

A stdout that takes nothing any more, as on a full disk, has an error of its own: ``NotPrinted``. What the command did
is done by then, so nobody may take it for a failure of that. A stderr that takes nothing ends no work.

A terminal obeys what it is shown: a file in a folder that somebody has sent may be called so that it clears the screen
and writes "unchanged" there. So of what a terminal would obey it gets the code, as Python writes it. A file or a pipe
gets all as it is.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))

_OBEYED = re.compile(r"\x1b\[(?:0|1|31)m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""keptlog's own colours, and whatever else moves a terminal, or turns text around; lines and tabs are text."""

_File = TypeVar("_File", bound=io.FileIO)

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


class _Stdout(io.BufferedWriter):
    """Ctrl-C may come at any line of Python. Here, what the file below has taken is not in the buffer any more."""

    def write(self, part: ReadableBuffer, /) -> int:
        try:
            return super().write(part)
        except OSError as error:
            raise NotPrinted(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise NotPrinted(error) from error


class _Stderr(io.FileIO):
    """Nothing is kept above it, because what it does not take is dropped."""

    def write(self, part: ReadableBuffer, /) -> int:
        whole = memoryview(part).cast("B")
        rest = whole
        # There is nowhere left to tell it, and what is told there is not worth ending the work.
        with suppress(OSError):
            while rest:
                rest = rest[super().write(rest) or len(rest) :]
        return len(whole)


class _Terminal(io.TextIOWrapper):
    """Shows what a terminal would obey."""

    def write(self, text: str, /) -> int:
        super().write(_OBEYED.sub(_shown, text))
        return len(text)


def _shown(found: re.Match[str]) -> str:
    text = found[0]
    return text if len(text) > 1 else ascii(text)[1:-1]


def guard_output() -> None:
    """From now on a stdout that takes nothing raises ``NotPrinted``, and a stderr that takes nothing is read by nobody.

    A terminal is shown what it would obey. Both are UTF-8, whatever the locale: JSON is. For a process that is a
    command's alone.
    """
    out = _text(_Stdout(_named(io.FileIO(1, "w", closefd=False), "<stdout>")), "surrogateescape", by_line=os.isatty(1))
    err = _text(_named(_Stderr(2, "w", closefd=False), "<stderr>"), "backslashreplace", by_line=True)
    for name, stream in (("stdout", out), ("stderr", err)):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _named(file: _File, name: str) -> _File:
    file.name = name
    return file


def _text(below: io.BufferedWriter | io.FileIO, errors: str, *, by_line: bool) -> TextIO:
    """A standard stream as Python makes it; a file's name that is no UTF-8 is printed as the bytes that it is."""
    kind = _Terminal if below.isatty() else io.TextIOWrapper
    return kind(below, encoding="utf-8", errors=errors, newline="\n", line_buffering=by_line)
