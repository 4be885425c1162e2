"""Answers over HTTP that come a byte at a time are given up: the whole answer has a time limit, not only each read.

A socket's limit is one for each read. A server that sends a byte now and then, as one does that is starved or meant to
hang its callers, keeps it for ever. Here the same limit is that of the answer, from its first byte to its last:

    limit   the socket's own, and a second more for each ``BYTES_A_SECOND`` that came

So a large answer over a slow line is not cut off, and neither a thread nor another clock runs beside a request, which
would be felt where thousands are asked. It ends as a read that took too long, which is what those who ask know.
"""

from __future__ import annotations

import io
import socket
from http.client import HTTPResponse
from time import monotonic as _now_s  # noqa: TID251  # how long somebody waits, which no log depends on
from typing import Any, cast

from typing_extensions import override
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

BYTES_A_SECOND = 8192
"""Whoever sends less over long is not slow: it does not answer."""


class _InTime(io.RawIOBase):
    """What a socket receives; each read waits no longer than what is left of the time for all of them."""

    def __init__(self, raw: io.RawIOBase, received_by: socket.socket, seconds: float) -> None:
        super().__init__()
        self._raw = raw
        self._socket = received_by
        self._seconds = seconds
        self._until_s = _now_s() + seconds

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until_s - _now_s()
        if left_s <= 0:
            raise TimeoutError(f"the answer did not come to its end within {self._seconds:g} s")
        self._socket.settimeout(min(left_s, self._seconds))
        count = self._raw.readinto(buffer)
        self._until_s += (count or 0) / BYTES_A_SECOND
        return cast("int | None", count)

    @override
    def close(self) -> None:
        self._raw.close()
        super().close()


class WholeAnswer(HTTPResponse):
    """An answer that has as long for all of it as its socket has for each read."""

    def __init__(self, sock: socket.socket, *args: Any, **how: Any) -> None:
        super().__init__(sock, *args, **how)
        seconds = sock.gettimeout()
        if seconds:
            self.fp = io.BufferedReader(_InTime(self.fp.detach(), sock, seconds))


class _Connection(HTTPConnection):
    response_class = WholeAnswer


class _SecureConnection(HTTPSConnection):
    response_class = WholeAnswer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def limit_answers(manager: PoolManager) -> None:
    """Give the whole of each answer a limit; of connections that are still to be made."""
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
