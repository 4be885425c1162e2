"""Lets boto3 give up what answers a byte at a time, as it does what is silent: ``whole_answers`` tells how.

boto3 makes connections of its own, which know "100 Continue". So they get the same kind of answer here.

And takes out of a refusal the secrets that were sent (``quoted``), before boto3 reads it: its errors have what that
says, and all of it where it can't be read.
"""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Any

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)

from keptlog.table.waiting.quoted import secrets_in, without
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


def hide_what_was_sent(events: Any, service: str) -> None:
    """Let no error of a client of boto3 tell what was secret of the request that was refused.

    ``events`` are its, or those of a session, of which each client gets a copy that botocore makes by itself then.
    """
    sent = threading.local()  # what is read is not told of which request; it is of the last one of its thread

    def remember(request: Any, **_: object) -> None:
        sent.headers = request.headers

    def hide(response_dict: dict[str, Any], **_: object) -> None:
        if response_dict["status_code"] >= HTTPStatus.MULTIPLE_CHOICES:  # then the body is no stream
            response_dict["body"] = without(secrets_in(sent.headers), response_dict["body"])

    events.register(f"before-send.{service}", remember)
    events.register(f"before-parse.{service}", hide)
