"""One deadline for all that a server is asked for one message.

A time limit of a socket is for one read. A server that answers a byte at a time keeps each of them, and would never be
given up, while whoever tells people holds the home's lock. A name server has no such limit at all. So a thread asks,
and is waited for until the deadline. Then its connection is ended, so that it does not go on by itself; one that comes
only then, because a name server was slow, is ended before anything is said.

A message that was given up may have arrived. It is sent again, under the same id.
"""

from __future__ import annotations

import contextlib
import http.client
import smtplib
import socket
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Clients:
    """Those that are at work for one message."""

    at_work: list[_Named] = field(default_factory=list)
    are_ended: bool = False

    def end(self) -> None:
        """End their connections under them. One that shakes hands has a deadline of its own for the whole of that."""
        self.are_ended = True  # first, so that what connects meanwhile is ended here or by itself
        for each in self.at_work:
            with contextlib.suppress(OSError):  # closed just now
                if each.sock is not None:
                    # TLS's own would take away what its reader has in hand.
                    socket.socket.shutdown(each.sock, socket.SHUT_RDWR)


def in_time(seconds: float, ask: Callable[[Clients], Answer]) -> Answer:
    """What is answered to ``ask``, which makes its clients with what it is given.

    Raises:
        TimeoutError: the deadline has passed.
    """
    clients = Clients()
    asked: Future[Answer] = Future()

    def run() -> None:
        try:
            asked.set_result(ask(clients))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            asked.set_exception(error)

    Thread(target=run, name="keptlog-notify", daemon=True).start()
    try:
        return asked.result(seconds)
    finally:
        clients.end()


class _Named:
    """A client that is known from before it connects, and says nothing if it was given up by then."""

    _clients: Clients
    _sock: socket.socket | None = None

    def __init__(self, clients: Clients, *given: Any, **named: Any) -> None:
        self._clients = clients
        clients.at_work.append(self)
        super().__init__(*given, **named)

    @property
    def sock(self) -> socket.socket | None:
        """Its connection, which its base class sets."""
        return self._sock

    @sock.setter
    def sock(self, connected: socket.socket | None) -> None:
        self._sock = connected
        if connected is not None and self._clients.are_ended:
            connected.close()
            raise TimeoutError


class MailClient(_Named, smtplib.SMTP):
    """Speaks SMTP, in plain text or with STARTTLS."""


class MailClientOverTls(_Named, smtplib.SMTP_SSL):
    """Speaks SMTP over TLS."""


class _HttpClient(_Named, http.client.HTTPConnection):
    pass


class _HttpsClient(_Named, http.client.HTTPSConnection):
    pass


class OpensHttp(urllib.request.HTTPHandler):
    """Opens addresses of http with clients that are known."""

    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self._client = partial(_HttpClient, clients)

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Answers a request."""
        return self.do_open(self._client, request)


class OpensHttps(urllib.request.HTTPSHandler):
    """The same for https."""

    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self._client = partial(_HttpsClient, clients)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Answers a request."""
        return self.do_open(self._client, request)
