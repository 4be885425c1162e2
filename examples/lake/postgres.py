"""A PostgreSQL for as long as a block lasts: initdb and postgres, in a folder of its own that is gone at the end.

It refuses to be root, so where we are root it runs as ``postgres`` or ``nobody``. It asks for no password: it listens
on loopback only. It syncs as on any other day, so what it acknowledged survives its kill.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.installed import NotInstalled
from examples.lake.server_process import DEADLINE_SECONDS, ServerProcess, running
from examples.ports import free_port
from keptlog.errors import StorageUnavailable

USER = "keptlog"
DATABASE = "postgres"
_DEBIAN = Path("/usr/lib/postgresql")
_STILL_THERE = "is still in use"
"""What a server says whose children have not noticed yet that it was killed."""


@dataclass(frozen=True)
class Postgres:
    """A database server."""

    server: ServerProcess
    port: int
    binaries: Path

    def uri(self, database: str = DATABASE, port: int | None = None) -> str:
        """For SQLAlchemy; ``port`` is another one if a proxy stands before it."""
        return f"postgresql+psycopg2://{USER}@127.0.0.1:{port or self.port}/{database}"

    def create(self, database: str) -> str:
        """Make a database; gives its URI."""
        address = ["--host", "127.0.0.1", "--port", str(self.port), "--username", USER]
        _run([str(self.binaries / "createdb"), *address, database], "")
        return self.uri(database)

    def restart(self) -> None:
        """Kill it as ``kill -9`` does, and start it again with all that it has stored."""
        self.server.kill()
        self.start()

    def start(self) -> None:
        """Start it again."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                return self.server.start()
            except StorageUnavailable:
                if _STILL_THERE not in self.server.output.read_text() or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


@contextmanager
def postgres(settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """Start a database server, with settings besides; its processes and its folder are gone when the block ends.

    Raises:
        NotInstalled: PostgreSQL is not there.
        StorageUnavailable: it does not start.
    """
    binaries = _binaries()
    user = _unprivileged()
    with tempfile.TemporaryDirectory(prefix="keptlog-postgres-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user:
            folder.chmod(0o711)
            shutil.chown(data, user)
        making = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", f"--username={USER}"]
        _run([str(binaries / "initdb"), *making, "--pgdata", str(data)], user)
        port = free_port()
        ours = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 200,
        }
        options = [text for name, value in {**(settings or {}), **ours}.items() for text in ("-c", f"{name}={value}")]
        ready = [str(binaries / "pg_isready"), "--quiet", "--host", "127.0.0.1", "--port", str(port)]
        server = ServerProcess(
            "PostgreSQL",
            [str(binaries / "postgres"), "-D", str(data), *options],
            answers=lambda: subprocess.run(ready, check=False).returncode == 0,
            output=folder / "output",
            user=user,
        )
        with running(server):
            yield Postgres(server, port, binaries)


def _binaries() -> Path:
    """The newest that there are."""
    places = sorted(_DEBIAN.glob("*/bin"), key=lambda each: int(each.parent.name.partition(".")[0]), reverse=True)
    onpath = shutil.which("initdb")
    found = [each for each in [*places, *([Path(onpath).parent] if onpath else [])] if (each / "initdb").exists()]
    if not found:
        raise NotInstalled("PostgreSQL is not here: apt-get install --no-install-recommends postgresql")
    return found[0]


def _unprivileged() -> str:
    """Whom the server runs as; empty where we are somebody ourselves."""
    if os.getuid() != 0:
        return ""
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def _run(command: list[str], user: str) -> None:
    outcome = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=user or None,
        extra_groups=[] if user else None,
    )
    if outcome.returncode != 0:
        said = (outcome.stderr.splitlines() or ["it did not say why"])[-1]
        raise StorageUnavailable(f"PostgreSQL can't do it: {Path(command[0]).name}: {said}")
