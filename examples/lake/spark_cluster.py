"""A Spark standalone cluster, for as long as a block lasts: a master and workers, of the pyspark that is installed.

Executors are children of their worker: killing one ends them as well. ``python_path`` is what the workers' Python finds
beside what is installed for it; a cluster whose workers are to find nothing of ours is given another ``python``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pyspark

from examples.installed import java
from examples.lake.server_process import DEADLINE_SECONDS, ServerProcess, get, listens, running
from examples.ports import free_ports
from keptlog.errors import StorageUnavailable

WHAT = f"Spark {pyspark.__version__}"
_ROOT = Path(__file__).parents[2]
_HOME = Path(pyspark.__file__).parent


@dataclass(frozen=True)
class SparkCluster:
    """A cluster. ``master`` is its address for ``KEPTLOG_SPARK_MASTER``."""

    master: str
    web: str
    """Of the master's pages; ``/json/`` says what it knows."""
    master_process: ServerProcess
    workers: Sequence[ServerProcess]

    def alive_workers(self) -> int:
        """How many the master thinks are there."""
        return sum(each["state"] == "ALIVE" for each in json.loads(get(f"{self.web}/json/"))["workers"])

    def wait_for(self, workers: int) -> None:
        """Wait until the master knows that many workers.

        Raises:
            StorageUnavailable: it does not.
        """
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.alive_workers() != workers:
            if time.monotonic() > deadline:
                known = self.alive_workers()
                raise StorageUnavailable(f"{WHAT}: after {DEADLINE_SECONDS:.0f} s the master knows {known} workers")
            time.sleep(0.05)


@contextmanager
def spark_cluster(
    workers: int = 2,
    *,
    memory: str = "2g",
    python: str = sys.executable,
    python_path: Sequence[Path] = (_ROOT,),
    hosts: Sequence[str] = ("127.0.0.1",),
) -> Iterator[SparkCluster]:
    """Start a cluster of workers with one core each; all its processes are gone when the block ends.

    ``hosts`` are loopback addresses that the workers take in turns: Spark has a task twice at once on two hosts only.

    Raises:
        NotInstalled: there is no Java.
        StorageUnavailable: it does not start.
    """
    java(WHAT)
    with tempfile.TemporaryDirectory(prefix="keptlog-spark-cluster-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        environment = {
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_CONF_DIR": str(folder / "conf"),
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": ":".join(map(str, python_path)),
        }
        (folder / "conf").mkdir()
        # Executors take them too. None lives for so long that compiling well what it does would save what that costs.
        (folder / "conf" / "java-opts").write_text("-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        port, web_port, *worker_ports = free_ports(2 + workers)
        master = f"spark://127.0.0.1:{port}"

        def process(name: str, host: str, arguments: Sequence[str], answers_at: int) -> ServerProcess:
            kind = "master.Master" if name == "master" else "worker.Worker"
            command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
            listening = ["--host", host, "--webui-port", str(answers_at)]
            return ServerProcess(
                f"{WHAT}, {name}",
                [*command, *listening, *arguments],
                answers=lambda: listens(answers_at),
                output=folder / f"{name}.output",
                environment=environment,
            )

        with ExitStack() as opened:
            first = process("master", "127.0.0.1", ["--port", str(port)], web_port)
            opened.enter_context(running(first))
            own = ["--cores", "1", "--memory", memory]
            started = [
                process(f"worker-{number}", host, [*own, "--work-dir", str(folder / f"worker-{number}"), master], at)
                for number, (host, at) in enumerate(zip(cycle(hosts), worker_ports, strict=False))
            ]
            for each in started:
                opened.enter_context(running(each))
            cluster = SparkCluster(master, f"http://127.0.0.1:{web_port}", first, started)
            cluster.wait_for(workers)
            yield cluster
