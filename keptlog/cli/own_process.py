"""What only a process that is a command's alone may do, because it would disturb others in it.

A test, or a program that calls ``main``, shares its process, and gets none of it.
"""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import click

from keptlog.arrow_alone import never_pandas
from keptlog.errors import KeptlogError
from keptlog.interrupted import STOPPED, if_stopped, watch_ctrl_c
from keptlog.settings import home_path, spark_master, spark_settings
from keptlog.streams import guard_output

if TYPE_CHECKING:
    from keptlog.spark.driver import Spark

_WITH_ARROW = {"append", "read", "restore", "verify", "repair"}
"""Commands that make arrays, and start no Spark: Spark Connect does nothing without pandas."""
_INTERRUPTED = "while sending command."
_GATEWAYS_LOGGERS = (None, "py4j.java_gateway", "py4j.clientserver")
"""Spark's gateway also logs as nobody in particular."""
_OPEN_FILES = 65_536
"""Enough for every partition. Some programs that are started from here walk through all that they may have."""
SERVER_STOPPED = "stopped"
_APPEND_STOPPED = "stopped; nothing was appended now, append all records again"
"""Before its commit is sent: what comes through a pipe is lost unless somebody has it still."""
_APPEND_STOPPED_ONCE_SENT = (
    "stopped; whether the records were appended is not known: see what keptlog read shows, or append all of them again "
    "with --run-id {run_id}, which appends nothing twice"
)
_own: set[str] = set()
"""Not empty in a process of a command's own."""


class ServerStopped(click.Abort):
    """Somebody wants a command to end that stays until then, and leaves no work half done."""


@contextmanager
def until_stopped() -> Iterator[None]:
    """What is done within ends by Ctrl-C, and only so: that is told as no more than it is."""
    try:
        yield
    except KeyboardInterrupt:
        raise ServerStopped from None


def begin_own_process() -> None:
    """This process is that of one command."""
    _own.add("process")
    guard_output()
    silence_ctrl_c_without_handler()
    _allow_open_files()


def _allow_open_files() -> None:
    """Take as many as may be had without asking anybody: a large batch has a file open for each partition."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def begin_command(name: str | None) -> None:
    """The process carries out this one of ``keptlog``'s commands; by name, for its words may name a topic so."""
    if name == "append":
        if_append_stopped()
    else:
        if_stopped(STOPPED)
    if _own and name in _WITH_ARROW:
        never_pandas()


def if_append_stopped(run_id: str | None = None) -> None:
    """From now on this is told of an append that is stopped; a run id that was given may be that of one that landed."""
    if_stopped(_APPEND_STOPPED + (f" with --run-id {run_id}" if run_id else ""), _APPEND_STOPPED_ONCE_SENT)


@contextmanager
def spark_ahead(names: Sequence[str]) -> Iterator[None]:
    """Around a command that cleans what is named, due or not: Java starts at once, and not when all is planned."""
    with ExitStack() as ahead:
        if _own and names and home_path().is_dir():
            from keptlog.spark.launch import java_ahead  # noqa: PLC0415  # only here

            # Whatever is wrong is told when a Spark is needed.
            with suppress(KeptlogError):
                ahead.enter_context(java_ahead(spark_master(), spark_settings(home_path())))
        yield


def command_spark() -> Spark:
    """The Spark of a command, without the noise of Ctrl-C."""
    from keptlog.spark.session import start_spark  # noqa: PLC0415  # most commands need none

    silence_ctrl_c()
    spark = start_spark(spark_master(), spark_settings(home_path()))
    if _own:
        # PySpark has a handler of its own for it.
        watch_ctrl_c()
    return spark


def silence_ctrl_c() -> None:
    """Calls to Java that Ctrl-C has interrupted are not logged; the gateway does so with several stack traces."""
    for name in _GATEWAYS_LOGGERS:
        logging.getLogger(name).addFilter(_is_news)


def silence_ctrl_c_without_handler() -> None:
    """What libraries log of Ctrl-C is not shown; SQLAlchemy does so where it comes while a connection is given back."""
    if logging.lastResort:
        logging.lastResort.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().endswith(_INTERRUPTED) and not _came_of_ctrl_c(record)


def _came_of_ctrl_c(record: logging.LogRecord) -> bool:
    """Whether what is logged is Ctrl-C, or failed because of it, as saying goodbye to a Java that is gone."""
    error = record.exc_info[1] if record.exc_info else None
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
