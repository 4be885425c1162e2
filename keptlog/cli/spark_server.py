"""``keptlog spark-server``: a Spark that stays warm for the other commands and for Dagster's runs."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import secrets
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from keptlog.cli.own_process import until_stopped
from keptlog.cli.resident import resident_beside
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.interrupted import interrupt
from keptlog.settings import SPARK_FILE, SPARK_MASTER, home_path, spark_address_file, spark_settings
from keptlog.sinks.new_file import place_for
from keptlog.spark.connect import CONNECT_PORT, place_of
from keptlog.whole_file import replace_file

_OWNER_ALONE = 0o600
_LOOK_SECONDS = 30
"""How often the resident is looked at: starting one takes seconds."""


@click.command(short_help="Keep a Spark warm for other commands and for Dagster.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=CONNECT_PORT, show_default=True, help="On this machine."
)
@click.option(
    "--session-id",
    type=click.UUID,
    help="The session that all share: for an address that is known before there is a server. A new one by default.",
)
@click.option(
    "--address-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep address and token in this file, for its owner alone; by default the one in KEPTLOG_SPARK_MASTER=file:….",
)
def spark_server(port: int, session_id: uuid.UUID | None, address_file: Path | None) -> None:
    """Run a Spark Connect server until it is stopped (Ctrl-C), and print what others need to use it.

    Starting Spark takes a clean some seconds, and the first rewrite some more; here both are done already. The server
    asks for a token: that of SPARK_CONNECT_AUTHENTICATE_TOKEN, or one of its own. It listens on this machine only,
    unless spark.properties in the home has spark.connect.grpc.binding.address. So do Spark's own pages, if somebody has
    turned them on, unless SPARK_LOCAL_IP is set.
    If it dies it is started again, at the same address. With --address-file others find it also after it was stopped
    and started again with another port or token: they read the file each time.

    With --address-file a resident is started too. It has imported all that commands import, and carries out the
    commands of the same user that use the file, so that they need not import anything. It takes 0.25 GB.
    """
    from keptlog.spark.server import TOKEN, connect_server, remote_of  # noqa: PLC0415  # Spark's library comes with it
    from keptlog.spark.settings import session_settings  # noqa: PLC0415

    named = spark_address_file()
    address_file = address_file or named
    # A file says where others find this server, and not where it runs its own work.
    master = None if named else os.environ.get(SPARK_MASTER)
    settings = session_settings(master, spark_settings(home_path()))
    remote = settings.get("spark.remote")
    if remote:
        raise InvalidConfig(
            f"{SPARK_MASTER}, or {SPARK_FILE} in the home, names a Connect server already, {place_of(remote)}: unset it"
        )
    signal.signal(signal.SIGTERM, interrupt)
    if settings["spark.master"].startswith("local"):
        # Spark's pages, if somebody turns them on, would else be everybody's who reaches this machine.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    token = os.environ.setdefault(TOKEN, secrets.token_urlsafe(24))
    if not token:
        raise InvalidConfig(f"{TOKEN} is empty, so that anybody could run code here: give it a long text, or unset it")
    remote = remote_of(port, str(session_id or uuid.uuid4()))
    revived: Callable[[], int | None] | None = None
    with until_stopped(), ExitStack() as beside:
        if address_file:
            address_file.parent.mkdir(parents=True, exist_ok=True)
            place_for(address_file)
            # It takes its time for imports while Spark takes its own: who reads the file finds both.
            revived = beside.enter_context(resident_beside(address_file))
        for starts in itertools.count(1):
            with connect_server(port, token, time.sleep, settings) as process:
                _warm(remote)
                if starts == 1 and address_file:
                    replace_file(address_file, f"{remote};token={token}\n".encode(), _OWNER_ALONE)
                    # Always in quotes, as the lines below: shlex leaves them out where they are not needed.
                    quoted = str(address_file.absolute()).replace("'", """'"'"'""")
                    click.echo(f"export KEPTLOG_SPARK_MASTER='file:{quoted}'")
                elif starts == 1:
                    click.echo(f"export KEPTLOG_SPARK_MASTER='{remote}'")
                    click.echo(f"export {TOKEN}='{token}'")
                ended = _end_of(process, revived)
            click.echo(f"keptlog: Spark's Connect server ended with {ended}; it is started again", err=True)


def _end_of(spark: subprocess.Popen[bytes], revived: Callable[[], int | None] | None) -> int:
    """Wait until Spark ends, by which code; a resident that is killed meanwhile gets a successor."""
    while True:
        try:
            return spark.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if revived and (killed := revived()):
                click.echo(f"keptlog: the resident ended with {killed}; it is started again", err=True)


def _warm(remote: str) -> None:
    """Warm the server up, in a process of its own: a client that exits takes leave of its server, and waits for it.

    Raises:
        StorageUnavailable: it failed.
    """
    warming = multiprocessing.get_context("spawn").Process(target=_warm_up, args=(remote,))
    # Ctrl-C is for this process. What it starts ignores it from its first moment on, and is ended here.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        warming.start()
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        warming.join()
    except BaseException:
        warming.kill()
        warming.join()
        raise
    if warming.exitcode:
        raise StorageUnavailable("the server could not be warmed up: see what it wrote above")


def _warm_up(remote: str) -> None:
    from keptlog.cli.warm_up import warm_up  # noqa: PLC0415  # here the new process begins
    from keptlog.spark.session import start_session  # noqa: PLC0415

    warm_up(start_session(remote))
