"""What all tests share: one Spark session a process, dice, and which tests run side by side.

    make quick    -m "not spark", few examples      what one runs while working
    make test     everything, in four processes     the same dice every time
    make soak     other dice in every round         docs/testing.md

``tests.side_by_side`` says which of them run in one process.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from xdist.remote import Producer

from examples import ports
from keptlog.spark.session import start_session
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests import java_classes, profiles
from tests.in_memory import folder_in_memory
from tests.side_by_side import ByGroup, turn_of

_FOLDER = folder_in_memory()  # as long as this process; others that it starts find it by TMPDIR

MASTER = "local[2,3]"
"""Two cores, and a task may fail twice before its job does."""

os.environ["KEPTLOG_SPARK_MASTER"] = MASTER

_SPARK_FOLDER = tempfile.TemporaryDirectory(prefix="keptlog-spark-", ignore_cleanup_errors=True)
# What other Sparks have left on this machine is no business of a test.
os.environ["SPARK_LOCAL_DIRS"] = _SPARK_FOLDER.name
os.environ["SPARK_SUBMIT_OPTS"] = java_classes.options()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's job in the background hears no Ctrl-C, and neither would what tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

profiles.register()
# Servers take seconds to listen where they were told to: no two processes draw from the same ports.
ports.PORTS = ports.PORTS[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) :: 8]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session(MASTER)
    if session.sparkContext.master != MASTER:  # another test came first, with a master of its own
        session.stop()
        session = start_session(MASTER)
    yield session
    session.stop()


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> Callable[[int], Random]:
    """Dice by a number: the same in every ``make test``, others in every round of ``make soak``."""
    soak = request.config.getoption("--hypothesis-seed")
    return lambda seed: Random(seed if soak is None else f"{soak}-{seed}")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are numbered: those of an archive hold the second, and two processes that differ in a name run no test."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: turn_of(item.nodeid))


def pytest_collection_finish() -> None:
    _refuse_reprs()
    # What was imported stays: a sixth of the tests' CPU went into looking through it for what may go.
    gc.collect()
    gc.freeze()


def _refuse_reprs() -> None:
    """Let every test fail that puts one of our dataclasses into a text which it has no words for: its ``repr``."""
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == "keptlog"]
    for kind in {kind for module in ours for kind in vars(module).values() if isinstance(kind, type)}:
        if dataclasses.is_dataclass(kind) and kind.__str__ is object.__str__ and kind.__module__.startswith("keptlog"):
            kind.__format__ = _has_no_words  # type: ignore[method-assign]


def _has_no_words(value: object, _: str) -> str:
    pytest.fail(f"a text for people has the repr of a {type(value).__name__} in it")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    return ByGroup(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tried on this machine, and how it would be."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        terminalreporter.section("not tried here")
        for reason, tests in reasons.items():
            terminalreporter.line(f"{tests} test{'s' * (tests > 1)}: {reason}")


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that were asked of a store since, each time one was."""
    return topics_asked_of(LogStore, monkeypatch)


def topics_asked_of(kind: type[LogStore | UnopenedStore], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that stores of a kind are asked for from now on."""
    topics: list[str] = []
    really = kind.observe

    def told(store: Any, topic: str, location: str | None = None) -> ObservedTopic:
        topics.append(topic)
        return really(store, topic, location)

    monkeypatch.setattr(kind, "observe", told)
    return topics


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Inodes that were fsynced."""
    inodes: set[int] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        inodes.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return inodes
