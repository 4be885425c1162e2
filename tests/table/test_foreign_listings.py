"""What a portal or a proxy answers in place of a store's list is no folder without files: nothing is gone for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.table.files import TableFiles
from keptlog.table.object_versions import bucket_of
from tests.table.buckets import ABucket, new_bucket

pytest.importorskip("boto3")
PAGES = {"page": b"<html><body>Sign in</body></html>", "nothing": b"", "other list": b"<ListAllMyBucketsResult/>"}
FOLDER = "s3://lake/keptlog/users"
LISTS: dict[str, Callable[[TableFiles], Any]] = {
    "files": lambda files: list(files.list(FOLDER)),
    "versions": lambda files: bucket_of(files.properties, FOLDER).of(FOLDER),
    "uploads": lambda files: bucket_of(files.properties, FOLDER).uploads_below(FOLDER),
}


@pytest.fixture
def answered() -> Iterator[Callable[[bytes], TableFiles]]:
    """Files in a store in whose place somebody answers each request with the same."""

    class Portal(BaseHTTPRequestHandler):
        page = b""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.page)))
            self.end_headers()
            self.wfile.write(self.page)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    def with_page(page: bytes) -> TableFiles:
        Portal.page = page
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        return TableFiles(tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items())))

    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield with_page
        server.shutdown()


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("look", LISTS.values(), ids=LISTS)
def test_what_is_no_list_is_an_outage(
    answered: Callable[[bytes], TableFiles], page: bytes, look: Callable[[TableFiles], Any]
) -> None:
    with pytest.raises(OSError, match="answered with 200, and with no list of S3's: see to the endpoint"):
        look(answered(page))


@pytest.mark.parametrize("versioning", ["Enabled", None])
def test_a_list_without_a_file_is_one(s3_endpoint: str, versioning: str | None) -> None:
    bucket: ABucket = new_bucket(s3_endpoint, versioning)
    folder = f"s3://{bucket.name}/lake"
    assert list(bucket.files.list(folder)) == []
    assert bucket.versions() == []
