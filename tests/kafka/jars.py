"""Apache Kafka's own jars and the program that drives them: fetched and compiled once, then kept under ``build/``.

    pom.xml  --mvn dependency:copy-dependencies-->  build/kafka-4.3.1/jars       45 jars, 44 MB, some seconds
    *.java   --javac-->                             build/kafka-4.3.1/classes    again whenever a source is newer

Where jars come from is the business of whoever configured Maven.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VERSION = "4.3.1"
BUILD = HERE.parents[1] / "build" / f"kafka-{VERSION}"
JARS = BUILD / "jars"
CLASSES = BUILD / "classes"
COMPLETE = BUILD / ".jars-complete"
"""Written last, so that a fetch that was interrupted is done again."""


class KafkaMissing(Exception):
    """Kafka's classes can't be had on this machine; says why and what to do."""


def classpath() -> str:
    """Fetch and compile what is missing, and return Java's class path.

    Raises:
        KafkaMissing: there is no ``mvn`` or no ``javac``, or Maven can't get the jars.
        RuntimeError: our own program does not compile.
    """
    for program, package in (("mvn", "maven"), ("javac", "openjdk-17-jdk-headless")):
        if shutil.which(program) is None:
            raise KafkaMissing(f"not compared with Apache Kafka {VERSION}: no {program}; apt-get install {package}")
    if not _is_newer(COMPLETE, [HERE / "pom.xml"]):
        try:
            _fetch()
        except RuntimeError as error:
            raise KafkaMissing(f"not compared with Apache Kafka {VERSION}: {error}") from error
    sources = sorted(HERE.glob("*.java"))
    if not _is_newer(CLASSES / "Oracle.class", sources):
        CLASSES.mkdir(parents=True, exist_ok=True)
        _run(["javac", "-proc:none", "-d", str(CLASSES), "-cp", f"{JARS}/*", *map(str, sources)])
    return f"{CLASSES}{os.pathsep}{JARS}/*"


def classpath_or_skip() -> str:
    """The class path for a test; skips where Kafka can't be had. Where a build server has Maven, it must be had."""
    try:
        return classpath()
    except KafkaMissing as missing:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            raise
        pytest.skip(str(missing))


def _fetch() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
    _run(["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), *goal])
    COMPLETE.touch()


def _is_newer(product: Path, sources: list[Path]) -> bool:
    return product.exists() and product.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def _run(command: list[str]) -> None:
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{(outcome.stdout + outcome.stderr)[-4000:]}")
