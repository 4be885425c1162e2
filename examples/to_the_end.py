"""A demo ends what it has started, however it ends: Spark's processes, and what is open when somebody interrupts it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from pyspark import SparkContext

from keptlog.spark.session import start_session

INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def warm_spark() -> Iterator[None]:
    """One Spark session for all runs; when the block ends, its processes are gone, not only told to go."""
    session = start_session(os.environ.get("KEPTLOG_SPARK_MASTER"))
    try:
        yield
    finally:
        gateway = SparkContext._gateway  # noqa: SLF001  # nothing else tells its process
        with suppress(Exception):  # an interrupted session may not answer any more
            session.stop()
        if gateway:
            # It ends when its stdin does.
            process = gateway.proc
            gateway.shutdown()
            process.stdin.close()
            process.wait()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let every signal that asks this process to end be a KeyboardInterrupt, once, so that what is open is closed."""

    def interrupt(*_: object) -> NoReturn:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [signal.signal(each, interrupt) for each in _SIGNALS]
    try:
        yield
    finally:
        for each, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(each, handler)
