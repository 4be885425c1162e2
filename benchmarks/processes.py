"""CPU time and memory of a process and all that it started: the driver, the JVM, the Python workers. From ``/proc``."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a whole tree of processes. ``rss_bytes`` counts memory that several share once for each."""

    cpu_seconds: float
    rss_bytes: int


def usage_of_tree() -> Usage:
    """This process and all below it; the CPU time includes that of children that ended."""
    processes: dict[int, tuple[int, float, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                cpu_seconds = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
                processes[int(folder.name)] = (int(fields[1]), cpu_seconds, int(fields[21]) * _PAGE_BYTES)
    tree, found = {os.getpid()}, 0
    while len(tree) > found:
        found = len(tree)
        tree |= {pid for pid, (parent, _, _) in processes.items() if parent in tree}
    return Usage(sum(processes[pid][1] for pid in tree), sum(processes[pid][2] for pid in tree))


@dataclass
class Measured:
    """``with Measured() as cost``: wall and CPU seconds of what happens inside, and the largest memory seen."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._sampler = threading.Thread(target=self._sample)
        self._cpu_before = usage_of_tree().cpu_seconds
        self._begin = time.perf_counter()
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall_seconds = time.perf_counter() - self._begin
        self.cpu_seconds = usage_of_tree().cpu_seconds - self._cpu_before
        self._done.set()
        self._sampler.join()

    def _sample(self) -> None:
        while True:
            self.peak_rss_bytes = max(self.peak_rss_bytes, usage_of_tree().rss_bytes)
            if self._done.wait(_SAMPLE_SECONDS):
                return
