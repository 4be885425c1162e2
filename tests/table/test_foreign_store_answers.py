"""A page with status 200 in place of a store's answer proves nothing: no deletion, no file, and no damage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.storage.object_version import Versioning
from keptlog.table.io.files import TableFiles
from keptlog.table.io.object_versions import bucket_of
from keptlog.table.removal.hidden import hidden_below
from tests.table.buckets import new_bucket

pytest.importorskip("boto3")
FOLDER = "s3://lake/keptlog/users"
FILE = f"{FOLDER}/data/a.parquet"
ASKED: dict[str, Callable[[TableFiles], Any]] = {
    "whether versions are kept": lambda files: bucket_of(files.properties, FOLDER).versioning,
    "deletions": lambda files: bucket_of(files.properties, FOLDER)._delete([(FILE, None)]),
    "an upload's end": lambda files: bucket_of(files.properties, FOLDER).abort(FILE, "an-id"),
    "rules": lambda files: files.why_uploads_stay(FOLDER),
    "a file": lambda files: files.read_bytes(FILE),
    "whether it is there": lambda files: files.exists(FILE),
    "a version": lambda files: bucket_of(files.properties, FOLDER).open(FILE, "an-id"),
    "a file to keep": lambda files: files.write_bytes(FILE, b"content"),
}


@pytest.fixture
def portal() -> Iterator[TableFiles]:
    """Files in a store in whose place somebody answers each request with a page."""
    page = b"<html><body>Sign in</body></html>"

    class Portal(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    def answer(self: Portal) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Portal, f"do_{method}", answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        yield TableFiles(tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items())))
        server.shutdown()


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_what_no_store_says_is_an_outage(portal: TableFiles, ask: Callable[[TableFiles], Any]) -> None:
    with pytest.raises(OSError, match="answered with 200, and with no answer of S3's: see to the endpoint"):
        ask(portal)


def test_versions_that_nobody_told_of_are_not_looked_at(portal: TableFiles) -> None:
    found = hidden_below(portal, FOLDER)
    assert len(found.not_looked_at) == 2  # versions, and open uploads
    assert not found.files


def test_a_bucket_that_never_kept_versions_says_so(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint, None)
    assert bucket_of(bucket.properties, f"s3://{bucket.name}/lake").versioning == (Versioning.NONE, "")


@pytest.mark.parametrize("content", [b"", b"content"])
def test_what_is_written_whole_is_read_back(s3_endpoint: str, content: bytes) -> None:
    bucket = new_bucket(s3_endpoint, None)
    path = f"s3://{bucket.name}/lake/a=b/a file.json"
    bucket.files.write_bytes(path, content)
    assert bucket.files.read_bytes(path) == content
