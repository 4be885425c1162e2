"""Apache Kafka's own jars: fetched once, then kept under ``build/``.

kafka-jars.xml  --mvn dependency:copy-dependencies-->  build/kafka-4.3.1/jars       45 jars, 44 MB, some seconds
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from examples import installed
from examples.installed import MavenJars

VERSION = "4.3.1"
WHAT = f"Kafka {VERSION}"
BUILD = installed.BUILD / f"kafka-{VERSION}"
JARS = MavenJars(WHAT, "44 MB", Path(__file__).with_name("kafka-jars.xml"), BUILD)


def kafka_jars(progress: Callable[[str], None] | None = None) -> str:
    """The jars as an entry of Java's class path; those that are not there yet are fetched, which ``progress`` is told.

    Raises:
        NotInstalled: Maven is not there, or can't get them.
    """
    return JARS.classpath(progress)
