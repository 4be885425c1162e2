"""One Java process that answers scripts with what Apache Kafka does; ``Oracle.java`` says how to ask."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import IO, Any

from examples.kafka_jars import VERSION
from tests.in_memory import SHARED_MEMORY
from tests.kafka.jars import classpath

Operation = dict[str, Any]
Script = list[Operation]
State = dict[str, Any]

FOLDER = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
"""Where the logs of scripts lie, which live for milliseconds: in memory, where there is such a folder."""
_JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaRefused(Exception):
    """An operation of a script threw inside of Kafka; says which and what."""


class KafkaOracle:
    """Runs scripts through Kafka's classes. An answer holds a state for each operation with ``"observe": true``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        self._process = process
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._writer = threading.Thread(target=_write, args=(self._lines, process.stdin), daemon=True)
        self._writer.start()
        self._unread = 0
        """Answers that nobody has read yet."""

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._lines.put(None)
        self._writer.join()
        self._process.communicate()

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

        A thread writes what is asked, so that neither side waits for the other for ever, however large a line is.
        """
        while self._unread:  # who asked before has stopped in the middle
            self._receive()
        waiting: Script | None = None
        for script in scripts:
            self._unread += 1
            self._lines.put(json.dumps({"operations": script}) + "\n")
            if waiting is not None:
                yield waiting, self._receive()
            waiting = script
        if waiting is not None:
            yield waiting, self._receive()

    def _receive(self) -> list[State] | KafkaRefused:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs Kafka {VERSION} ended with {self._process.wait()}")
        self._unread -= 1
        answer = json.loads(line)
        if "error" in answer:
            return KafkaRefused(answer["error"])
        states: list[State] = answer["states"]
        return states


def _write(lines: SimpleQueue[str | None], stdin: IO[str]) -> None:
    """Write line by line until there is a null, or nobody reads any more."""
    with contextlib.suppress(BrokenPipeError):
        while (line := lines.get()) is not None:
            stdin.write(line)
            stdin.flush()


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
        oracle = KafkaOracle(process)
        try:
            yield oracle
        finally:
            oracle.close()
