"""A bucket that locks each file when it is written takes what keptlog writes: it refuses what has no checksum."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.table.io.files import TableFiles

pytest.importorskip("boto3")
FILE = "s3://lake/keptlog/users/metadata/a b=c.json"
REFUSED = (
    b"<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required for "
    b"Put Object requests with Object Lock parameters</Message></Error>"
)


class _Locking(BaseHTTPRequestHandler):
    """A store whose bucket has a default retention, as Amazon's answers then; it keeps nothing."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        is_taken = self.headers.get("Content-MD5") == md5
        self.send_response(200 if is_taken else 400)
        self.send_header("ETag", '"an-object"')
        self.send_header("Content-Length", "0" if is_taken else str(len(REFUSED)))
        self.end_headers()
        self.wfile.write(b"" if is_taken else REFUSED)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def locking() -> Iterator[TableFiles]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Locking) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield TableFiles(tuple(sorted({"s3.endpoint": f"http://127.0.0.1:{server.server_port}", **KEYS}.items())))
        server.shutdown()


@pytest.mark.parametrize("content", [b"", b'{"format-version": 2}'])
def test_a_file_that_is_written_whole_has_a_checksum_of_every_stores(locking: TableFiles, content: bytes) -> None:
    locking.write_bytes(FILE, content)
