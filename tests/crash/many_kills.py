"""``kill -9`` and SIGSTOP of real processes that share a topic: ``python -m tests.crash.many_kills --kills 1000``.

    a round     a new home, three workers (``tests.crash.traffic``)
      a kill    a worker dies at any moment, by the clock, and another takes its place; now and then one is put to
                sleep instead, for longer than the grace of a purge, and wakes up as a zombie
      a read    between two kills, beside all workers: nothing acknowledged is missing, doubled or resurrected
    its end     two cleans bring the log to where one undisturbed clean would, a purge leaves what is live and nothing
                else, and no file that a receipt names is there

What is random here is when a signal hits, so a seed does not bring the same moments again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random, SystemRandom
from typing import ClassVar

from keptlog.errors import StorageUnavailable
from keptlog.log.words.counted import counted
from keptlog.table.store import LogStore
from tests.crash import traffic
from tests.crash.workload import SETTINGS, TOPIC, clean
from tests.logs import open_store

WORKERS = 3
_READY_SECONDS = 300.0
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.crash.traffic", "tests.erasure.traffic"])


@dataclass
class Round:
    """Some kills on one home. ``happened`` counts what did."""

    folder: Path
    chance: Random
    happened: Counter[str] = field(default_factory=Counter)
    _workers: list[ForkServerProcess] = field(default_factory=list)
    _started: int = 0

    work = staticmethod(traffic.work_until_killed)
    """What a worker does: home, folder, its number, its dice."""
    longest_seconds: ClassVar[float] = 0.4
    """Between a worker's start and the next kill."""
    kills_a_round: ClassVar[int] = 50

    def run(self, kills: int) -> None:
        """Kill so often, and read between."""
        store = open_store(self.folder / "home")
        store.create_topic(TOPIC, 1, SETTINGS)
        try:
            self._workers = [self._start() for _ in range(WORKERS)]
            for _ in range(kills):
                self._disturb(self.chance.randrange(WORKERS))
                self._read(store)
        finally:
            for worker in self._workers:
                worker.kill()
                worker.join()
        self._require_the_end(store)

    def _start(self) -> ForkServerProcess:
        self._started += 1
        arguments = (self.folder / "home", self.folder, self._started, f"{self.chance.random()}")
        worker = _PROCESSES.Process(target=self.work, args=arguments, daemon=True)
        worker.start()
        journal, patience = traffic.Journal(self.folder / f"worker-{self._started}"), time.monotonic() + _READY_SECONDS
        while not journal.said("ready"):
            assert worker.is_alive(), f"a worker did not start: {journal.said('broken')}"
            assert time.monotonic() < patience, "a worker did not start in time"
            time.sleep(0.01)
        return worker

    def _disturb(self, number: int) -> None:
        worker = self._workers[number]
        time.sleep(self.chance.random() * self.longest_seconds)
        assert worker.pid
        if self.chance.random() < 0.2:
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(1.5 * traffic.GRACE_MS / 1000)
            os.kill(worker.pid, signal.SIGCONT)
            self.happened["woke up after a purge's grace"] += 1
            time.sleep(self.chance.random() * 0.2)
        worker.kill()
        worker.join()
        self._require_unbroken()
        assert worker.exitcode == -signal.SIGKILL, f"worker {worker.pid} ended by itself: {worker.exitcode}"
        self.happened["killed"] += 1
        self._workers[number] = self._start()

    def _read(self, store: LogStore) -> None:
        try:
            traffic.require_whole(store, self.folder)
            self.happened["read"] += 1
        except StorageUnavailable:
            self.happened["read again, a purge was faster"] += 1

    def _require_unbroken(self) -> None:
        broken = [text for journal in traffic.journals_in(self.folder) for text in journal.said("broken")]
        assert not broken, broken

    def _require_the_end(self, store: LogStore) -> None:
        written = traffic.require_whole(store, self.folder)
        clean(store)
        clean(store)
        traffic.require_cleaned_once(store, written)
        traffic.require_only_live_files(store)
        journals = traffic.journals_in(self.folder)
        self.happened["batches appended"] += len(traffic.acknowledged(self.folder))
        self.happened["refused"] += sum(len(journal.said("refused")) for journal in journals)
        self._require_true_receipts(store)

    def _require_true_receipts(self, store: LogStore) -> None:
        location = store.describe_topic(TOPIC).location
        for file in store.files.list(f"{location}/metadata/receipts"):
            receipt = json.loads(store.files.read_bytes(file.path))
            for deleted in receipt.get("content", {}).get("files", ()):
                assert not store.files.exists(deleted["path"]), f"{file.path} says that {deleted['path']} is gone"
                self.happened["file of a receipt looked for"] += 1


def run_rounds(kind: type[Round], kills: int, arguments: Sequence[str] | None) -> int:
    """Rounds of one kind with as many kills as the command line says, ``kills`` if it says nothing."""
    parser = argparse.ArgumentParser(description=kind.__doc__)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    wanted = parser.parse_args(arguments)
    happened: Counter[str] = Counter()
    for number in range(-(-wanted.kills // kind.kills_a_round)):
        kills = min(kind.kills_a_round, wanted.kills - number * kind.kills_a_round)
        with tempfile.TemporaryDirectory() as folder:
            kind(Path(folder), Random(f"{wanted.seed}-{number}"), happened).run(kills)
        sys.stdout.write(f"{counted(happened['killed'], 'kill')} of {wanted.kills}: {dict(happened)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(run_rounds(Round, 1000, None))
