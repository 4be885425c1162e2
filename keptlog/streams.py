"""Standard streams that the caller has closed (``>&-``) lead nowhere from the first moment on.

Python does without a stream that is closed. But then its number is free, and the next file that is opened gets it:

    stderr is closed     0 stdin   1 stdout
    a segment is opened  0 stdin   1 stdout   2 segment
    Arrow complains                           into the segment

So ``/dev/null`` is opened in the place of each, for this process and for those that it starts. A command then does what
it does with ``>/dev/null``.
"""

from __future__ import annotations

import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed_streams() -> None:
    """Open them; to be called before anything else is opened."""
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free is taken, and that is this one: those below it are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", errors="replace", closefd=False))
