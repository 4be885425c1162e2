"""Apache Kafka's own jars: fetched once, then kept under ``build/``.

    kafka-jars.xml  --mvn dependency:copy-dependencies-->  build/kafka-4.3.1/jars       45 jars, 44 MB, some seconds

Where jars come from is the business of whoever configured Maven.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from keptlog.errors import InvalidConfig

VERSION = "4.3.1"
BUILD = Path(__file__).parents[1] / "build" / f"kafka-{VERSION}"
_POM = Path(__file__).with_name("kafka-jars.xml")


class KafkaMissing(InvalidConfig):
    """Kafka can't be had on this machine; says why and what to do."""


def kafka_jars(progress: Callable[[str], None] | None = None) -> str:
    """The jars as an entry of Java's class path; those that are not there yet are fetched, which ``progress`` is told.

    Raises:
        KafkaMissing: Maven is not there, or can't get them.
    """
    complete = BUILD / ".jars-complete"
    jars = BUILD / "jars"
    if not complete.exists() or complete.stat().st_mtime < _POM.stat().st_mtime:
        if shutil.which("mvn") is None:
            raise KafkaMissing(f"Kafka {VERSION} comes through Maven, and there is no mvn: apt-get install maven")
        if progress:
            progress(f"fetching Kafka {VERSION} through Maven (44 MB, once)")
        shutil.rmtree(BUILD, ignore_errors=True)
        _fetch(jars)
        # Last, so that a fetch that was interrupted is done again.
        complete.touch()
    return str(jars / "*")


def java() -> str:
    """The Java that Spark runs on, too.

    Raises:
        KafkaMissing: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if found is None:
        raise KafkaMissing(
            f"Kafka {VERSION} runs on Java 17 or newer, and there is none: apt-get install openjdk-17-jre-headless, or "
            "let JAVA_HOME lead to it"
        )
    return found


def _fetch(folder: Path) -> None:
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(_POM), *goal]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        lines = (outcome.stdout + outcome.stderr).splitlines()
        said = next((line for line in lines if "ERROR" in line), f"it ended with {outcome.returncode}")
        raise KafkaMissing(f"Maven can't get Kafka {VERSION}: {said}; look at its settings, and try again")
