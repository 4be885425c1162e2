"""A demo ends what it has started, however it ends: Spark's processes, and what is open when somebody interrupts it."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import dagster as dg
from pyspark import SparkContext

from examples.installed import NotInstalled
from keptlog.errors import KeptlogError
from keptlog.interrupted import Interrupted, raise_again_if_swallowed
from keptlog.spark.session import start_session

_FEWEST_RECORDS = 1000
INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def warm_spark() -> Iterator[None]:
    """One Spark session for all runs; when the block ends, its processes are gone, not only told to go."""
    handler = signal.getsignal(signal.SIGINT)
    session = start_session(os.environ.get("KEPTLOG_SPARK_MASTER"))
    # PySpark has one of its own, which interrupts again what is being closed.
    signal.signal(signal.SIGINT, handler)
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
        raise Interrupted

    raise_again_if_swallowed()
    before = [signal.signal(each, interrupt) for each in _SIGNALS]
    try:
        yield
    finally:
        for each, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(each, handler)


def add_records(parser: ArgumentParser, default: int) -> None:
    """How many records a story is told with: ``--records``."""

    def count(text: str) -> int:
        number = int(text)
        if number < _FEWEST_RECORDS:
            parser.error(f"--records {number} is too few for a story: take {_FEWEST_RECORDS} or more")
        return number

    parser.add_argument("--records", type=count, default=default, help=f"how many records; default {default}")


def exit_code_of(demo: str, gone: str, story: Callable[[], int]) -> int:
    """Tell a story; ``gone`` is what is gone when it is interrupted.

    What ends it is one line: 2 if something is missing on this machine, 1 for any other error.
    """
    warnings.simplefilter("ignore", dg.BetaWarning)  # Dagster's own use of its own beta parameters
    try:
        with interruptible():
            return story()
    except NotInstalled as missing:
        print(f"{demo}: {missing}", file=sys.stderr)
        return 2
    except (KeptlogError, dg.Failure) as error:
        print(f"{demo}: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        print(f"{demo}: interrupted; {gone}", file=sys.stderr)
        return INTERRUPTED
