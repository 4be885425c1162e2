"""Workers in this process, and small runs of the cases on them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from benchmarks.cases import all_cases
from benchmarks.peers import Peer, Setup, Work, open_peer
from benchmarks.peers.keptlog_clean import KeptlogClean
from benchmarks.report import Result
from benchmarks.run import Measurement
from benchmarks.workers import Outcome, Worker, run_measured
from keptlog.spark.session import start_session
from tests.in_process_session import InProcessSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = all_cases(os.cpu_count() or 1)


@dataclass(frozen=True)
class HereWorker:
    """Measures a peer that is shared with other tests, so nothing is closed."""

    peer: Peer
    start_s: float = 0.0

    def run(self, work: Work) -> Outcome:
        return run_measured(self.peer, work)

    def close(self) -> None:
        pass


@dataclass
class Peers:
    """One of each kind for all tests. keptlog's tasks run in this process, until it is given a Spark session."""

    opened: dict[str, Peer] = field(default_factory=dict)

    def worker(self, setup: Setup, spark: SparkSession | None = None) -> Worker:
        if setup.peer == "keptlog_clean":
            return HereWorker(KeptlogClean(spark or cast("SparkSession", InProcessSession())))
        if setup.peer not in self.opened:
            self.opened[setup.peer] = open_peer(setup)
            if spark:  # it has given its settings to the session that all tests share
                start_session(spark.conf.get("spark.master"))
        return HereWorker(self.opened[setup.peer])

    def measured(self, name: str, folder: Path, spark: SparkSession | None = None) -> Result:
        """One round of a case, with few records."""
        start = partial(self.worker, spark=spark)
        return Measurement(name, CASES[name], 400, 1, folder, start, warms_up=False).measured()
