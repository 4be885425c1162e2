"""Every Spark setting that keptlog makes, with its reason, and the start of a session.

The master is configuration: ``local[*]`` unless told otherwise, or a standalone cluster, YARN, Kubernetes, or a Spark
Connect server (``sc://host:port``). On a cluster the executors need keptlog and pyarrow in their Python: install them
there, or send keptlog along with ``spark.submit.pyFiles=keptlog.zip`` (Connect: ``addArtifacts("keptlog.zip",
pyfile=True)``), and let ``PYSPARK_PYTHON`` in the driver's environment name that Python. Where
``spark.executor.pyspark.memory`` limits a cluster's workers, ``spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL`` should be
``system``: Arrow's own allocator takes a gigabyte of address space at once.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from keptlog.errors import InvalidConfig, StorageUnavailable, first_line

_logger = logging.getLogger(__name__)

CONNECT_PORT = 15002
"""Spark's own, where a Connect server's address has none."""
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
}

_LOCAL: Mapping[str, str] = {
    # Nothing outside of this machine has business with a local session, and host names may not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The JVM only hands out tasks: the serial collector keeps its heap small, and compiling it well costs more than it
    # saves (5 s of CPU at the first clean). setLogLevel would come too late for most of what is logged.
    "spark.driver.extraJavaOptions": (
        f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    ),
    # Workers are forked with their imports done. On a cluster, who knows what is installed there.
    "spark.python.daemon.module": "keptlog.spark.worker_daemon",
    # Over TCP each task waits 40 ms for an acknowledgement that the kernel delays.
    "spark.python.unix.domain.socket.enabled": "true",
    # The workers find the same keptlog as the driver, from any directory, installed or not.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
    # glibc gives each thread an arena of its own and keeps what was freed in them.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}


def session_settings(master: str | None = None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """All settings of a session on this master; ``extra`` goes over them."""
    master = master or "local[*]"
    if master.startswith("sc://"):
        return {"spark.remote": master, **(extra or {})}
    local = _LOCAL if master.startswith("local") else {}
    return {"spark.master": master, "spark.app.name": "keptlog", **_EVERYWHERE, **local, **(extra or {})}


def use_this_python() -> None:
    """Let workers run on the driver's Python, unless ``PYSPARK_PYTHON`` says otherwise.

    Spark has no setting for it that works once a session is being built, so it goes by the environment.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(master: str | None = None, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one.

    Raises:
        InvalidConfig: Java is missing or too old.
        StorageUnavailable: the master can't be reached.
    """
    require_server(master)
    builder: Any = SparkSession.builder
    for name, value in session_settings(master, extra).items():
        builder = builder.config(name, value)
    with starting():
        session: SparkSession = answering(builder.getOrCreate())
    return session


def answering(session: SparkSession) -> SparkSession:
    """The session, after it answered once: a Connect session refuses a wrong token only when it is asked something."""
    _ = session.version
    return session


def require_server(master: str | None) -> None:
    """If the master is a Connect server, see that it answers: a client would try again for ten minutes, silently.

    Raises:
        StorageUnavailable: it does not.
    """
    if not master or not master.startswith("sc://"):
        return
    address = urlsplit(master)
    port = address.port or CONNECT_PORT
    try:
        socket.create_connection((address.hostname or "", port), timeout=10).close()
    except OSError as error:
        raise StorageUnavailable(
            f"no Spark Connect server answers at {address.hostname}:{port} ({error}): start it again "
            "(keptlog spark-server), or unset KEPTLOG_SPARK_MASTER to start Spark in each process"
        ) from None


@contextmanager
def starting() -> Iterator[None]:
    """Around whatever builds a session with ``session_settings``: prepares the process, and explains a failure.

    Raises:
        InvalidConfig: Java is missing or too old.
        StorageUnavailable: the master can't be reached.
    """
    use_this_python()
    before = SparkSession.getActiveSession()
    try:
        yield
    except Exception as error:
        if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise InvalidConfig(
                "Spark could not start Java: install Java 17 or newer, for example with "
                "apt-get install openjdk-17-jre-headless, and let JAVA_HOME or PATH lead to it"
            ) from error
        raise StorageUnavailable(f"no Spark session could be started: {_reason(error)}") from error
    session = SparkSession.getActiveSession()
    if session and not before:
        # Of a Connect server its own master: the address that leads to it may hold a token.
        master, application = (session.conf.get(name, "?") for name in ("spark.master", "spark.app.id"))
        _logger.info("Spark %s is started: master %s, application %s", session.version, master, application)


def _reason(error: Exception) -> str:
    """What an error says in one line; gRPC's say it in their details, and much else besides."""
    details = getattr(error, "details", None)
    return first_line(Exception(details())) if callable(details) else first_line(error)
