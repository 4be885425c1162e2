"""Lets boto3 give up what answers a byte at a time, as it does what is silent: ``whole_answers`` tells how.

boto3 makes connections of its own, which know "100 Continue". So they get the same kind of answer here.
"""

from __future__ import annotations

from typing import Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)

from keptlog.table.waiting.whole_answers import WholeAnswer


class _Connection(AWSHTTPConnection):  # type: ignore[misc]  # botocore has no types
    response_class = WholeAnswer


class _SecureConnection(AWSHTTPSConnection):  # type: ignore[misc]
    response_class = WholeAnswer


class _Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = _Connection


class _SecurePool(AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = _SecureConnection


def give_up_trickles(client: Any) -> None:
    """Let a client of boto3 raise ``ReadTimeoutError`` where the whole of an answer takes too long."""
    http = client._endpoint.http_session  # noqa: SLF001  # botocore has no public name for how it connects
    pools = {"http": _Pool, "https": _SecurePool}
    http._pool_classes_by_scheme = pools  # noqa: SLF001  # of connections through a proxy
    http._manager.pool_classes_by_scheme = pools  # noqa: SLF001
