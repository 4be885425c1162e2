"""Every Spark setting that keptlog makes, with its reason, and the start of a session.

The master is configuration: ``local[*]`` unless told otherwise, or a standalone cluster, YARN, Kubernetes, or a Spark
Connect server (``sc://host:port``). Any other setting of Spark's may be given too, and goes over keptlog's own of the
same name. On a cluster the workers need pyarrow in their Python, keptlog's code is sent along (``readiness``), and
``PYSPARK_PYTHON`` in the driver's environment, or ``spark.pyspark.python``, names that Python. What a Connect server's
workers run on is its own business.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.spark.connect import require_greeting, require_server, set_patience, why_refused, without_secrets
from keptlog.spark.driver import Spark, context_of, setting_of
from keptlog.spark.failures import grpc_status, with_cause
from keptlog.spark.java import INSTALL_JAVA
from keptlog.spark.launch import java_for
from keptlog.spark.master import require_form, require_way_there
from keptlog.spark.waiting import is_given_up, patience_seconds

_logger = logging.getLogger(__name__)

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
    # saves (5 s of CPU at the first clean). setLogLevel would come too late for most of what is logged. Whoever gives
    # spark.driver.extraJavaOptions adds to these.
    "spark.driver.defaultJavaOptions": (
        f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    ),
    # Workers are forked with their imports done. On a cluster, who knows what is installed there.
    "spark.python.daemon.module": "keptlog.spark.worker_daemon",
    # Over TCP each task waits 40 ms for an acknowledgement that the kernel delays.
    "spark.python.unix.domain.socket.enabled": "true",
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


def use_this_python(settings: Mapping[str, str] | None = None) -> None:
    """Let workers run on the driver's Python, unless ``spark.pyspark.python`` or ``PYSPARK_PYTHON`` says otherwise.

    Spark has no setting for it that works once a session is being built, so it goes by the environment.
    """
    chosen = (settings or {}).get("spark.pyspark.python")
    if chosen:
        os.environ["PYSPARK_PYTHON"] = chosen
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(master: str | None = None, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one; ``master`` and ``extra`` as ``session_settings`` takes them.

    Raises:
        InvalidConfig: Java is missing or too old, or the master or a setting is refused.
        StorageUnavailable: the master can't be reached, or a Connect server wants another token.
    """
    settings = session_settings(master, extra)
    remote = settings.get("spark.remote")
    require_server(remote)
    _forget_dead()
    if remote and SparkSession.getActiveSession() is None:
        require_greeting(remote)
    if SparkSession.getActiveSession() is None:
        require_way_there(settings.get("spark.master", ""), os.environ)
    with starting(settings), nullcontext() if remote else java_for(settings):
        builder: Any = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
        if remote:
            set_patience(session)
        # A Connect session refuses a wrong token only when it is asked something.
        _ = session.version
    return session


def start_spark(master: str | None = None, extra: Mapping[str, str] | None = None) -> Spark:
    """What tasks are handed out on: the running Spark, or a new one; of a local one a context, and no session.

    Raises:
        InvalidConfig: Java is missing or too old, or the master or a setting is refused.
        StorageUnavailable: the master can't be reached, or a Connect server wants another token.
    """
    settings = session_settings(master, extra)
    if not settings.get("spark.master", "").startswith("local"):
        return start_session(master, extra)
    _forget_dead()
    running = _running()
    if running:
        return running
    with starting(settings), java_for(settings):
        return SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))


def _running() -> Spark | None:
    """The Spark of this process; null if there is none."""
    context: SparkContext | None = SparkContext._active_spark_context  # noqa: SLF001  # no other way
    # A session of a Connect server is known to its class alone.
    return context or SparkSession.getActiveSession()


def _forget_dead() -> None:
    """Let go of a Spark that is gone, as one whose cluster was away for too long: a new one may be had."""
    spark = _running()
    if spark is None:
        return
    try:
        context = context_of(spark)
        is_dead = is_given_up(spark) or not spark.version or bool(context and context._jsc.sc().isStopped())  # noqa: SLF001  # no other way
    except Exception:  # noqa: BLE001  # its Java is gone, which is told in many ways
        is_dead = True
    if is_dead:
        with suppress(Exception):
            (SparkSession._instantiatedSession or spark).stop()  # noqa: SLF001  # with its context, if there is one


_STOPPED = "stopped SparkContext"
"""So it ends where no master of a cluster has answered as one."""


@contextmanager
def starting(settings: Mapping[str, str]) -> Iterator[None]:
    """Around whatever builds a session with ``session_settings``: prepares the process, and explains a failure.

    Raises:
        InvalidConfig: Java is missing or too old.
        StorageUnavailable: the master can't be reached, or a Connect server wants another token.
    """
    use_this_python(settings)
    before = _running()
    try:
        yield
    except KeptlogError:
        raise
    except Exception as error:
        if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise InvalidConfig(INSTALL_JAVA) from error
        reason = why_refused(error, settings.get("spark.remote")) or (grpc_status(error) or ("", with_cause(error)))[1]
        cluster = settings.get("spark.master", "")
        if _STOPPED in reason and cluster.startswith("spark://"):
            reason = (
                f"whoever listens at {cluster} takes no application: see that it is a Spark master, and of this version"
            )
        raise StorageUnavailable(f"no Spark session could be started: {without_secrets(reason, settings)}") from error
    spark = _running()
    if spark and not before:
        # Of a Connect server its own master: the address that leads to it may hold a token.
        master, application = (setting_of(spark, name, "?") for name in ("spark.master", "spark.app.id"))
        _logger.info("Spark %s is started: master %s, application %s", spark.version, master, application)
