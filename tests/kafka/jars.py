"""Java's class path for the program that drives Kafka's own classes; it is compiled once.

The jars are ``examples.kafka_jars``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.installed import NotInstalled
from examples.kafka_jars import JARS, VERSION

_HERE = Path(__file__).parent


def classpath() -> str:
    """Fetch and compile what is missing, and return the class path.

    Raises:
        NotInstalled: there is no ``javac``, or Maven is missing or can't get the jars.
        RuntimeError: our own program does not compile.
    """
    return JARS.compiled(sorted(_HERE.glob("*.java")))


def or_skip(needed: Callable[[], str]) -> str:
    """What a test needs of Kafka; skips where it can't be had. Where a build server has Maven, it must be had."""
    try:
        return needed()
    except NotInstalled as missing:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            raise
        pytest.skip(f"not compared with Apache Kafka {VERSION}: {missing}")
