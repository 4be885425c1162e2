"""One Java process that answers scripts with what Apache Kafka does; ``Oracle.java`` says how to ask."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples.kafka_jars import VERSION
from tests.kafka.jars import classpath

Operation = dict[str, Any]
Script = list[Operation]
State = dict[str, Any]

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
FOLDER = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
"""Where the logs of scripts lie, which live for milliseconds: in memory, where there is such a folder."""
_JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaRefused(Exception):
    """An operation of a script threw inside of Kafka; says which and what."""


class KafkaOracle:
    """Runs scripts through Kafka's classes. An answer holds a state for each operation with ``"observe": true``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def states(self, script: Script) -> list[State]:
        """Run one script.

        Raises:
            KafkaRefused: an operation failed.
        """
        answer = next(outcome for _, outcome in self.answers([script]))
        if isinstance(answer, KafkaRefused):
            raise answer
        return answer

    def answers(self, scripts: Iterable[Script]) -> Iterator[tuple[Script, list[State] | KafkaRefused]]:
        """Run many scripts, each while the caller works on the answer before it.

        Only one is sent ahead, and it fits into a pipe's buffer: neither side can wait for the other for ever.
        """
        waiting: Script | None = None
        for script in scripts:
            self._send(script)
            if waiting is not None:
                yield waiting, self._receive()
            waiting = script
        if waiting is not None:
            yield waiting, self._receive()

    def _send(self, script: Script) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"operations": script}) + "\n")
        self._process.stdin.flush()

    def _receive(self) -> list[State] | KafkaRefused:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs Kafka {VERSION} ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            return KafkaRefused(answer["error"])
        states: list[State] = answer["states"]
        return states


@contextmanager
def kafka_oracle() -> Iterator[KafkaOracle]:
    """Start the process; it ends with the block.

    Raises:
        NotInstalled: this machine has no Maven or no Java compiler.
    """
    with tempfile.TemporaryDirectory(prefix="kafka-oracle-", dir=FOLDER) as folder:
        command = ["java", *_JAVA_OPTIONS, "-cp", classpath(), "Oracle", folder]
        # Kafka's log output has no reader here; what goes wrong is in the answers.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            yield KafkaOracle(process)
        finally:
            process.kill()
            process.communicate()
