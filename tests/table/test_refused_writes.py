"""A small file that a store does not take costs nothing that lies under its name: it may be stored a second time."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.errors import StorageUnavailable
from keptlog.table.io.files import TableFiles
from keptlog.table.reading.readers import PositionFiles, ReaderPosition, Registration

pytest.importorskip("boto3")
TOPIC = "s3://lake/keptlog/users"
FULL = b"<Error><Code>QuotaExceeded</Code><Message>no room</Message></Error>"


class _Full(BaseHTTPRequestHandler):
    """A store without room: it takes nothing, and deletes what it is told to."""

    protocol_version = "HTTP/1.1"
    told: list[str]

    def do_PUT(self) -> None:
        self._answer(403, FULL)

    def do_POST(self) -> None:
        self.told.append(self.path)
        self._answer(200, b"<DeleteResult/>")

    def do_DELETE(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self._answer(200, b"<VersioningConfiguration/>")

    def _answer(self, status: int, content: bytes) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def full() -> Iterator[tuple[TableFiles, list[str]]]:
    """Files of such a store, and what it was told to delete."""
    told = _Full.told = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Full) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield TableFiles(tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items()))), told
        server.shutdown()


def test_a_position_file_that_can_never_be_deleted_keeps_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if path.endswith("/0-1.json"):
            raise PermissionError(errno.EACCES, "held by law", path)
        really(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)
    positions = PositionFiles(TableFiles(()), f"file://{tmp_path}")
    for offset in range(1, 6):
        positions.write("search", Registration("an-id", 1, 0), 0, ReaderPosition(offset, 0))
    assert {path.name for path in tmp_path.rglob("*.json")} == {"0-1.json", "0-5.json"}


def test_a_position_that_is_stored_again_stays_where_the_store_is_full(full: tuple[TableFiles, list[str]]) -> None:
    files, told = full
    with pytest.raises(StorageUnavailable, match="the store is full"):
        PositionFiles(files, TOPIC).write("search", Registration("an-id", 1, 0), 0, ReaderPosition(5, 0))
    assert told == []
