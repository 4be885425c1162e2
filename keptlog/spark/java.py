"""Spark's Java, from its start until it can be asked: what it writes meanwhile, and its end where it is not wanted.

PySpark can start it too, but then lets go of it. Whoever pressed Ctrl-C meanwhile left a Java that nobody ended: the
folder in which it was to leave its address was gone. And what is wrong with its settings is told by Java in a stack
trace, and by PySpark as if there were no Java.

    this process  ──── stdin ────────────>  spark-submit, which becomes Java, which ends when its stdin does
                  <─── stdout, stderr ────  held back until there is a session, then passed on line by line

What Java writes on stdout would stand among the answers of a command, so all of it goes to stderr here.
It is in a process group of its own, so that Ctrl-C on a terminal reaches this process alone, which then decides.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, cast

from keptlog.errors import InvalidConfig

_logger = logging.getLogger(__name__)

INSTALL_JAVA = (
    "Spark could not start Java: install Java 17 or newer, for example with "
    "apt-get install openjdk-17-jre-headless, and let JAVA_HOME or PATH lead to it"
)
_LOOK_SECONDS = 0.05
_LAST_WORDS_SECONDS = 5
_LINES = 500
_NOISE = re.compile(r"WARNING: Using incubator modules|\s*$")
_NO_JAVA = re.compile(
    r"JAVA_HOME is not set|java: (command )?not found|(env|java): .*No such file"
    r"|UnsupportedClassVersionError|Unrecognized option"
)
"""None at all, or one that is too old for what Spark asks of it. A shell writes the path before."""
_BESIDE_THE_REASON = re.compile(
    r"Picked up \w+: |Error occurred during initialization of VM|Error: (Could not create|A fatal)"
)
"""What Java says before its reason, or after it."""
_THROWN = re.compile(r'Exception in thread "main" (?:[\w$]+\.)+[\w$]+: (.+)')
_ERROR = re.compile(r" ERROR \S+: (.+?)(?: Ignoring this directory\.)?$")
"""As ``log4j2.properties`` has it. Of several the first has the name of what failed."""
_NO_FOLDER = "Failed to create local dir"
_ENDS_SECONDS = 1.0
"""A Java whose connections have just broken may take a moment to be gone."""
_STACK = re.compile(r"\s+at |Caused by: |\s*\.\.\. \d+ more")


@dataclass(frozen=True)
class Java:
    """A Java that can be asked; ``port`` and ``secret`` lead to it."""

    process: subprocess.Popen[bytes]
    words: Words
    port: int
    secret: str


class Words:
    """What a process writes, line by line, until it ends; held back at first."""

    def __init__(self, source: IO[bytes]) -> None:
        self.held: deque[str] = deque(maxlen=_LINES)
        self._source = source
        self._lock = threading.Lock()
        self._is_held = True
        self._reading = threading.Thread(target=self._read, name="what Java writes", daemon=True)
        self._reading.start()

    def pass_on(self) -> None:
        """From now on they go to stderr, and so do those that were kept back."""
        with self._lock:
            for line in self.held:
                _tell(line)
            self.held.clear()
            self._is_held = False

    def drop(self) -> None:
        """As ``pass_on``, but for what was kept back: what it is about is told otherwise."""
        self.held.clear()
        self.pass_on()

    def hold(self) -> None:
        """From now on they are held back again."""
        with self._lock:
            self._is_held = True

    def last(self) -> list[str]:
        """Those that were kept back, of a process that has ended."""
        self._reading.join(_LAST_WORDS_SECONDS)
        return list(self.held)

    def _read(self) -> None:
        for raw in self._source:
            line = raw.decode(errors="replace").rstrip()
            with self._lock:
                if not self._is_held:
                    _tell(line)
                    continue
                self.held.append(line)
            _logger.info("Java, held back: %s", line)


def _tell(line: str) -> None:
    if not _NOISE.match(line):
        # Whoever has closed stderr wants to hear nothing.
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")


class StartingJava:
    """A Java that was started by ``spark-submit`` and its arguments, and need not be waited for yet.

    Whoever has begun it calls ``wait`` or ``end``. Where neither comes, it ends with this process. By itself it would
    not: it is to leave its address in a folder that goes with this process, and stays for ever if it can't.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="keptlog-java-")
        self._address = Path(self._folder.name) / "address"
        # The two variables are those by which PySpark starts it.
        told = {**environment, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address)}
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_by = os.getpid()
        atexit.register(self._end_with_process)
        try:
            with _interrupted_later():
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=told,
                    process_group=0,
                )
            self._words = Words(cast("IO[bytes]", self._process.stdout))
        except BaseException:
            self.end()
            raise

    def wait(self) -> Java:
        """Wait until it can be asked. If that fails, none is left.

        Raises:
            InvalidConfig: there is no Java, or it does not accept its settings.
        """
        process = cast("subprocess.Popen[bytes]", self._process)
        try:
            _wait_for(self._address, process, self._words)
            java = Java(process, self._words, *_address(self._address.read_bytes()))
        except BaseException:
            self.end()
            raise
        atexit.unregister(self._end_with_process)
        self._folder.cleanup()
        return java

    def _end_with_process(self) -> None:
        if os.getpid() == self._begun_by:  # and not one that was forked since
            self.end()

    def end(self) -> None:
        """End it, unwanted."""
        atexit.unregister(self._end_with_process)
        if self._process:
            end(self._process)
        self._folder.cleanup()


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Ctrl-C comes when the block is over: within it a process may run already that nobody could end yet."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(*came[0])


def _wait_for(address: Path, process: subprocess.Popen[bytes], words: Words) -> None:
    while not address.exists():
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_SECONDS)
            raise InvalidConfig(why_none(words.last()))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a Java that nobody needs, and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def why_none(lines: Sequence[str]) -> str:
    """What people are told of a Java that ended before it could be asked, by what it wrote."""
    beside = (_NOISE, _STACK, _BESIDE_THE_REASON)
    said = [line.strip() for line in lines if not any(pattern.match(line) for pattern in beside)]
    if not said or any(_NO_JAVA.search(line) for line in said):
        return INSTALL_JAVA
    error = _first_error(said)
    if error and _NO_FOLDER in error:
        return f"Spark could not be started: {error}"
    thrown = next((found.group(1) for line in said if (found := _THROWN.match(line))), error or said[0])
    mend = "mend KEPTLOG_SPARK_MASTER, spark.properties in the home, or spark_config in Dagster"
    return f"Spark could not be started with its settings: {thrown}; {mend}"


def why_ended(java: Java) -> str | None:
    """Why a Java has ended by itself, by what it wrote; null if it runs. PySpark hears only that nobody answers."""
    try:
        java.process.wait(_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return f"its Java has ended: {_first_error(java.words.last()) or 'it does not say why'}"


def _first_error(lines: Sequence[str]) -> str | None:
    """What Spark's log tells of its first error, and what helps where that is known; null if it tells of none."""
    said = next((found.group(1).rstrip(".") for line in lines if (found := _ERROR.search(line))), None)
    mend = ": let SPARK_LOCAL_DIRS, or spark.local.dir, name a folder that it can write to"
    return f"{said}{mend}" if said and _NO_FOLDER in said else said


def _address(stored: bytes) -> tuple[int, str]:
    """Port and secret, as PySpark's gateway writes them: a number, the length of a text, the text."""
    port, length = int.from_bytes(stored[:4]), int.from_bytes(stored[4:8])
    return port, stored[8 : 8 + length].decode()
