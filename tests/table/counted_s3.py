"""The S3 API of ``buckets``, with every request counted, and with what a real store does now and then.

A request is counted when it arrives, whatever becomes of it; each attempt of a client that tries again is one more.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest

NO_MOTO = "needs a store on loopback: pip install 'moto[server]'"
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
Answer = tuple[str, str]
"""Status, such as ``503 Slow Down``, and S3's code, such as ``SlowDown``."""
RESET: Answer = ("", "")
"""No answer at all: the connection is cut."""
BROKEN_OFF: Answer = ("200 OK", "")
"""It is carried out, and the connection is cut in the middle of the answer."""


@dataclass(frozen=True)
class Request:
    """One request, as S3 knows it."""

    number: int
    """Counted from 1."""
    method: str
    path: str
    query: str

    @property
    def kind(self) -> str:
        """The method, and what else makes a request of S3's one of a kind, such as ``POST uploads``."""
        marks = sorted({"uploads", "uploadId", "list-type", "delete", "versioning"} & set(parse_qs(self.query, True)))
        return " ".join([self.method, *marks])


@dataclass
class CountedS3:
    """Where it listens, what it was asked, and what it is told to do."""

    endpoint: str = ""
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    """How many were under way together."""
    delay_seconds: float = 0.0
    refuse: Callable[[Request], Answer | None] = lambda _: None
    """What a request is answered instead of being carried out; null for those that are."""
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        self.requests.clear()
        self.most_at_once = 0

    def kinds(self) -> Counter[str]:
        return Counter(request.kind for request in self.requests)

    def wrapped(self, application: Application) -> Application:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            with self._lock:
                number = len(self.requests) + 1
                request = Request(number, environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
                self.requests.append(request)
                self._under_way += 1
                self.most_at_once = max(self.most_at_once, self._under_way)
            time.sleep(self.delay_seconds)
            with self._lock:
                self._under_way -= 1
            refusal = self.refuse(request)
            if refusal is None:
                return application(environ, start_response)
            if refusal != BROKEN_OFF:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            if refusal == RESET:
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                raise ConnectionResetError
            if refusal == BROKEN_OFF:
                return _half_of(application, environ, start_response)
            status, code = refusal
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}, as told</Message></Error>".encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [] if request.method == "HEAD" else [body]

        return answer


def _half_of(application: Application, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
    body = b"".join(application(environ, start_response))
    yield body[: len(body) // 2]
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


@contextmanager
def counted_s3() -> Iterator[CountedS3]:
    """A server of its own on loopback."""
    moto = pytest.importorskip("moto.server", reason=NO_MOTO)
    from moto.moto_server.werkzeug_app import create_backend_app  # noqa: PLC0415  # moto may be missing
    from werkzeug.serving import make_server  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    counted = CountedS3()
    application = counted.wrapped(moto.DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    counted.endpoint = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield counted
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
