"""The resident of ``keptlog spark-server``, or of ``keptlog resident``: has all imported that commands import.

How it does so stands in ``keptlog.resident``, which knows no command.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType

import keptlog
from keptlog.cli import run
from keptlog.errors import KeptlogError
from keptlog.resident.likeness import likeness
from keptlog.resident.listener import serve, thread_count
from keptlog.resident.place import socket_beside

_NOT_FOR_COMMANDS = ("keptlog.dagster", "keptlog.__main__", "keptlog.spark.worker")
_WHEN_NEEDED = (
    "pyspark.sql.connect.session",
    "sqlalchemy.dialects.sqlite",
)
"""What libraries import when they are first used."""
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Libraries that start a thread as soon as they are imported: NumPy's for matrices, and one of Arrow's allocators."""


@contextmanager
def resident_beside(address_file: Path) -> Iterator[Callable[[], int | None]]:
    """A resident for those who find their Spark by this file, until the block ends.

    What it gives starts another one if that was killed, and says by which exit code it was. One that ended by itself
    has said why, and would end again.
    """
    path = socket_beside(str(address_file.absolute()))
    with ExitStack() as beside:
        process = beside.enter_context(resident_at(path))

        def revived() -> int | None:
            nonlocal process
            ended = process.poll()
            if ended is None or ended >= 0:
                return None
            beside.close()
            with suppress(OSError):  # the machine has no room for one now: at the next look then
                process = beside.enter_context(resident_at(path))
                return ended
            return None

        yield revived


@contextmanager
def resident_at(path: str) -> Iterator[subprocess.Popen[bytes]]:
    """A resident that listens at a socket, until the block ends."""
    command = [sys.executable, "-m", __name__, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.stdin:
                process.stdin.close()
            process.terminate()


def import_all() -> None:
    """All that a command may import; what needs an extra that is not installed is left out."""
    os.environ.update(_NO_THREADS)
    # As keptlog.spark.connect does: what gRPC has to say of a handshake is in the error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for name in (*_modules(keptlog), *_WHEN_NEEDED):
        _imported(name)


def _modules(package: ModuleType) -> Iterator[str]:
    """The modules below a package, each package before its own."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(_NOT_FOR_COMMANDS):
            yield found.name
            module = _imported(found.name) if found.ispkg else None
            yield from _modules(module) if module else ()


def _imported(name: str) -> ModuleType | None:
    # A configuration that can't be read is told by the command that reads it.
    with suppress(ImportError, KeptlogError):
        return importlib.import_module(name)
    return None


def _begin() -> None:
    own_likeness = likeness()
    import_all()
    if thread_count() > 1:
        raise SystemExit("keptlog: a library has started a thread when it was imported: commands do their own imports")
    try:
        serve(sys.argv[1], own_likeness, run, sys.stdin.fileno())
    except OSError as error:
        raise SystemExit(f"keptlog: no resident can listen at {sys.argv[1]}: {error.strerror or error}") from error


if __name__ == "__main__":
    _begin()
