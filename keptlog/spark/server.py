"""A Spark that stays warm: a Connect server with keptlog's own settings, for commands and runs that need not start one.

    keptlog spark-server             keptlog clean, Dagster's runs          KEPTLOG_SPARK_MASTER=sc://localhost:15002/;…
    [ JVM, Python workers ]  <────── the same session for all: 1 s instead of 10

Spark keeps Python workers by session, and a new session's are cold. So the address names a session, which never expires
and which all share; keptlog sets nothing in it, and a task's paths are its own whoever sent it.

Whoever reaches its port may run code as its user. So it listens on this machine only, unless the setting
``spark.connect.grpc.binding.address`` says otherwise, and asks for a token, which client and server both read from
``SPARK_CONNECT_AUTHENTICATE_TOKEN``.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

import pyspark

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.spark.archive import with_archive
from keptlog.spark.java import Words, why_none
from keptlog.spark.launch import settings_file
from keptlog.spark.nameless import with_user
from keptlog.spark.session import use_this_python

_logger = logging.getLogger(__name__)

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105  # the variable's name
_HOME = Path(pyspark.__file__).parent
_SUBMIT = _HOME / "bin" / "spark-submit"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_ADDRESS = "spark.connect.grpc.binding.address"
_LOOPBACK = "127.0.0.1"
_PAUSE_SECONDS = 0.2
_START_SECONDS = 120
_STOP_SECONDS = 20


@contextmanager
def connect_server(
    port: int, token: str, sleep: Callable[[float], None], settings: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; it answers at ``remote_of`` to those who know the token.

    ``settings`` are those of a session; they may bind it to another address than this machine's own.

    Raises:
        InvalidConfig: the port is taken, or Spark can't be started.
        StorageUnavailable: the server does not answer in time.
    """
    host = settings.get(_ADDRESS, _LOOPBACK)
    if _answers(host, port) or _is_held(host, port):
        raise _taken(port)
    use_this_python(settings)
    with settings_file(_with_own(settings, port)) as arguments:
        command = [str(_SUBMIT), *arguments, "--class", _SERVER, "spark-internal"]
        variables = {**with_user(os.environ), TOKEN: token}
        if settings.get("spark.master", "").startswith("local"):
            variables = with_archive(variables, settings, _HOME)
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        watch: subprocess.Popen[bytes] | None = None
        try:
            watch = _ends_with_us(process)
            words = Words(cast("IO[bytes]", process.stdout))
            _wait_until_it_answers(process, words, (host, port), sleep)
        except BaseException:
            _end(process, watch)
            raise
        words.pass_on()
    try:
        yield process
    except StorageUnavailable:
        # Another that was started at the same time has answered in its place: then this one ends for want of a port.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
            if _is_held(host, port):  # otherwise it has died of something else
                raise _taken(port) from None
        raise
    finally:
        _end(process, watch)


def remote_of(port: int, session_id: str) -> str:
    """What ``KEPTLOG_SPARK_MASTER`` is to be. A client sends its token in the clear only to ``localhost``."""
    return f"sc://localhost:{port}/;user_id=keptlog;session_id={session_id}"


def _with_own(settings: Mapping[str, str], port: int) -> dict[str, str]:
    own = {_ADDRESS: _LOOPBACK, "spark.connect.session.manager.defaultSessionTimeout": "-1"}
    return {**own, **settings, "spark.connect.grpc.binding.port": str(port)}


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], words: Words, address: tuple[str, int], sleep: Callable[[float], None]
) -> None:
    for _ in range(round(_START_SECONDS / _PAUSE_SECONDS)):
        if process.poll() is not None:
            raise _taken(address[1]) if _is_held(*address) else InvalidConfig(why_none(words.last()))
        if _answers(*address):
            _logger.info("Spark's Connect server, process %d, answers at port %d", process.pid, address[1])
            return
        sleep(_PAUSE_SECONDS)
    raise StorageUnavailable(f"Spark's Connect server does not answer after {_START_SECONDS} s; try again")


def _ends_with_us(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """A shell that ends it even if this process is killed, for its pipe from here ends then.

    Left alone the server would hold the port, and nobody who starts one anew would know whose it is.
    """
    command = ("sh", "-c", 'read -r _; kill "$1"', "sh", str(process.pid))
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _end(process: subprocess.Popen[bytes], watch: subprocess.Popen[bytes] | None) -> None:
    if watch:
        with watch:
            watch.kill()
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        text = "Spark's Connect server, process %d, does not end within %d s; it is killed"
        _logger.warning(text, process.pid, _STOP_SECONDS)
    process.kill()
    process.wait()


def _taken(port: int) -> InvalidConfig:
    return InvalidConfig(f"port {port} is taken, perhaps by another server: choose one with --port")


def _is_held(host: str, port: int) -> bool:
    """Whether somebody has the port without answering: he does not listen yet, or his queue is full."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: a server of just now holds none
            trial.bind(address)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
