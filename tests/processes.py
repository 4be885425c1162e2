"""What a process has started, and whether that is gone. Linux tells it below ``/proc``."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import pytest

_LISTENS = "0A"


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


def children(pid: int) -> set[Started]:
    """The processes that one has started itself, and those that were left to it."""
    if sys.platform != "linux":
        pytest.skip("whether servers leave processes is looked at on Linux only")
    return {each for each, parent in _all().items() if parent == pid}


def with_environment(**variables: str) -> set[Started]:
    """All processes of ours that were started with some variables, whoever their parents are."""
    if sys.platform != "linux":
        pytest.skip("whether servers leave processes is looked at on Linux only")
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = set()
    for each in _all():
        with suppress(OSError):
            if wanted <= set(Path(f"/proc/{each.pid}/environ").read_bytes().split(b"\0")):
                found.add(each)
    return found


def left(processes: set[Started], within_seconds: float = 60) -> set[Started]:
    """Those that are still there after a while; at best there are none, at once."""
    deadline = time.monotonic() + within_seconds
    while (still := processes & set(_all())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return still


def open_files(pid: int) -> set[str]:
    """What a process has open, as the kernel names it; nothing of a process that has ended."""
    held = set()
    with suppress(OSError):
        for each in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # closed meanwhile
                held.add(str(Path(each.path).readlink()))
    return held


def listening(pid: int) -> set[str]:
    """The IP addresses that one process waits at for connections; those of IPv4 as such."""
    held = open_files(pid)
    found = set()
    for table in ("tcp", "tcp6"):
        for line in _sockets(pid, table):
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS and f"socket:[{inode}]" in held:
                found.add(_address(local.partition(":")[0]))
    return found


def _sockets(pid: int, table: str) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    return []


def _address(shown: str) -> str:
    """As people write it; the kernel shows each four bytes in the machine's own order."""
    words = [bytes.fromhex(shown[start : start + 8]) for start in range(0, len(shown), 8)]
    address = ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))
    return str(getattr(address, "ipv4_mapped", None) or address)


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
