"""``keptlog resident``: a process that stays, and carries out the commands of its user that need no Spark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import click

from keptlog.cli.own_process import until_stopped
from keptlog.cli.resident import resident_at
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.interrupted import interrupt
from keptlog.resident.place import RESIDENT, as_short, is_off, is_own_folder, own_folder, socket_in

_LOOK_SECONDS = 0.05
_FOR_ITS_USER = 0o700


@click.command(short_help="Keep a process warm for commands that need no Spark.")
def resident() -> None:
    """Stay until stopped (Ctrl-C), and carry out commands of the same user that need no Spark.

    It has imported all that commands import, so they take a fifth of a second. It takes 0.25 GB. They find it by
    themselves. Where it is not there, or they would import something else, they do their work themselves, as without
    it. KEPTLOG_RESIDENT=off has them do so.

    Commands that may start a Spark are not handed over: clean, expire, ingest, import, erase, erasure verify, restore.
    For these there is keptlog spark-server --address-file FILE.
    """
    if is_off(os.environ):
        raise InvalidConfig(f"{RESIDENT}=off, so that no command would find it: unset that")
    path = socket_in(str(_made_folder()))
    if _answers(path):
        raise InvalidConfig(f"a resident listens at {path} already: stop that first (Ctrl-C where it runs)")
    signal.signal(signal.SIGTERM, interrupt)
    with until_stopped(), resident_at(path) as process:
        _wait_until_it_answers(process, path)
        click.echo(f"commands are carried out here until Ctrl-C; it listens at {path}")
        process.wait()
    raise KeptlogError("the resident has ended by itself; commands do their work themselves: start it again")


def _made_folder() -> Path:
    """The folder of the socket, for this user alone.

    Raises:
        InvalidConfig: somebody else could put a socket there.
    """
    named = own_folder(os.environ)
    if named is None:
        raise InvalidConfig("neither XDG_RUNTIME_DIR nor HOME names a folder for the resident's socket: set one")
    folder = Path(named)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=_FOR_ITS_USER)
    if not is_own_folder(named):
        raise InvalidConfig(
            f"{folder} is to be a folder that you alone can reach: chown and chmod 700 it, or remove it"
        )
    return folder


def _answers(path: str) -> bool:
    """Whether somebody listens there; who was killed has left his socket."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError), as_short(path) as short:
        probe.connect(short)
        return True
    return False


def _wait_until_it_answers(process: subprocess.Popen[bytes], path: str) -> None:
    while not _answers(path):
        if process.poll() is not None:
            raise KeptlogError("the resident could not be started: see what it wrote above")
        time.sleep(_LOOK_SECONDS)
