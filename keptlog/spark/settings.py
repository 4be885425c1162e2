"""Every Spark setting that keptlog makes, with its reason.

The master is configuration: ``local[*]`` unless told otherwise, or a standalone cluster, YARN, Kubernetes, or a Spark
Connect server (``sc://host:port``). Any other setting of Spark's may be given too, and goes over keptlog's own of the
same name. On a cluster the workers need pyarrow in their Python, keptlog's code is sent along (``readiness``), and
``PYSPARK_PYTHON`` in the driver's environment, or ``spark.pyspark.python``, names that Python. What a Connect server's
workers run on is its own business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from keptlog.errors import InvalidConfig
from keptlog.spark.kept_memory import KEEPS_MEMORY
from keptlog.spark.master import require_form
from keptlog.spark.worker_imports import DAEMON, OWN_DAEMON

PATIENCE = "spark.keptlog.executors.timeout"
DEFAULT_PATIENCE = "10min"
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

_EVERYWHERE: Mapping[str, str] = {
    # Orders of magnitude less start-up work than the Hive catalog, and no metastore_db in the current directory.
    "spark.sql.catalogImplementation": "in-memory",
    # A worker that stays has imported pyarrow already, which costs 0.4 s of CPU.
    "spark.python.worker.reuse": "true",
    # keptlog reports its own progress; Spark's bar would be written over it.
    "spark.ui.showConsoleProgress": "false",
    # A web server that nobody asked for opens a port and costs a second; Dagster shows the runs.
    "spark.ui.enabled": "false",
    # Values never enter the JVM: its heap holds task numbers and one line of JSON a task.
    "spark.driver.memory": "1g",
    # glibc gives each thread an arena of its own and keeps what was freed in them.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}

_LOCAL: Mapping[str, str] = {
    # Nothing outside of this machine has business with a local session, and host names may not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The JVM only hands out tasks: the serial collector keeps its heap small, and compiling it well costs more than it
    # saves (5 s of CPU at the first clean). It begins with a heap of 64 MB: by default that is a share of the machine's
    # memory, and new objects fill it before anything is collected, which takes 80 MB more. Loading classes is to start
    # no collection. setLogLevel would come too late for most of what is logged. Whoever gives
    # spark.driver.extraJavaOptions adds to these.
    "spark.driver.defaultJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms64m -XX:MetaspaceSize=128m "
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    ),
    # Workers are forked with their imports done. On a cluster, who knows what is installed there.
    DAEMON: OWN_DAEMON,
    # Over TCP each task waits 40 ms for an acknowledgement that the kernel delays.
    "spark.python.unix.domain.socket.enabled": "true",
    # Arrow's allocator gives the kernel back what is free for a second, or when a task ends, and the kernel clears each
    # page again before a worker gets it: an eighth of the CPU of a clean. Spark ends workers that were idle for a
    # minute, and their memory with them; what is above a bound, it gives back after a task (``kept_memory``). Told
    # to give back never, the allocator takes more with each pass.
    f"spark.executorEnv.{KEEPS_MEMORY}": "60000",
    # The workers find the same keptlog as the driver, from any directory, installed or not.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
}

_CLUSTER: Mapping[str, str] = {
    # What goes wrong in a task is told in one line; the stack traces of its four attempts are in the executors' logs.
    "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
    # ``spark.executor.pyspark.memory`` limits a worker's address space, of which Arrow's own allocator takes a gigabyte
    # at once and gives nothing back, so that NumPy has no room beside it.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
}
_WORKER_MEMORY = "spark.executor.pyspark.memory"
_LEAST_WORKER_MIB = 768
"""In less address space the libraries for object storage can't even be loaded beside Arrow."""
_MIB = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}


def session_settings(master: str | None = None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """All settings of a session; ``extra`` goes over keptlog's own one by one.

    ``master`` wins over one among ``extra``; ``local[*]`` if there is none.

    Raises:
        InvalidConfig: the master is no address of Spark's, workers are given less memory than they need, or a time is
            none.
    """
    given = dict(extra or {})
    patience_seconds(given)
    masters = [given.pop(name, None) for name in ("spark.remote", "spark.master")]
    master = next((each for each in (master, *masters) if each), "local[*]")
    require_form(master)
    if master.startswith("sc://"):
        return {"spark.remote": master, **given}
    _require_room(given)
    where = _LOCAL if master.startswith("local") else _CLUSTER
    return {"spark.master": master, "spark.app.name": "keptlog", **_EVERYWHERE, **where, **given}


def _require_room(settings: Mapping[str, str]) -> None:
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", settings.get(_WORKER_MEMORY, "").strip().lower())
    if found and int(found.group(1)) * _MIB[found.group(2) or "m"] < _LEAST_WORKER_MIB:
        raise InvalidConfig(
            f"{_WORKER_MEMORY}={settings[_WORKER_MEMORY]} is too little for a worker to load its libraries: "
            f"give it {_LEAST_WORKER_MIB}m or more"
        )


def patience_seconds(settings: Mapping[str, str]) -> int:
    """How long a job waits for somebody who works on it.

    Raises:
        InvalidConfig: the setting is no time.
    """
    text = settings.get(PATIENCE, DEFAULT_PATIENCE)
    found = re.fullmatch(r"([1-9]\d*)\s*(s|m|min|h|)", text.strip().lower())
    if not found:
        raise InvalidConfig(f"{PATIENCE}={text} is no time: give it as Spark's times are given, 600s or 10min")
    return int(found.group(1)) * _SECONDS[found.group(2)]
