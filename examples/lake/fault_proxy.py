"""What stands between keptlog and a server of its lake, in this process: it counts, delays, refuses and loses answers.

    HttpProxy    before an S3, a REST catalog or a Glue: request by request
    TcpProxy     before Postgres: the bytes of a connection

    proxy.fault = lambda request: Fault.LOST_ANSWER if request.method == "POST" else None

What is to happen may be changed at any time, by any thread. Nothing is ever answered from memory: a lost answer was
carried out.
"""

from __future__ import annotations

import contextlib
import enum
import http.client
import json
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 60
_NO_LINGER = struct.pack("ii", 1, 0)
"""Closing a connection so is a reset."""
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "content-length"}

_REFUSALS = {
    400: ("InvalidRequest", "BadRequestException", "InvalidInputException"),
    401: ("ExpiredToken", "NotAuthorizedException", "ExpiredTokenException"),
    403: ("AccessDenied", "ForbiddenException", "AccessDeniedException"),
    409: ("OperationAborted", "CommitFailedException", "ConcurrentModificationException"),
    500: ("InternalError", "InternalServerError", "InternalServiceException"),
    503: ("SlowDown", "ServiceUnavailableException", "ThrottlingException"),
}
"""Status to the words of S3, of Iceberg's REST catalog, and of Glue, which says all but its own faults with a 400."""


class Fault(enum.Enum):
    """What happens to one request."""

    RESET = "the connection is reset, and the request never arrives"
    LOST_ANSWER = "the request is carried out, and the connection is reset"
    CUT = "half of the answer comes, then the connection is reset"
    BAD_REQUEST = 400
    UNAUTHORIZED = 401
    FORBIDDEN = 403
    CONFLICT = 409
    SERVER_ERROR = 500
    SLOW_DOWN = 503


@dataclass(frozen=True)
class Request:
    """One request, in the order in which they came."""

    method: str
    path: str
    """With its query."""
    operation: str = ""
    """Of a Glue, where every request goes to the same path: ``UpdateTable`` …"""


Decide = Callable[[Request], Fault | None]


@dataclass
class HttpProxy:
    """A proxy before a server that speaks HTTP. ``url`` is where it listens."""

    upstream: str
    url: str = ""
    delay_ms: float = 0
    """Before each request is carried out."""
    fault: Decide | None = None
    requests: list[Request] = field(default_factory=list)
    """All that came since the start, or since ``requests.clear()``."""
    most_at_once: int = 0
    injected: Counter[Fault] = field(default_factory=Counter)
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def counts(self) -> Counter[str]:
        """How many requests of each method."""
        return Counter(request.method for request in list(self.requests))

    @contextmanager
    def one(self, request: Request) -> Iterator[Fault | None]:
        """Count a request, delay it, and say what is to happen to it."""
        with self._lock:
            self.requests.append(request)
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            if self.delay_ms:
                time.sleep(self.delay_ms / 1000)
            decide = self.fault
            fault = decide(request) if decide else None
            if fault:
                with self._lock:
                    self.injected[fault] += 1
            yield fault
        finally:
            with self._lock:
                self._under_way -= 1


@contextmanager
def http_proxy(upstream: str) -> Iterator[HttpProxy]:
    """Stand before a server; ``upstream`` is its URL. When the block ends, nobody listens any more."""
    proxy = HttpProxy(upstream)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with _QuietServer(("127.0.0.1", 0), handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
            server.reset_all()


class _QuietServer(ThreadingHTTPServer):
    """Clients that go away are no news here."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def handle_error(self, *_: Any) -> None:
        pass

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def reset_all(self) -> None:
        for connection in list(self.connections):
            _reset(connection)


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client, with one of ours to the server behind."""

    proxy: HttpProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _behind: http.client.HTTPConnection | None = None

    def log_message(self, *_: Any) -> None:
        pass

    def finish(self) -> None:
        if self._behind:
            self._behind.close()
        with contextlib.suppress(OSError):
            super().finish()

    def _carry(self) -> None:
        body = self._body()
        with self.proxy.one(Request(self.command, self.path, self._operation())) as fault:
            if fault is Fault.RESET:
                self._reset()
            elif fault and isinstance(fault.value, int):
                status = 400 if self._operation() and fault.value != 500 else fault.value
                self._answer(status, [("Content-Type", self._type())], self._refusal(fault.value))
            else:
                self._pass_on(body, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_OPTIONS = _carry  # noqa: N815

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        try:
            status, headers, content = self._ask(body)
        except (OSError, http.client.HTTPException):
            # Nobody is there, or the server went away: the client sees just that.
            self._reset()
            return
        if fault is Fault.LOST_ANSWER:
            self._reset()
        elif fault is Fault.CUT and len(content) > 1:
            self._answer(status, headers, content, shown=len(content) // 2)
            self._reset()
        elif fault is Fault.CUT:
            self._reset()
        else:
            self._answer(status, headers, content)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        if body or self.command in {"PUT", "POST"}:
            headers["Content-Length"] = str(len(body))
        if self._behind and _has_news(self._behind.sock):
            # The server has closed what was idle for long; a client of its own would have seen that, and asked anew.
            self._behind.close()
            self._behind = None
        if self._behind is None:
            place = urlsplit(self.proxy.upstream)
            self._behind = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT_SECONDS)
            self._behind.connect()
            self._behind.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            self._behind.putheader(name, value)
        self._behind.endheaders(body or None)
        answer = self._behind.getresponse()
        content = answer.read()
        if answer.will_close:
            self._behind.close()
            self._behind = None
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP]
        length = answer.headers.get("Content-Length")
        if self.command == "HEAD" and length is not None:
            kept.append(("Content-Length", length))
        return answer.status, kept, content

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, shown: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status not in {204, 304}:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:shown])
            self.wfile.flush()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def _reset(self) -> None:
        self.close_connection = True
        _reset(self.connection)

    def _is_rest(self) -> bool:
        return self.path.startswith("/v1/")

    def _operation(self) -> str:
        return self.headers.get("X-Amz-Target", "").rpartition(".")[2]

    def _type(self) -> str:
        return "application/json" if self._is_rest() or self._operation() else "application/xml"

    def _refusal(self, status: int) -> bytes:
        """In the words of Iceberg's REST catalog, of Glue, or of S3."""
        code, kind, of_glue = _REFUSALS[status]
        if self._operation():
            return json.dumps({"__type": of_glue, "Message": "told by the proxy"}).encode()
        if self._is_rest():
            return json.dumps({"error": {"message": "told by the proxy", "type": kind, "code": status}}).encode()
        return f"<Error><Code>{code}</Code><Message>told by the proxy</Message></Error>".encode()


@dataclass
class TcpProxy:
    """A proxy before any server, Postgres for one. ``port`` is where it listens, at 127.0.0.1."""

    upstream_port: int
    port: int = 0
    delay_ms: float = 0
    """Before what a client has sent goes on."""
    refuses: bool = False
    """New connections are closed at once, as if nobody were there."""
    lose_answer_to: Callable[[bytes], bool] | None = None
    """Of what a client sends: it goes on, and the connection is reset before the answer comes back."""
    lost: int = 0
    """How many answers."""
    _connections: set[socket.socket] = field(default_factory=set)

    def cut(self) -> None:
        """Reset all connections."""
        for each in list(self._connections):
            _reset(each)

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=[client], daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        if self.refuses:
            _reset(client)
            return
        try:
            behind = socket.create_connection(("127.0.0.1", self.upstream_port), timeout=_TIMEOUT_SECONDS)
        except OSError:
            _reset(client)
            return
        behind.settimeout(None)
        for each in (client, behind):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.add(each)
        muted = threading.Event()
        threading.Thread(target=self._answers, args=[behind, client, muted], daemon=True).start()
        try:
            while sent := client.recv(65536):
                if self.delay_ms:
                    time.sleep(self.delay_ms / 1000)
                lose = self.lose_answer_to
                if lose and lose(sent):
                    self.lost += 1
                    muted.set()
                behind.sendall(sent)
        except OSError:
            pass
        self._end(client, behind)

    def _answers(self, behind: socket.socket, client: socket.socket, muted: threading.Event) -> None:
        try:
            while told := behind.recv(65536):
                if muted.is_set():
                    break  # It was carried out: the server has answered.
                client.sendall(told)
        except OSError:
            pass
        self._end(client, behind)

    def _end(self, *connections: socket.socket) -> None:
        for each in connections:
            self._connections.discard(each)
            _reset(each)


@contextmanager
def tcp_proxy(upstream_port: int) -> Iterator[TcpProxy]:
    """Stand before a server of this machine. When the block ends, nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        proxy = TcpProxy(upstream_port, listener.getsockname()[1])
        thread = threading.Thread(target=proxy.serve, args=[listener], daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            proxy.cut()


def _has_news(connection: socket.socket) -> bool:
    """Whether something has come that nobody asked for, the end for one."""
    waiting = select.poll()  # select takes no file above 1,023
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))


def _reset(connection: socket.socket) -> None:
    """End a connection at once, for whoever waits at it too."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        # A file object may hold the socket open: this is what ends it for the other side.
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
