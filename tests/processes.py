"""What a process has started, and whether that is gone. Linux tells it below ``/proc``."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Started:
    """One process. Its start time tells it from a later one with its number."""

    pid: int
    start_ticks: int
    command: str = field(compare=False)


def descendants(pid: int) -> set[Started]:
    """All processes below one, wherever their groups and sessions have gone."""
    if sys.platform != "linux":
        pytest.skip("whether servers leave processes is looked at on Linux only")
    table = _all()
    found: set[Started] = set()
    below = {pid}
    while below:
        children = {
            each for each, parent in table.items() if parent in below and each.pid not in {f.pid for f in found}
        }
        found |= children
        below = {each.pid for each in children}
    return found


def left(processes: set[Started], within_seconds: float = 15) -> set[Started]:
    """Those that are still there after a while; at best there are none, at once."""
    deadline = time.monotonic() + within_seconds
    while (still := processes & set(_all())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return still


def _all() -> dict[Started, int]:
    """Every process, with its parent's number. Those that have ended and were not waited for are gone."""
    table = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, *others = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if state != "Z":
            table[Started(int(folder.name), int(others[17]), command)] = int(parent)
    return table
