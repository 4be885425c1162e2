"""Where nobody knows whether there are versions, that is told: it is neither fine nor broken, and deletes go on."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.table.io.files import TableFiles


@pytest.mark.parametrize("folder", ["gs://bucket/topic", "abfs://box@account/topic", "hdfs://name/topic"])
def test_versions_of_another_store_are_not_looked_at_and_that_is_told(folder: str) -> None:
    below = TableFiles().versions_below(folder)
    assert below.versions == ()
    scheme = folder.partition(":")[0]
    assert below.not_looked_at == f"versions and open uploads of this store ({scheme}) are not looked at"


class _Refusing(BaseHTTPRequestHandler):
    """A store that does not tell this user whether it keeps versions, and takes everything else."""

    asked: list[str]

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        is_refused = "versioning" in self.path
        text = b"<Error><Code>AccessDenied</Code><Message>not for you</Message></Error>" if is_refused else b""
        self.send_response(403 if is_refused else 204 if self.command == "DELETE" else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_HEAD = do_PUT = do_DELETE = _answer  # noqa: N815  # so are they called

    def log_message(self, *_: Any) -> None:
        return


def test_a_bucket_that_does_not_say_whether_it_keeps_versions_is_not_looked_at() -> None:
    _Refusing.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        files = TableFiles(tuple({"s3.endpoint": endpoint, **KEYS}.items()))
        below = files.versions_below("s3://silent/topic")
        assert below.not_looked_at == (
            "bucket silent does not say whether it keeps versions (AccessDenied: not for you), so "
            "its versions and open uploads are not looked at: allow s3:GetBucketVersioning"
        )
        files.delete("s3://silent/topic/x")
    finally:
        server.shutdown()
        server.server_close()
    assert [each for each in _Refusing.asked if each.startswith("DELETE")] == ["DELETE /silent/topic/x"]
    assert len([each for each in _Refusing.asked if "versioning" in each]) == 1
