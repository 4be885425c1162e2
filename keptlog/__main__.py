"""The ``keptlog`` command, also as ``python -m keptlog``: carried out by a resident, if there is one, or here."""

from __future__ import annotations

import sys

from keptlog.resident.handover import hand_over


def run() -> None:
    """Run the command line; ends the process with its exit code."""
    code = hand_over(sys.argv)
    if code is not None:
        sys.exit(code)
    from keptlog.cli import run as run_here  # noqa: PLC0415  # most of a command's time is what it imports

    run_here()


if __name__ == "__main__":
    run()
