"""One Kafka broker, for as long as a block lasts: KRaft, a single process, on loopback, in a folder of its own.

    kafka.tools.StorageTool format     gives the folder its cluster id
    kafka.Kafka                        answers after some seconds
    SIGKILL                            to its process group, whatever happened; the folder goes too

It runs from the jars of ``examples.kafka_jars``. If it does not get ready, what it wrote says why. Ctrl-C at the
terminal does not reach it, but whoever started it, who ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from examples.installed import java
from examples.kafka_jars import VERSION, WHAT, kafka_jars
from examples.ports import free_ports
from keptlog.errors import StorageUnavailable

DEADLINE_SECONDS = 60.0
"""What takes longer than this never comes."""
PLAINTEXT = "PLAINTEXT"
_CONTROLLER = "CONTROLLER"
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": _CONTROLLER,
    "inter.broker.listener.name": PLAINTEXT,
    "listener.security.protocol.map": f"{_CONTROLLER}:PLAINTEXT,{PLAINTEXT}:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}


@dataclass
class KafkaBroker:
    """A broker. ``folder`` is its log directory."""

    folder: Path
    ports: Mapping[str, int]
    """By listener."""
    command: Sequence[str]
    output: Path
    """What it wrote to stdout and stderr since it was started last."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return self.address(PLAINTEXT)

    def address(self, listener: str) -> str:
        """Host and port of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            StorageUnavailable: it does not.
        """
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        try:
            self._wait_until_ready(self.process)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(DEADLINE_SECONDS)

    def restart(self) -> None:
        """Kill it, and start it again with all that it has stored."""
        self.kill()
        self.start()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self._is_ready():
            if process.poll() is not None:
                said = _reason(self.output.read_bytes())
                raise StorageUnavailable(f"Kafka {VERSION} ended with {process.returncode} before it was ready: {said}")
            if time.monotonic() > deadline:
                raise StorageUnavailable(f"Kafka {VERSION} is not ready after {DEADLINE_SECONDS:.0f} s: try again")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        """Whether it listens, and its controller, a little later, lets it have topics."""
        try:
            socket.create_connection(("127.0.0.1", self.ports[PLAINTEXT]), timeout=1).close()
        except OSError:
            return False
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        return bool(admin.list_topics(timeout=DEADLINE_SECONDS).brokers)


@contextmanager
def kafka_broker(settings: Mapping[str, str] | None = None, listeners: Sequence[str] = ()) -> Iterator[KafkaBroker]:
    """Start a broker; its process and its folder are gone when the block ends.

    ``settings`` go over those that it has here; each further listener gets a port of its own.

    Raises:
        NotInstalled: there is no Java, or Maven is missing or can't get the jars.
        StorageUnavailable: it does not start.
    """
    command = [java(WHAT), *_JAVA_OPTIONS, "-cp", kafka_jars()]
    with tempfile.TemporaryDirectory(prefix="kafka-broker-") as temporary:
        folder = Path(temporary)
        names = [PLAINTEXT, *listeners, _CONTROLLER]
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        config = folder / "server.properties"
        config.write_text(_properties(ports, folder / "logs", settings or {}))
        formatting = ["kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER_ID, "-c", str(config)]
        outcome = subprocess.run([*command, *formatting], capture_output=True, check=False)
        if outcome.returncode != 0:
            said = _reason(outcome.stdout + outcome.stderr)
            raise StorageUnavailable(f"Kafka {VERSION} can't format its folder: {said}")
        broker = KafkaBroker(folder / "logs", ports, [*command, "kafka.Kafka", str(config)], folder / "output")
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()


def _reason(output: bytes) -> str:
    """Why a Java program ended: the last line that it wrote, stack traces and the logger's own news left out."""
    lines = output.decode(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not line[0].isspace() and not line.startswith("SLF4J:")]
    return told[-1] if told else "it did not say why"


def _properties(ports: Mapping[str, int], folder: Path, settings: Mapping[str, str]) -> str:
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    here = {
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[_CONTROLLER]}",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "log.dirs": str(folder),
    }
    return "".join(f"{name}={value}\n" for name, value in (_SETTINGS | dict(settings) | here).items())
