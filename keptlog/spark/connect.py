"""A Spark Connect server, seen from its client: whether one is there, and how long it is waited for.

PySpark's client tries a server that does not answer again for ten minutes, and says nothing. What a server did for us
is gone with it anyway, so it is given a quarter of a minute, enough for a network that stumbles. Once it has not
answered for so long, nothing waits for it again: the client would, twice more, before its process ends.

The address may hold a token (``sc://host:port/;token=…``). What people are told never does.
"""

from __future__ import annotations

import os
import socket
import ssl
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from keptlog.errors import StorageUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_PORT = 15002
"""Spark's own, where a Connect server's address has none."""
_CONNECT_SECONDS = 10
_GLANCE_SECONDS = 2
_HANDSHAKE_SECONDS = 5
_HELLO_SECONDS = 20
_NO_CALL = "/keptlog/Hello"
_AUTHORITIES = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
"""Whom gRPC trusts, if not those that came with it."""
_RETRIES = 6
_LONGEST_PAUSE_MS = 5_000
"""Pauses of 0.05, 0.2, 0.8, 3.2 and two times 5 s."""
_START_AGAIN = "start it again (keptlog spark-server), or unset KEPTLOG_SPARK_MASTER to start Spark in each process"


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
    # It looks for this when it is imported. What it has to say of a handshake is in the error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc  # type: ignore[import-untyped]  # noqa: PLC0415  # local sessions need it not
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    channel: Any = DefaultChannelBuilder(master).toChannel()
    # A call that no server knows: that it is refused is an answer. To wait for the channel instead takes a thread of
    # gRPC's, which ends a fifth of a second later.
    hello = channel.unary_unary(_NO_CALL)
    unanswered = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)

    def is_answered(seconds: float) -> bool:
        try:
            hello(b"", timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as refusal:
            return refusal.code() not in unanswered
        return True

    with closing(channel):
        if is_answered(_GLANCE_SECONDS):
            return
        # What is wrong with TLS does not pass with time, but a server may only be slow.
        why = why_no_greeting(master)
        if not why and is_answered(_HELLO_SECONDS):
            return
    told = f"what listens at {place_of(master)} does not answer as a Spark Connect server"
    raise StorageUnavailable(f"{told}: {why or f'see that the address is right; {_START_AGAIN}'}")


def why_no_greeting(master: str) -> str | None:
    """What is wrong with TLS between here and a Connect server; null if it is something else.

    A client speaks TLS if its address says so, and also if it has a token and the server is not at ``localhost``.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415  # local sessions need it not

    builder = DefaultChannelBuilder(master)
    is_told = builder.use_ssl
    is_spoken_here = is_told or (builder.secure and builder.host != "localhost")
    refused = _tls_refusal(urlsplit(master), is_trusted=is_spoken_here)
    if not is_spoken_here:
        return None if refused else "it speaks TLS: add ;use_ssl=true to the address"
    if not refused:
        return None
    if isinstance(refused, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({refused.verify_message}): let {_AUTHORITIES} name a file with the "
            "certificate of its authority, and the address name the host that it was issued for"
        )
    if is_told:
        return "it speaks no TLS: take use_ssl=true out of the address"
    return (
        "it speaks no TLS, and a token goes there only over TLS: let the address name localhost, or put TLS before it"
    )


def _tls_refusal(address: SplitResult, *, is_trusted: bool) -> Exception | None:
    """What a TLS handshake fails of; its certificate is looked at if it is to be trusted."""
    context = ssl.create_default_context(cafile=os.environ.get(_AUTHORITIES) if is_trusted else None)
    context.set_alpn_protocols(["h2"])
    if not is_trusted:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host = address.hostname or ""
    try:
        with (
            socket.create_connection((host, _port(address)), timeout=_HANDSHAKE_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return None
    except OSError as error:
        return error


def set_patience(session: SparkSession, retries: int = _RETRIES) -> None:
    """Let calls of a Connect session fail soon after its server is gone; with no retries, at once."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415  # local sessions need it not

    policy = DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_PAUSE_MS, max_server_retry_delay=_LONGEST_PAUSE_MS)
    session.client.set_retry_policies([policy])
    # What is told is keptlog's error.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")


def why_refused(error: BaseException, master: str | None) -> str | None:
    """What to do where a Connect server wants another token; null if it is something else."""
    from keptlog.spark.failures import grpc_status  # noqa: PLC0415  # Arrow comes with it

    code, _ = grpc_status(error) or ("", "")
    if not master or code not in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return None
    wants = f"the Spark Connect server at {place_of(master)} wants another token"
    if ";token=" in master or "/token=" in master:  # then the variable is not looked at
        return (
            f"{wants} than its address has: let KEPTLOG_SPARK_MASTER be what the server printed when it was started, "
            "or give the address its token"
        )
    return f"{wants}: let SPARK_CONNECT_AUTHENTICATE_TOKEN be the one that it was started with"


def place_of(master: str) -> str:
    """Host and port of a Connect server, without what else its address says."""
    address = urlsplit(master)
    return f"{address.hostname}:{_port(address)}"


def _port(address: SplitResult) -> int:
    return address.port or CONNECT_PORT
