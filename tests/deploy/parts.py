"""What deploy/compose.yaml starts, started as processes: the same commands, environment and health checks.

There may be no containers where tests run. So a part's folders become folders of the test, its ports free ones, and a
thread does what ``restart: unless-stopped`` does: it starts the part again once its process has ended. Nothing else is
changed: what is run is read from the file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.lake.postgres import USER, Postgres
from examples.ports import free_ports

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PARTS = ("spark", "code", "daemon", "webserver", "metrics")
"""Of keptlog's image, in the order in which they wait for each other."""
_PORTS = ("15002", "4000", "3000", "9464")
_HEALTHY_SECONDS = 400
_CHECK_EVERY_SECONDS = 5
"""As start_interval says there: some checks load half of Dagster, and what they ask about waits for them."""


def services() -> dict[str, Any]:
    """The services of compose.yaml."""
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return read


def variables(text: str) -> dict[str, str]:
    """The variables of a file like keptlog.env."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


@dataclass(frozen=True)
class Elsewhere:
    """Where a container's folders and ports are here."""

    folder: Path
    ports: Mapping[str, str] = field(
        default_factory=lambda: dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True))
    )

    def of(self, text: str) -> str:
        """A text of a container, as it has to be here."""
        # All at once: the number of a free port, or a folder's name, may have that of another port in it.
        text = re.sub("|".join(self.ports), lambda found: self.ports[found[0]], text)
        for inside in ("/var/lib/keptlog", "/var/lib/dagster", "/etc/dagster"):
            text = text.replace(inside, str(self.folder / inside.strip("/")))
        return text.replace("0.0.0.0", "127.0.0.1")  # noqa: S104  # that of the pod

    @property
    def home(self) -> Path:
        return self.folder / "var/lib/keptlog"

    @property
    def dagster(self) -> Path:
        return self.folder / "etc/dagster"


@dataclass
class Part:
    """One service: its process, and who starts it again."""

    name: str
    command: list[str]
    check: list[str]
    environment: dict[str, str]
    folder: Path
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def keep_running(self) -> None:
        """Start it, and again whenever it ends, until it is stopped."""
        while not self.stopped.is_set():
            with (self.folder / f"{self.name}.log").open("ab") as log:
                self.process = subprocess.Popen(
                    self.command,
                    env=self.environment,
                    cwd=self.folder,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self.starts += 1
            self.process.wait()
            self._end_the_rest()
            self.stopped.wait(0.5)

    def kill(self) -> None:
        """``kill -9``. A container ends with its first process, and all others in it do too."""
        before = self.starts
        assert self.process
        os.kill(self.process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 300
        while self.starts == before and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.starts > before

    def stop(self) -> None:
        self.stopped.set()
        if self.process:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
            self._end_the_rest()

    def wait_until_healthy(self) -> None:
        """As its own health check says."""
        deadline = time.monotonic() + _HEALTHY_SECONDS
        while True:
            done = self.checked()
            if not done.returncode:
                return
            if time.monotonic() > deadline:
                pytest.fail(f"{self.name} does not get healthy: {done.stdout}{done.stderr}\n{self.said()}")
            time.sleep(_CHECK_EVERY_SECONDS)

    def checked(self) -> subprocess.CompletedProcess[str]:
        """Its own health check, once."""
        return subprocess.run(
            self.check, env=self.environment, capture_output=True, text=True, timeout=_HEALTHY_SECONDS, check=False
        )

    def said(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()[-3000:]

    def _end_the_rest(self) -> None:
        assert self.process
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@contextmanager
def deployed(folder: Path, database: Postgres) -> Iterator[tuple[Elsewhere, dict[str, Part]]]:
    """All parts, healthy. They are gone when the block ends."""
    elsewhere = Elsewhere(folder)
    for each in (elsewhere.home, elsewhere.dagster, folder / "var/lib/dagster"):
        each.mkdir(parents=True)
    settings = (ROOT / "dagster.yaml").read_text() + (DEPLOY / "storage.yaml").read_text()
    (elsewhere.dagster / "dagster.yaml").write_text(elsewhere.of(settings))
    (elsewhere.dagster / "workspace.yaml").write_text(elsewhere.of((DEPLOY / "workspace.yaml").read_text()))
    environment = _environment(elsewhere, database)
    parts = {
        name: _part(name, service, environment, elsewhere) for name, service in services().items() if name in PARTS
    }
    threads = []
    try:
        for name in PARTS:
            threads.append(threading.Thread(target=parts[name].keep_running))
            threads[-1].start()
            if name in {"spark", "code"}:
                parts[name].wait_until_healthy()
        for part in parts.values():
            part.wait_until_healthy()
        yield elsewhere, parts
    finally:
        for part in reversed(parts.values()):
            part.stop()
        for thread in threads:
            thread.join(30)


def _part(name: str, service: Mapping[str, Any], environment: Mapping[str, str], elsewhere: Elsewhere) -> Part:
    own = {key: elsewhere.of(value) for key, value in service.get("environment", {}).items()}
    kind, *check = service["healthcheck"]["test"]
    assert kind == "CMD"
    command = [elsewhere.of(word) for word in service["command"]]
    return Part(name, command, [elsewhere.of(word) for word in check], {**environment, **own}, elsewhere.folder)


def _environment(elsewhere: Elsewhere, database: Postgres) -> dict[str, str]:
    """What is in a container: the image's variables, and those of keptlog.env."""
    database.create("dagster")
    told = variables((DEPLOY / "keptlog.env.example").read_text())
    told |= {"DAGSTER_PG_HOST": "127.0.0.1", "DAGSTER_PG_PORT": str(database.port), "DAGSTER_PG_USER": USER}
    told |= {"DAGSTER_PG_PASSWORD": "unasked", "SPARK_CONNECT_AUTHENTICATE_TOKEN": "the-token-of-the-test"}
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("KEPTLOG_", "DAGSTER_"))}
    image = {"DAGSTER_HOME": str(elsewhere.dagster), "KEPTLOG_HOME": str(elsewhere.home), "PYTHONPATH": str(ROOT)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**bare, "PATH": path, **image, **told}
