"""A resident without a Spark, and clients of it as processes of their own."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keptlog.cli.resident import resident_beside
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.resident.place import as_short, socket_beside
from tests.processes import Started, descendants

_CLIENT = """
import os
import sys
from keptlog.resident import handover
from keptlog.resident.handover import hand_over
from keptlog.streams import open_closed_streams
open_closed_streams()
handover._ANSWER_SECONDS = float(os.environ.get("KEPTLOG_TEST_ANSWER_SECONDS", "60"))
code = hand_over(sys.argv)
sys.exit(99 if code is None else code)
"""
REFUSED = 99
"""What a client of these tests ends with where it would have to do the command itself."""
_START_SECONDS = 200
_LOOKS = 5


@dataclass(frozen=True)
class Resident:
    """One that is running, and what leads to it."""

    pid: int
    address: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def commands(self) -> set[Started]:
        """What it carries out at the moment."""
        return descendants(self.pid)

    def waiting_command(self) -> Started:
        """The one that it carries out, once it has begun and waits for its input."""
        deadline = time.monotonic() + _START_SECONDS
        looks = 0
        while looks < _LOOKS:
            assert time.monotonic() < deadline, "nothing was handed over"
            time.sleep(0.02)
            found = self.commands()
            looks = looks + 1 if [each for each in found if _waits(each.pid)] else 0
        [command] = found
        return command


def _waits(pid: int) -> bool:
    """Whether its client has let it begin, which it watches in a thread, and it does nothing at the moment."""
    with suppress(OSError):
        states = [each.read_text().rpartition(")")[2].split()[0] for each in Path(f"/proc/{pid}/task").glob("*/stat")]
        return len(states) > 1 and set(states) == {"S"}
    return False


def client(*words: str) -> list[str]:
    """The command line of a client that does nothing itself."""
    return [sys.executable, "-c", _CLIENT, *words]


@contextmanager
def running(address: Path) -> Iterator[Resident]:
    """A resident until the block ends."""
    before = descendants(os.getpid())
    with resident_beside(address):
        [process] = descendants(os.getpid()) - before
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(socket_beside(str(address))):
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.05)
        own = {name: value for name, value in os.environ.items() if not name.startswith("KEPTLOG_")}
        # Whoever runs these tests may have a resident of his own.
        alone = {"XDG_RUNTIME_DIR": str(address.parent)}
        yield Resident(process.pid, address, {**own, **alone, "KEPTLOG_SPARK_MASTER": f"file:{address}"})


def _answers(path: str) -> bool:
    """Whether somebody listens there; who was killed has left his socket."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError), as_short(path) as short:
        probe.connect(short)
        return True
    return False


@pytest.fixture(scope="package")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    with running(tmp_path_factory.mktemp("resident") / "address") as found:
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in which a home ``home`` has a topic with one record."""
    made = open_home(tmp_path / "home", {})
    made.create_topic("users", config={"cleanup.policy": "compact"})
    made.append("users", [NewRecord(b"ada", b"1", 1_767_225_600_000)])
    return tmp_path
