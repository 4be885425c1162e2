"""No error tells a secret, neither in its one line nor anywhere in its chain, which Dagster stores and shows."""

from __future__ import annotations

import http.server
import json
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest

from keptlog.errors import KeptlogError
from keptlog.home import open_home
from tests.security.searching import found_in

PASSWORDS = [
    "planted-plain-password",
    "planted@its-tail",
    "planted@its-tail:its-end",
    "planted/its-tail@its-end",
    "planted@its-tail?its-end",
    *(f"planted{sign}its-tail" for sign in "/:?#[%& "),
]
NOBODY = 1
"""A port at which nobody answers."""
CATALOG = "PYICEBERG_CATALOG__KEPTLOG__"


def said_by(home: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """The error of whoever lists topics there: its message, and all of its chain."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(CATALOG + name, value)
        with pytest.raises(KeptlogError) as raised:
            open_home(home).topics()
    return str(raised.value), "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("how", ["as it is", "quoted"])
def test_a_database_that_is_out_of_reach_tells_no_password(tmp_path: Path, password: str, how: str) -> None:
    shown = password if how == "as it is" else quote(password, safe="")
    uri = f"postgresql+psycopg2://someone:{shown}@127.0.0.1:{NOBODY}/lake"

    message, chain = said_by(tmp_path, {"TYPE": "sql", "URI": uri, "WAREHOUSE": f"file://{tmp_path}"})

    assert found_in(message + chain, {"the password": password}) == []
    assert "\n" not in message


def test_who_has_not_quoted_a_password_is_told_how(tmp_path: Path) -> None:
    uri = "postgresql+psycopg2://someone:planted@its-tail@127.0.0.1:1/lake"

    message, _ = said_by(tmp_path, {"TYPE": "sql", "URI": uri, "WAREHOUSE": f"file://{tmp_path}"})

    assert "%40" in message


class _Refusing(http.server.BaseHTTPRequestHandler):
    status = 401
    is_echoing = False

    def do_GET(self) -> None:  # its base class has named it
        sent = f"{self.headers.get('Authorization')} {self._form()}" if self.is_echoing else "no"
        error = {"message": f"not allowed: {sent}", "type": "NotAuthorizedException", "code": self.status}
        body = json.dumps({"error": error}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

    def _form(self) -> dict[str, list[str]]:
        return parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def refusing_server(status: int = 401, *, is_echoing: bool = False) -> Iterator[str]:
    """One that refuses all, and, as some gateways do, tells what it was sent."""
    handler = type("_Handler", (_Refusing,), {"status": status, "is_echoing": is_echoing})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["TOKEN", "CREDENTIAL"])
def test_a_rest_catalog_that_refuses_tells_no_token(tmp_path: Path, name: str) -> None:
    secret = "planted-client:planted-rest-secret"  # noqa: S105
    with refusing_server() as uri:
        message, chain = said_by(tmp_path, {"TYPE": "rest", "URI": uri, name: secret})

    assert found_in(message + chain, {"the token": "planted-rest-secret"}) == []


def test_a_bucket_that_is_out_of_reach_tells_no_key(tmp_path: Path) -> None:
    secret = "planted-s3-secret-key"  # noqa: S105
    environment = {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path / 'catalog.db'}",
        "WAREHOUSE": "s3://bucket/warehouse",
        "S3__ENDPOINT": f"http://127.0.0.1:{NOBODY}",
        "S3__ACCESS_KEY_ID": "someone",
        "S3__SECRET_ACCESS_KEY": secret,
        "S3__REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(CATALOG + name, value)
        home = open_home(tmp_path / "home")
        with pytest.raises(KeptlogError) as raised:
            home.create_topic("users", 1, {"cleanup.policy": "compact"})

    assert found_in("".join(traceback.format_exception(raised.value)), {"the key": secret}) == []
    assert found_in(repr(home) + repr(home.store.files), {"the key": secret}) == []
