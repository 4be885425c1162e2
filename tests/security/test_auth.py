"""A REST catalog with PyIceberg's ``auth`` settings, which are nested: no error tells what stands in them."""

from __future__ import annotations

import base64
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.home import open_home
from keptlog.table.catalogs.rest import PatientRestCatalog, _PatientTokens
from keptlog.table.io import remote_files
from keptlog.table.waiting.patience import within
from keptlog.table.waiting.reach import is_sure
from tests.security.searching import found_in
from tests.security.test_errors import refusing_server
from tests.table.rest_server import rest_server

SECRET = "planted-auth-secret"  # noqa: S105  # nobody's
TOKEN = "planted-auth-token"  # noqa: S105  # nobody's
GIVEN_UP_SECONDS = 120.0
SECRETS = {"the secret": SECRET, "the token": TOKEN, "in base64": base64.b64encode(f"me:{SECRET}".encode()).decode()}


class _Tokens(BaseHTTPRequestHandler):
    """Gives everybody a token."""

    body = b'{"access_token": "%s", "token_type": "bearer", "expires_in": 3600}' % TOKEN.encode()

    def do_POST(self) -> None:  # its base class has named it
        body = self.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def token_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tokens) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Telling(BaseHTTPRequestHandler):
    """Refuses, and tells the user and the password that it was sent in readable form, as some gateways do."""

    def do_GET(self) -> None:  # its base class has named it
        sent = base64.b64decode(self.headers.get("Authorization", "").partition(" ")[2]).decode()
        body = b'{"error": {"message": "no %s", "type": "NotAuthorizedException", "code": 401}}' % sent.encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[KeptlogError, str]:
    """The error of whoever lists topics with these settings, and all that its chain tells."""
    file = folder / ".pyiceberg.yaml"
    file.write_text(yaml.safe_dump({"catalog": {"keptlog": {"type": "rest"} | settings}}))
    file.chmod(0o600)
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    with pytest.raises(KeptlogError) as raised:
        open_home(folder / "home").topics()
    assert "\n" not in str(raised.value)
    return raised.value, "".join(traceback.format_exception(raised.value))


def oauth2(token_url: str) -> dict[str, Any]:
    return {"type": "oauth2", "oauth2": {"client_id": "me", "client_secret": SECRET, "token_url": token_url}}


def test_a_token_server_that_refuses_and_quotes_what_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing_server(is_echoing=True) as uri:
        _, told = said(tmp_path, monkeypatch, uri=uri, auth=oauth2(f"{uri}/token"))
    assert found_in(told, SECRETS) == []


def test_a_token_server_that_takes_the_request_and_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.table.catalogs.rest.ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, refusing_server() as uri:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/token"
        found = within(lambda: said(tmp_path, monkeypatch, uri=uri, auth=oauth2(address)), GIVEN_UP_SECONDS)
    assert found, "it waits for ever"
    error, told = found
    assert isinstance(error, StorageUnavailable)
    assert f"no token came from {address} within 0.2 s" in str(error)
    assert found_in(told, SECRETS) == []


def test_a_catalog_that_refuses_the_token_and_quotes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing_server(is_echoing=True) as uri, token_server() as tokens:
        error, told = said(tmp_path, monkeypatch, uri=uri, auth=oauth2(tokens))
    assert "[hidden]" in str(error)
    assert found_in(told, SECRETS) == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "invalid_client", "expires_in": 5}',
        b'["%s"]' % TOKEN.encode(),
        b"7",
        b'{"acc',
        b"[" * 100_000,
        b'{"access_token": null, "expires_in": 5}',
        b'{"access_token": "", "expires_in": 5}',
        b'{"access_token": ["%s"], "expires_in": 5}' % TOKEN.encode(),
        b'{"access_token": "%s\\n", "expires_in": 5}' % TOKEN.encode(),
        b'{"access_token": "%s\\u20ac", "expires_in": 5}' % TOKEN.encode(),
    ],
    ids=["error", "list", "number", "half", "nested", "null", "empty", "a list of one", "two lines", "beyond ASCII"],
)
def test_an_answer_of_a_token_server_without_a_token_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    monkeypatch.setattr(_Tokens, "body", body)
    with refusing_server() as uri, token_server() as tokens:
        error, told = said(tmp_path, monkeypatch, uri=uri, auth=oauth2(tokens))
    assert isinstance(error, StorageUnavailable)
    assert f"what came from {tokens} has no token in it" in str(error)
    assert found_in(told, SECRETS) == []


@pytest.mark.parametrize("body", ['{"token": "%s"}', '{"access_token": "%s"}', '{"access_token": ["%s"]}'])
def test_an_answer_for_a_credential_without_a_token_is_told_as_that_and_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(_Tokens, "body", (body % TOKEN).encode())
    asked: dict[str, Any] = {"credential": f"me:{SECRET}"}
    with refusing_server() as uri, token_server() as tokens:
        error, told = said(tmp_path, monkeypatch, uri=uri, **asked, **{"oauth2-server-uri": tokens})
    assert isinstance(error, StorageUnavailable)
    assert "what came for a token is no answer of an Iceberg catalog" in str(error)
    assert found_in(told, SECRETS) == []


def test_a_token_that_is_asked_for_anew_and_is_none_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked for when the catalog refuses the first one: a new namespace ended in pydantic's error."""
    with rest_server(tmp_path) as served, token_server() as tokens:
        asked = {"uri": served.uri, "credential": f"me:{SECRET}", "oauth2-server-uri": tokens}
        catalog = PatientRestCatalog("keptlog", **asked)
        monkeypatch.setattr(_Tokens, "body", b'{"token": "%s"}' % TOKEN.encode())
        with refusing_server() as refusing:
            catalog.uri = refusing
            for ask in (catalog.list_tables, catalog.create_namespace):
                with pytest.raises(OSError, match="what came for a token is no answer of") as raised:
                    ask("keptlog")
                assert found_in("".join(traceback.format_exception(raised.value)), SECRETS) == []


def test_a_change_whose_token_did_not_come_is_not_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Tokens, "body", b"{}")
    with token_server() as tokens, pytest.raises(OSError, match="has no token in it") as raised:
        _PatientTokens("me", SECRET, tokens).get_token()
    assert is_sure(raised.value)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("50", 50), ('"50"', 50), ("null", 900), ('"soon"', 900), ("{}", 900), ("NaN", 900), ("9" * 400, 900)],
)
def test_a_token_is_valid_for_as_long_as_its_server_says_as_a_number_or_as_text_or_else_as_is_set(
    monkeypatch: pytest.MonkeyPatch, told: str, seconds: int
) -> None:
    """Of NaN seconds no end ever comes, and the token would never be replaced."""
    now_s = 0.0
    monkeypatch.setattr("keptlog.table.catalogs.rest._now_s", lambda: now_s)
    monkeypatch.setattr("pyiceberg.catalog.rest.auth.time.monotonic", lambda: now_s)
    with token_server() as tokens:
        provider = _PatientTokens("me", SECRET, tokens, refresh_margin=0, expires_in=900)
        monkeypatch.setattr(_Tokens, "body", f'{{"access_token": "first", "expires_in": {told}}}'.encode())
        assert provider.get_token() == "first"
        monkeypatch.setattr(_Tokens, "body", b'{"access_token": "second", "expires_in": 1}')
        now_s = seconds - 1
        assert provider.get_token() == "first"
        now_s = seconds
        assert provider.get_token() == "second"


@pytest.mark.parametrize("end", ["\n", "\r\n ", "\u20ac"], ids=["line end", "two", "beyond Latin-1"])
@pytest.mark.parametrize(
    ("setting", "header"),
    [("token", "Authorization"), ("header.X-Api-Key", "x-api-key"), ("header.Authorization", "authorization")],
)
def test_a_secret_with_what_no_header_can_have_is_not_quoted_by_the_client_for_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, header: str, end: str
) -> None:
    """A file that is mounted for a secret mostly ends with a line end."""
    with refusing_server() as uri:
        error, told = said(tmp_path, monkeypatch, uri=uri, **{setting: TOKEN + end})
    assert isinstance(error, InvalidConfig)
    assert str(error).startswith(f"the configured catalog 'keptlog': what is sent as {header} is no text, begins with ")
    assert found_in(told, SECRETS) == []


def test_a_header_that_is_a_list_is_told_and_not_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing_server() as uri:
        error, told = said(tmp_path, monkeypatch, uri=uri, **{"header.X-Api-Key": [TOKEN]})
    assert isinstance(error, InvalidConfig)
    assert "what is sent as x-api-key is no text" in str(error)
    assert found_in(told, SECRETS) == []


OF_AWS = {"client.access-key-id": "me", "client.secret-access-key": SECRET, "client.region": "eu-west-1"}


@pytest.mark.parametrize(
    ("setting", "header"), [("session-token", "X-Amz-Security-Token"), ("access-key-id", "Authorization")]
)
@pytest.mark.parametrize("kind", ["rest", "glue"])
def test_credentials_that_no_header_can_have_are_not_quoted_where_requests_are_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, setting: str, header: str
) -> None:
    """The client for HTTP sees them only when it was signed: a token as it is, and a key's name in the signature."""
    pytest.importorskip("boto3")
    with refusing_server() as uri:
        where = {"type": kind, "uri": uri, "rest.sigv4-enabled": "true", "glue.endpoint": uri}
        settings = OF_AWS | where | {f"client.{setting}": f"{TOKEN}\n"}
        error, told = said(tmp_path, monkeypatch, **settings)
    whose = "credentials of AWS" if kind == "glue" else "the configured catalog 'keptlog'"
    assert isinstance(error, InvalidConfig)
    assert str(error).startswith(f"{whose}: what is sent as {header} is no text, begins with ")
    assert found_in(told, SECRETS) == []


@pytest.mark.parametrize("setting", ["session-token", "access-key-id"])
def test_credentials_that_no_header_can_have_are_not_quoted_by_who_asks_a_store(setting: str) -> None:
    s3_client = pytest.importorskip("keptlog.table.io.s3_client").s3_client
    with refusing_server() as uri:
        told = OF_AWS | {f"client.{setting}": f"{TOKEN}\n", "s3.endpoint": uri}
        client = s3_client(tuple(sorted(told.items())))
        with pytest.raises(InvalidConfig) as raised:
            client.list_buckets()
    assert found_in("".join(traceback.format_exception(raised.value)), SECRETS) == []


def test_a_token_of_which_nobody_says_how_long_it_is_valid_is_told_also_after_the_catalog_was_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Tokens, "body", b'{"access_token": "a"}')
    with token_server() as tokens, pytest.raises(InvalidConfig, match=r"set auth\.oauth2\.expires_in$"):
        _PatientTokens("me", SECRET, tokens).get_token()


def test_a_catalog_that_refuses_a_password_and_quotes_it_in_readable_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Telling) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        basic = {"type": "basic", "basic": {"username": "me", "password": SECRET}}
        error, told = said(tmp_path, monkeypatch, uri=f"http://127.0.0.1:{server.server_port}", auth=basic)
        server.shutdown()
    assert "[hidden]" in str(error)
    assert found_in(told, SECRETS) == []


def test_an_address_of_a_token_server_with_a_password_in_it_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing_server() as uri:
        address = uri.replace("//", f"//me:{SECRET}@")
        error, told = said(tmp_path, monkeypatch, uri=uri, auth=oauth2(address))
    assert isinstance(error, InvalidConfig)
    assert "its auth.oauth2.token_url has a user or a password in it" in str(error)
    assert found_in(told, SECRETS) == []


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "oauth2", SECRET: {}},
        {"type": "oauth2", "oauth2": {"client-secret": SECRET}},
        SECRET,
        {"oauth2": SECRET},
    ],
)
def test_settings_that_pyiceberg_does_not_know_are_one_line_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auth: Any
) -> None:
    error, told = said(tmp_path, monkeypatch, uri="http://127.0.0.1:1", auth=auth)
    assert isinstance(error, InvalidConfig)
    assert found_in(told, SECRETS) == []


def test_settings_that_are_nested_keep_no_other_store_from_being_opened() -> None:
    properties = (("auth", oauth2("https://tokens")), ("gcs.oauth2.token", TOKEN), ("gcs.oauth2.token-expires-at", "1"))
    filesystem, path = remote_files._filesystem_of(properties, "gs://bucket/x")  # to ask it needs a store
    assert (filesystem.type_name, path) == ("gcs", "bucket/x")
