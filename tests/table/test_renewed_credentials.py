"""Credentials that somebody has renewed in the shared file are taken up by a process that has used the old ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.files import TableFiles

pytest.importorskip("boto3")
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
GLUE_EXPIRED = b'{"__type": "ExpiredTokenException", "Message": "The security token included has expired"}'


class _Store(BaseHTTPRequestHandler):
    """It takes files, and names of tables, of whoever has a token that has not expired."""

    protocol_version = "HTTP/1.1"
    tokens: list[str]
    expired: set[str]

    def do_PUT(self) -> None:
        self._answer(EXPIRED, b"")

    def do_HEAD(self) -> None:
        self._answer(b"", b"")

    def do_POST(self) -> None:
        self._answer(GLUE_EXPIRED, b'{"TableList": []}')

    def _answer(self, expired: bytes, content: bytes) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.headers.get("X-Amz-Security-Token", "none")
        self.tokens.append(token)
        is_expired = token in self.expired
        content = expired if is_expired else content
        self.send_response(400 if is_expired else 200)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[str]:
    _Store.tokens, _Store.expired = [], set()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Store) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared credentials file; nothing else is configured."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    login(file, "a")
    return file


def login(file: Path, token: str) -> None:
    keys = f"aws_access_key_id = id\naws_secret_access_key = secret\naws_session_token = {token}"
    file.write_text(f"[default]\n{keys}\n[other]\n{keys}-of-other\n")


def files_at(endpoint: str, **more: str) -> TableFiles:
    return TableFiles(tuple(sorted({"s3.endpoint": endpoint, "s3.region": "eu-central-1", **more}.items())))


def test_a_file_is_written_with_the_new_ones(endpoint: str, file: Path) -> None:
    files = files_at(endpoint)
    files.write_bytes("s3://lake/x", b"1")
    _Store.expired.add("a")
    login(file, "b")
    files.write_bytes("s3://lake/x", b"2")
    files.write_bytes("s3://lake/x", b"3")
    assert _Store.tokens == ["a", "a", "b", "b"]


def test_a_request_whose_answer_has_no_body_is_sent_again_with_the_new_ones(endpoint: str, file: Path) -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415  # boto3 may be missing

    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415

    client = s3_client(files_at(endpoint).properties)
    client.head_object(Bucket="lake", Key="x")
    _Store.expired.add("a")
    with pytest.raises(ClientError, match="400"):
        client.head_object(Bucket="lake", Key="x")
    assert set(_Store.tokens) == {"a"}
    login(file, "b")
    client.head_object(Bucket="lake", Key="x")
    assert _Store.tokens[-1] == "b"


@pytest.mark.parametrize("written", ["the old ones", "half of them", "nothing"])
def test_where_there_are_no_new_ones_it_is_refused_at_once(endpoint: str, file: Path, written: str) -> None:
    files = files_at(endpoint)
    files.write_bytes("s3://lake/x", b"1")
    _Store.expired.add("a")
    if written == "half of them":
        file.write_text("[default]\naws_access_key_id = id\n")
    if written == "nothing":
        file.unlink()
    with pytest.raises(StoreRefused, match="the credentials have expired"):
        files.write_bytes("s3://lake/x", b"2")
    assert _Store.tokens == ["a", "a"]


def test_credentials_that_the_catalog_gives_are_never_changed_for_those_of_the_file(endpoint: str, file: Path) -> None:
    given = {"s3.access-key-id": "id", "s3.secret-access-key": "secret", "s3.session-token": "given"}
    _Store.expired.add("given")
    with pytest.raises(StoreRefused, match="the credentials have expired"):
        files_at(endpoint, **given).write_bytes("s3://lake/x", b"1")
    assert _Store.tokens == ["given"]


@pytest.mark.parametrize(("profile", "suffix"), [({}, ""), ({"glue.profile-name": "other"}, "-of-other")])
def test_glue_is_asked_with_the_new_ones_of_its_profile(
    endpoint: str, file: Path, profile: dict[str, str], suffix: str
) -> None:
    from keptlog.table.catalogs.glue import PatientGlueCatalog  # noqa: PLC0415  # boto3 may be missing

    catalog = PatientGlueCatalog("x", **{"glue.endpoint": endpoint, "glue.region": "eu-central-1", **profile})
    assert catalog.location_page("keptlog", None) == ({}, None)
    _Store.expired.add(f"a{suffix}")
    login(file, "b")
    assert catalog.location_page("keptlog", None) == ({}, None)
    assert _Store.tokens == [f"a{suffix}", f"a{suffix}", f"b{suffix}"]
