"""A portal or a proxy in the place of a store: it answers each request with the same page, mostly with status 200."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.lake.s3_server import KEYS
from keptlog.table.io.files import TableFiles

SIGN_IN = b"<html><body>Sign in</body></html>"


@contextmanager
def portal(page: bytes = SIGN_IN, status: int = 200) -> Iterator[TableFiles]:
    """Files in a store in whose place the portal answers."""

    class Portal(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    def answer(self: Portal) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Portal, f"do_{method}", answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield TableFiles(tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items())))
        finally:
            server.shutdown()
