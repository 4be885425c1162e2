"""The ``keptlog`` command, also as ``python -m keptlog``: carried out by a resident, if there is one, or here."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from keptlog.interrupted import EXIT_STOPPED, told_if_stopped, watch_ctrl_c
from keptlog.streams import open_closed_streams

# Most of a command's time is what it imports, so that is where Ctrl-C may well come.
# ruff: noqa: PLC0415


def run() -> None:
    """Run the command line; ends the process with its exit code."""
    open_closed_streams()
    has_begun = False
    try:
        watch_ctrl_c()
        from keptlog.resident.handover import hand_over

        code = hand_over(sys.argv)  # once a resident has begun it, Ctrl-C is passed on to that, and raises nothing here
        if code is None:
            # NumPy's library for matrices starts a thread a core when it is imported: a tenth of a second for nothing.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            from keptlog.cli import run as run_here
            from keptlog.ending import exit_code_of

            has_begun = True
            code = exit_code_of(run_here)
    except KeyboardInterrupt:
        print(f"keptlog: {told_if_stopped()}", file=sys.stderr)  # noqa: T201
        code = EXIT_STOPPED
        # Whoever has begun to carry it out prints its document, too.
        if not has_begun:
            _print_document(told_if_stopped())
    os._exit(code)


def _print_document(told: str) -> None:
    """With ``--json`` that of a command that was stopped before it began."""
    with suppress(KeyboardInterrupt, OSError):  # it has ended already
        from keptlog.cli import print_stopped

        print_stopped(told)
        sys.stdout.flush()


if __name__ == "__main__":
    run()
