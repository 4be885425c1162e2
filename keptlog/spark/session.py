"""The start of a Spark: a context for tasks, or a session for frames, with the settings of ``settings.py``."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.spark.connect import require_greeting, require_server, set_patience, why_refused
from keptlog.spark.driver import Spark, context_of, setting_of
from keptlog.spark.failures import grpc_status, with_cause
from keptlog.spark.java import INSTALL_JAVA
from keptlog.spark.launch import forget_gone_java, java_for
from keptlog.spark.master import require_way_there, without_secrets
from keptlog.spark.settings import session_settings
from keptlog.spark.waiting import is_given_up

_logger = logging.getLogger(__name__)
_one_starts = threading.RLock()
"""Held while a Spark is looked for or started: a process has one, and variables say which Java PySpark is to take."""


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
    with _one_starts:
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
    with _one_starts:
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
        # One that died while it made its first context left none, and PySpark would still ask it for the next.
        forget_gone_java(wait_seconds=0)
        return
    try:
        context = context_of(spark)
        is_dead = is_given_up(spark) or not spark.version or bool(context and context._jsc.sc().isStopped())  # noqa: SLF001  # no other way
    except Exception:  # noqa: BLE001  # its Java is gone, which is told in many ways
        is_dead = True
    if is_dead:
        with suppress(Exception):
            (SparkSession._instantiatedSession or spark).stop()  # noqa: SLF001  # with its context, if there is one
        forget_gone_java(_ENDS_SECONDS)


_ENDS_SECONDS = 1.0
"""A Java whose connections have just broken may take a moment to be gone."""
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
        if cluster and not cluster.startswith("local") and cluster not in reason:
            reason = f"{reason} (spark.master is {cluster}: see that it is right)"
        raise StorageUnavailable(f"no Spark session could be started: {without_secrets(reason, settings)}") from error
    spark = _running()
    if spark and not before:
        # Of a Connect server its own master: the address that leads to it may hold a token.
        master, application = (setting_of(spark, name, "?") for name in ("spark.master", "spark.app.id"))
        _logger.info("Spark %s is started: master %s, application %s", spark.version, master, application)
