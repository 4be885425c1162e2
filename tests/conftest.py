"""What all tests share: one Spark session a process, dice, and which tests run side by side.

    make quick    -m "not spark", few examples      what one runs while working
    make test     everything, in two processes      the same dice every time
    make soak     other dice in every round         docs/testing.md

With ``-n`` tests that share something costly stay in one process: those that take the Spark session, those that run
Kafka's own classes, and those of one file. The long ones begin first, so that no process waits for another at the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

from keptlog.spark.session import start_session
from tests import profiles

MASTER = "local[2,3]"
"""Two cores, and a task may fail twice before its job does."""

os.environ["KEPTLOG_SPARK_MASTER"] = MASTER

TOGETHER = {
    "tests/kafka/": "kafka",
    "tests/broker/": "kafka",
    "tests/examples/test_demo_kafka.py": "kafka",
}
"""What shares something that is made once a process, or once for all of them, by where it lies."""
FIRST = ("kafka", "spark", "tests/e2e/test_dagster_dev.py", "tests/crash/test_kill.py", "tests/model/test_model.py")
"""The groups that take longest."""

profiles.register()


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: FIRST.index(_group(item)) if _group(item) in FIRST else len(FIRST))


def _group(item: pytest.Item) -> str:
    """What an item must run in one process with."""
    file = item.nodeid.partition("::")[0]
    if place := next((group for folder, group in TOGETHER.items() if file.startswith(folder)), None):
        return place
    return "spark" if item.get_closest_marker("spark") else file


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
