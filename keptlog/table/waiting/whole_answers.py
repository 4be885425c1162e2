"""Answers over HTTP that come a byte at a time are given up: the whole answer has a time limit, not only each read.

A socket's limit is one for each read. A server that sends a byte now and then, as one does that is starved or meant to
hang its callers, keeps it for ever. Here the same limit is that of all waiting for an answer, head and body:

    limit   the socket's own, and a second more for each ``BYTES_A_SECOND`` that came

So a large answer over a slow line is not cut off, and whoever takes their time between two reads loses none. Neither a
thread nor another clock runs beside a request, which would be felt where thousands are asked. It ends as a read that
took too long, which is what those who ask know.
"""

from __future__ import annotations

import io
import socket
from http.client import HTTPResponse
from time import monotonic as _now_s  # noqa: TID251  # how long somebody waits, which no log depends on
from typing import Any, cast

from typing_extensions import override
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

BYTES_A_SECOND = 4096
"""A line that is slower, also where a few requests share it, brings nothing to an end."""


class _InTime(io.RawIOBase):
    """What a socket receives; each read waits no longer than what is left of the time for all of them."""

    def __init__(self, raw: io.RawIOBase, received_by: socket.socket, seconds: float) -> None:
        super().__init__()
        self._raw = raw
        self._socket = received_by
        self._seconds = seconds
        self._left_s = seconds

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int | None:
        if self._left_s <= 0:
            raise TimeoutError(f"the answer did not come to its end within {self._seconds:g} s")
        is_shorter = self._left_s < self._seconds
        if is_shorter:
            self._socket.settimeout(self._left_s)
        began_s = _now_s()
        try:
            count = cast("int | None", self._raw.readinto(buffer))
        finally:
            if is_shorter:  # a handshake may come next, behind a proxy's answer
                self._socket.settimeout(self._seconds)
        self._left_s += (count or 0) / BYTES_A_SECOND - (_now_s() - began_s)
        return count

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


POOLS = {"http": _Pool, "https": _SecurePool}
"""For ``pool_classes_by_scheme`` of a ``PoolManager``: what its connections bring has a limit."""
