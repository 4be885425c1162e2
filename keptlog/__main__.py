"""The ``keptlog`` command, also as ``python -m keptlog``: carried out by a resident, if there is one, or here."""

from __future__ import annotations

import os
import sys

from keptlog.interrupted import EXIT_STOPPED, told_if_stopped, watch_ctrl_c
from keptlog.streams import open_closed_streams

# Most of a command's time is what it imports, so that is where Ctrl-C may well come.
# ruff: noqa: PLC0415


def run() -> None:
    """Run the command line; ends the process with its exit code."""
    open_closed_streams()
    try:
        watch_ctrl_c()
        from keptlog.resident.handover import hand_over

        code = hand_over(sys.argv)
        if code is None:
            # NumPy's library for matrices starts a thread a core when it is imported: a tenth of a second for nothing.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            from keptlog.cli import run as run_here
            from keptlog.ending import exit_code_of

            code = exit_code_of(run_here)
    except KeyboardInterrupt:
        print(f"keptlog: {told_if_stopped()}", file=sys.stderr)  # noqa: T201
        code = EXIT_STOPPED
    os._exit(code)


if __name__ == "__main__":
    run()
