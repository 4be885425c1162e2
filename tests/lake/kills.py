"""``kill -9`` of a lake's parts in the middle of a clean on a cluster, and what a reader must see afterwards.

append two batches ──> a driver cleans (``tests.lake.driver``) ──> something dies, at any moment ──> it is healed
                   ──> nothing is missing, doubled or resurrected, and no log is marked as uncleanable
the end            ──> two cleans make what the reference makes of all that was appended, a purge leaves that

executor    its process alone; the worker starts another one
worker      with its executor; it is started again
driver      with its session; another one takes its place
postgres    the server; what it acknowledged is on the disk, and it is started again
s3          the server, which keeps its objects on the disk, and it is started again (``examples.lake.kept_s3_server``)
deaf s3     stops to answer, for some seconds, as one does that is overloaded
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from examples.lake.postgres import Postgres
from examples.lake.s3_server import S3Server
from examples.lake.server_process import ServerProcess
from examples.lake.spark_cluster import SparkCluster
from examples.lake.whole_lake import catalog_environment
from keptlog.table.store import LogStore
from tests.crash import traffic
from tests.crash.workload import SETTINGS, TOPIC, wall_clock_ms
from tests.lake.stores import open_lake
from tests.processes import descendants

KILLED = ("executor", "postgres", "worker", "s3", "deaf s3", "driver")
_PAUSE_SECONDS = 3.0
_ROOT = Path(__file__).parents[2]


@dataclass
class Driver:
    """A process that cleans. ``environment`` leads it to the lake."""

    environment: Mapping[str, str]
    output: Path
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens; Spark is started with the first clean."""
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.lake.driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                cwd=_ROOT,
                env={**os.environ, **self.environment},
            )
        assert "ready" in self.answer(), self.output.read_text()[-2000:]

    def begin(self) -> None:
        """Let it clean."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.write("clean\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What became of it; nothing if the driver has died."""
        assert self.process
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def clean(self) -> dict[str, Any]:
        self.begin()
        return self.answer()

    def kill(self) -> None:
        """With its JVM, as when its machine is gone."""
        assert self.process
        below = descendants(self.process.pid)
        self.process.kill()
        for each in below:
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
        self.process.communicate()


@dataclass
class Kills:
    """Some kills on one topic. ``happened`` counts what did."""

    s3: S3Server
    """One that keeps its objects."""
    database: Postgres
    cluster: SparkCluster
    properties: Mapping[str, str]
    """The catalog's."""
    driver: Driver
    folder: Path
    chance: Random
    happened: Counter[str] = field(default_factory=Counter)
    clean_seconds: float = 0
    _batches: int = 0

    @property
    def store(self) -> LogStore:
        """As a new process opens it."""
        return open_lake(self.properties)

    def warm(self) -> None:
        """One clean that nobody disturbs, which starts Spark, and one that says how long a clean takes."""
        self.store.create_topic(TOPIC, 1, SETTINGS)
        for _ in range(2):
            self._append()
            began = time.monotonic()
            told = self.driver.clean()
            assert told == {"committed": 1}, told
            self.clean_seconds = time.monotonic() - began

    def kill(self, what: str) -> None:
        """Kill one part in the middle of a clean, heal it, and read."""
        self._append()
        self.driver.begin()
        moment = self.chance.random() * self.clean_seconds
        time.sleep(moment)
        heal = self._parts[what]()
        told = {} if what == "driver" else self.driver.answer()
        heal()
        self.happened[what] += 1
        self.happened[f"{what}: {next(iter(told), 'killed')}"] += 1
        assert what == "driver" or told, f"the driver died of a dead {what}: {self.driver.output.read_text()[-2000:]}"
        assert "\n" not in told.get("failed", ""), told
        if "failed" in told:
            self.happened[f"{what}: the next clean"] += 1
            again = self.driver.clean()
            assert "failed" not in again, f"{what} is there again, and the same driver can't go on: {again}"
        traffic.require_whole(self.store, self.folder)
        marked = [log.topic_partition for log in self.store.logs(TOPIC) if log.uncleanable]
        assert not marked, f"a dead {what} is no log's fault, but these are marked: {marked}; {told}"

    def require_the_end(self) -> None:
        """All is as if nobody had died, to a driver that has seen nothing of it."""
        store = self.store
        written = traffic.require_whole(store, self.folder)
        self.driver.kill()
        self.driver.start()
        for _ in range(2):
            told = self.driver.clean()
            assert "failed" not in told, told
        traffic.require_cleaned_once(store, written)
        traffic.require_only_live_files(store)

    def _append(self) -> None:
        store, journal = self.store, traffic.Journal(self.folder / "worker-0")
        for _ in range(2):
            number = self._batches
            self._batches += 1
            journal.say("began", number)
            store.append(TOPIC, traffic.marked_batch(number), f"run-{number}", wall_clock_ms())
            journal.say("acked", number)

    @property
    def _parts(self) -> Mapping[str, Callable[[], Callable[[], None]]]:
        """What kills each part, and gives what heals it."""
        return {
            "executor": self._executor,
            "worker": self._worker,
            "driver": self._driver,
            "postgres": self._postgres,
            "s3": self._s3,
            "deaf s3": self._deaf_s3,
        }

    def _executor(self) -> Callable[[], None]:
        below = {each for worker in self.cluster.workers for each in descendants(worker.pid)}
        executors = sorted(each.pid for each in below if "CoarseGrainedExecutorBackend" in each.command)
        if executors:  # after a kill of another one it may not be back yet
            self.happened["executor was there"] += 1
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(executors), signal.SIGKILL)
        return lambda: None

    def _worker(self) -> Callable[[], None]:
        worker: ServerProcess = self.chance.choice(self.cluster.workers)
        worker.kill()

        def heal() -> None:
            worker.start()
            self.cluster.wait_for(len(self.cluster.workers))

        return heal

    def _driver(self) -> Callable[[], None]:
        self.driver.kill()
        return self.driver.start

    def _postgres(self) -> Callable[[], None]:
        self.database.server.kill()
        time.sleep(self.chance.random())
        self.database.start()
        return lambda: None

    def _s3(self) -> Callable[[], None]:
        self.s3.server.restart()
        return lambda: None

    def _deaf_s3(self) -> Callable[[], None]:
        self.s3.server.pause()
        timer = threading.Timer(_PAUSE_SECONDS, self.s3.server.resume)
        timer.start()
        return timer.join


@contextmanager
def kills_on(s3: S3Server, database: Postgres, cluster: SparkCluster, folder: Path, chance: Random) -> Iterator[Kills]:
    """A topic on S3 and Postgres, a driver on the cluster, and one clean done."""
    name = f"kills-{chance.randrange(10**9)}"
    properties = {"type": "sql", "uri": database.create(name), "warehouse": s3.bucket(name), **s3.properties}
    environment = {
        **catalog_environment(properties),
        "KEPTLOG_HOME": str(folder / "home"),
        "KEPTLOG_SPARK_MASTER": cluster.master,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    driver = Driver(environment, folder / "driver.output")
    driver.start()
    try:
        kills = Kills(s3, database, cluster, properties, driver, folder, chance)
        kills.warm()
        yield kills
    finally:
        driver.kill()
