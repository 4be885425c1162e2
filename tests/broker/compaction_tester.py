"""Kafka's own ``LogCompactionTester``, with keptlog in the place of the broker's cleaner.

    the tester      produces updates and deletions, sleeps, consumes the topics, and compares the state of both
    while it sleeps whoever calls does what he likes with the topics

It sleeps for as long as that takes: it is stopped (SIGSTOP) as soon as it says that it sleeps.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence

from examples import installed
from examples.installed import MavenJars, java
from examples.kafka_jars import VERSION
from tests.kafka.jars import or_skip

_WHAT = f"Kafka's tools {VERSION}"
_JARS = MavenJars(
    _WHAT, "43 MB", installed.BUILD.parent / "tests/broker/kafka-tools.xml", installed.BUILD / f"kafka-tools-{VERSION}"
)
_JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SLEEP_SECONDS = 10
"""Within these the line must be read that says that it sleeps."""


def tools_classpath() -> str:
    """Raises NotInstalled where they can't be had."""
    return _JARS.classpath()


def run_tester(bootstrap: str, options: Sequence[str], meanwhile: Callable[[list[str]], None]) -> str:
    """Let it produce, call ``meanwhile`` with its topics, let it consume and compare; returns what it printed."""
    command = [java(_WHAT), *_JAVA_OPTIONS, "-cp", or_skip(tools_classpath)]
    asked = ["org.apache.kafka.tools.LogCompactionTester", "--bootstrap-server", bootstrap, "--sleep"]
    with tempfile.TemporaryDirectory(prefix="compaction-tester-") as folder:
        process = subprocess.Popen(
            [*command[:1], f"-Djava.io.tmpdir={folder}", *command[1:], *asked, str(_SLEEP_SECONDS), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout
        try:
            said = []
            topics: list[str] = []
            for line in process.stdout:
                said.append(line)
                if line.startswith("Producing"):
                    topics = line.split("to topics ")[1].strip().split(",")
                if line.startswith("Sleeping"):
                    process.send_signal(signal.SIGSTOP)
                    meanwhile(topics)
                    process.send_signal(signal.SIGCONT)
            process.wait()
        finally:
            process.kill()
            process.communicate()
    return "".join(said)
