"""A process for each peer, in which all of its runs are measured.

    parent    generates, says what to run, checks what is left
    worker    a peer with its session, and whatever it starts: JVM, Python workers, pools

So the CPU time and the memory of a worker's tree are those of one peer alone. A worker waits while the others run.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from benchmarks.digest import bytes_of
from benchmarks.peers import Left, Peer, PeerMissing, Setup, Work, open_peer
from benchmarks.processes import Measured

_SPAWN = multiprocessing.get_context("spawn")
_SECONDS_TO_END = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run has cost, and what it left."""

    wall_s: float
    cpu_s: float
    peak_rss_bytes: int
    peak_python_rss_bytes: int
    bytes_written: int
    left: Left


class RunFailed(Exception):
    """A peer broke down; holds its traceback."""


class Worker(Protocol):
    """A peer that is ready to run."""

    @property
    def start_s(self) -> float:
        """Seconds from nothing to ready."""
        ...

    def run(self, work: Work) -> Outcome:
        """Run and measure.

        Raises:
            RunFailed: the peer did.
        """
        ...

    def close(self) -> None: ...


def run_measured(peer: Peer, work: Work) -> Outcome:
    """One run, in this process; what is prepared does not count, what is written is on the disk at the end."""
    peer.prepare(work)
    _sync(work.output)
    gc.collect()
    with Measured() as cost:
        left = peer.run(work)
        _sync(work.output)
    return Outcome(
        cost.wall_seconds,
        cost.cpu_seconds,
        cost.peak_rss_bytes,
        cost.peak_python_rss_bytes,
        _bytes_written(work, left),
        left,
    )


def _bytes_written(work: Work, left: Left) -> int:
    # A table that was compacted lies in the folder with all that it had before.
    return sum(Path(path).stat().st_size for path in left.paths) if left.is_state else bytes_of(work.output)


class ProcessWorker:
    """A peer in a process of its own."""

    def __init__(self, setup: Setup) -> None:
        """Start it and wait until it is ready.

        Raises:
            PeerMissing: it can't be had on this machine.
        """
        started = time.perf_counter()
        self._pipe, other_end = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(target=_serve, args=(other_end, setup))
        self._process.start()
        other_end.close()
        missing = self._received()
        if isinstance(missing, PeerMissing):
            raise missing
        self.start_s = time.perf_counter() - started

    def run(self, work: Work) -> Outcome:
        self._pipe.send(work)
        outcome = self._received()
        assert isinstance(outcome, Outcome)
        return outcome

    def close(self) -> None:
        """End the peer's session and its process."""
        self._pipe.close()
        self._process.join(_SECONDS_TO_END)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def _received(self) -> Outcome | PeerMissing | None:
        try:
            answer: Outcome | PeerMissing | RunFailed | None = self._pipe.recv()
        except EOFError:
            raise RunFailed("its process ended") from None
        if isinstance(answer, RunFailed):
            raise answer
        return answer


def _serve(pipe: Connection, setup: Setup) -> None:
    # The last line on the parent's standard output is the result, so nobody else writes there.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if setup.is_pinned:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: setup.cores])
    try:
        peer = open_peer(setup)
    except PeerMissing as missing:
        pipe.send(missing)
        return
    pipe.send(None)
    while True:
        try:
            work: Work = pipe.recv()
        except EOFError:
            peer.close()
            return
        try:
            pipe.send(run_measured(peer, work))
        except Exception:  # noqa: BLE001  # whatever it is, the parent is told
            pipe.send(RunFailed(traceback.format_exc()))


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
