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
    python_rss_bytes: int
    """What of it belongs to Python processes, and not to a JVM."""


def usage_of_tree() -> Usage:
    """This process and all below it; the CPU time includes that of children that ended."""
    processes: dict[int, tuple[int, Usage]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                name, _, rest = (folder / "stat").read_text().rpartition(")")
                fields = rest.split()
                cpu_seconds = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
                rss_bytes = int(fields[21]) * _PAGE_BYTES
                usage = Usage(cpu_seconds, rss_bytes, 0 if name.endswith("(java") else rss_bytes)
                processes[int(folder.name)] = (int(fields[1]), usage)
    tree, found = {os.getpid()}, 0
    while len(tree) > found:
        found = len(tree)
        tree |= {pid for pid, (parent, _) in processes.items() if parent in tree}
    usages = [processes[pid][1] for pid in tree]
    return Usage(
        sum(usage.cpu_seconds for usage in usages),
        sum(usage.rss_bytes for usage in usages),
        sum(usage.python_rss_bytes for usage in usages),
    )


@dataclass
class Measured:
    """``with Measured() as cost``: wall and CPU seconds of what happens inside, and the largest memory seen."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    peak_python_rss_bytes: int = 0
    _sampling_seconds: float = 0.0
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
        cpu_seconds = usage_of_tree().cpu_seconds - self._cpu_before
        self._done.set()
        self._sampler.join()
        # What looking at the processes has cost is nobody's work.
        self.cpu_seconds = max(0.0, cpu_seconds - self._sampling_seconds)

    def _sample(self) -> None:
        while True:
            usage = usage_of_tree()
            self.peak_rss_bytes = max(self.peak_rss_bytes, usage.rss_bytes)
            self.peak_python_rss_bytes = max(self.peak_python_rss_bytes, usage.python_rss_bytes)
            self._sampling_seconds = time.thread_time()
            if self._done.wait(_SAMPLE_SECONDS):
                return
