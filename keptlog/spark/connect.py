"""A Spark Connect server, seen from its client: whether one is there, and how long it is waited for.

PySpark's client tries a server that does not answer again for ten minutes, and says nothing. What a server did for us
is gone with it anyway, so it is given a quarter of a minute, enough for a network that stumbles. Once it has not
answered for so long, nothing waits for it again: the client would, twice more, before its process ends.

The address may hold a token (``sc://host:port/;token=…``). What people are told never does.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pyspark.sql import SparkSession

from keptlog.errors import StorageUnavailable
from keptlog.spark.failures import grpc_status

CONNECT_PORT = 15002
"""Spark's own, where a Connect server's address has none."""
_CONNECT_SECONDS = 10
_HELLO_SECONDS = 20
_RETRIES = 6
_LONGEST_PAUSE_MS = 5_000
"""Pauses of 0.05, 0.2, 0.8, 3.2 and two times 5 s."""
_START_AGAIN = "start it again (keptlog spark-server), or unset KEPTLOG_SPARK_MASTER to start Spark in each process"
_SECRET_NAME = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
_TOKEN = re.compile(r"(?<=token=)[^;\s'\"]+")


def is_connect(session: SparkSession) -> bool:
    """Whether a session is a client's of a Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def require_server(master: str | None) -> None:
    """If the master is a Connect server, see that somebody listens there.

    Raises:
        StorageUnavailable: nobody does.
    """
    if not master or not master.startswith("sc://"):
        return
    address = urlsplit(master)
    try:
        socket.create_connection((address.hostname or "", _port(address)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        told = f"no Spark Connect server answers at {place_of(master)} ({error}): {_START_AGAIN}"
        raise StorageUnavailable(told) from None


def require_greeting(master: str) -> None:
    """See that whoever listens at a Connect server's address speaks its protocol.

    Raises:
        StorageUnavailable: it does not, or not now.
    """
    import grpc  # type: ignore[import-untyped]  # noqa: PLC0415  # local sessions need it not
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    channel: Any = DefaultChannelBuilder(master).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_HELLO_SECONDS)
    except grpc.FutureTimeoutError:
        raise StorageUnavailable(
            f"what listens at {place_of(master)} does not answer as a Spark Connect server: see that the address is "
            f"right, and TLS is as there (use_ssl=true); {_START_AGAIN}"
        ) from None
    finally:
        channel.close()


def set_patience(session: SparkSession, retries: int = _RETRIES) -> None:
    """Let calls of a Connect session fail soon after its server is gone; with no retries, at once."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415  # local sessions need it not

    policy = DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_PAUSE_MS, max_server_retry_delay=_LONGEST_PAUSE_MS)
    session.client.set_retry_policies([policy])
    # What is told is keptlog's error.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")


def why_refused(error: BaseException, master: str | None) -> str | None:
    """What to do where a Connect server wants another token; null if it is something else."""
    code, _ = grpc_status(error) or ("", "")
    if not master or code not in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return None
    return (
        f"the Spark Connect server at {place_of(master)} wants another token: let SPARK_CONNECT_AUTHENTICATE_TOKEN be "
        "the one that it was started with"
    )


def place_of(master: str) -> str:
    """Host and port of a Connect server, without what else its address says."""
    address = urlsplit(master)
    return f"{address.hostname}:{_port(address)}"


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """A text in which no token and no value of a secret setting stands."""
    for name, value in settings.items():
        if _SECRET_NAME.search(name) and value:
            text = text.replace(value, "…")
    return _TOKEN.sub("…", text)


def _port(address: SplitResult) -> int:
    return address.port or CONNECT_PORT
