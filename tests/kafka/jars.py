"""Java's class path for the program that drives Kafka's own classes; it is compiled once.

    *.java   --javac-->   build/kafka-4.3.1/classes    again whenever a source is newer

The jars are ``examples.kafka_jars``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.kafka_jars import BUILD, VERSION, KafkaMissing, kafka_jars

_HERE = Path(__file__).parent
_CLASSES = BUILD / "classes"


def classpath() -> str:
    """Fetch and compile what is missing, and return the class path.

    Raises:
        KafkaMissing: there is no ``javac``, or Maven is missing or can't get the jars.
        RuntimeError: our own program does not compile.
    """
    if shutil.which("javac") is None:
        raise KafkaMissing(
            f"what drives Kafka {VERSION} can't be compiled: no javac; apt-get install openjdk-17-jdk-headless"
        )
    jars = kafka_jars()
    sources = sorted(_HERE.glob("*.java"))
    if not _is_newer(_CLASSES / "Oracle.class", sources):
        _CLASSES.mkdir(parents=True, exist_ok=True)
        _compile(["-d", str(_CLASSES), "-cp", jars, *map(str, sources)])
    return f"{_CLASSES}{os.pathsep}{jars}"


def or_skip(needed: Callable[[], str]) -> str:
    """What a test needs of Kafka; skips where it can't be had. Where a build server has Maven, it must be had."""
    try:
        return needed()
    except KafkaMissing as missing:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            raise
        pytest.skip(f"not compared with Apache Kafka {VERSION}: {missing}")


def _is_newer(product: Path, sources: list[Path]) -> bool:
    return product.exists() and product.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def _compile(arguments: list[str]) -> None:
    outcome = subprocess.run(["javac", "-proc:none", *arguments], capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise RuntimeError(f"javac failed:\n{(outcome.stdout + outcome.stderr)[-4000:]}")
