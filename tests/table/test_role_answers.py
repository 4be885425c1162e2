"""Who is asked for a role, in which a store is to be asked, and answers what AWS does not: it is an outage, no more.

Nothing of it is about the store: no file is gone, and no bucket has said that it does not tell of versions.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.errors import StorageUnavailable
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.files import TableFiles
from keptlog.table.io.object_versions import bucket_of
from tests.security.test_auth import said

pytest.importorskip("boto3")
FILE = "s3://lake/keptlog/users/data/a.parquet"
ROLE = "arn:aws:iam::123456789012:role/reader"
PAGE = b"<html><head><meta charset=x></head>bad gateway</html>"
WELL_FORMED = b"<html><head/><body>Sign in</body></html>"
SIGNED = {"rest.sigv4-enabled": "true", "rest.signing-region": "us-east-1"}
GIVEN = "planted-secret-key"
CUT_OFF = f"<AssumeRoleResponse><AssumeRoleResult><Credentials><SecretAccessKey>{GIVEN}</SecretAcc".encode()
SOME_DAY = (
    b"<AssumeRoleResponse><AssumeRoleResult><Credentials><Expiration>some day</Expiration></Credentials>"
    b"</AssumeRoleResult></AssumeRoleResponse>"
)
ASKED: dict[str, Callable[[TableFiles], Any]] = {
    "whether it is there": lambda files: files.exists(FILE),
    "whether versions are kept": lambda files: bucket_of(files.properties, FILE).versioning,
}


class _Answers(BaseHTTPRequestHandler):
    status, body = 200, b""

    def do_POST(self) -> None:  # its base class has named it
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, bytes], TableFiles]]:
    """What is answered from now on; gives files that a role is needed for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", uri)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

        def files(status: int, body: bytes) -> TableFiles:
            monkeypatch.setattr(_Answers, "status", status)
            monkeypatch.setattr(_Answers, "body", body)
            return TableFiles(tuple(sorted({"s3.endpoint": uri, "client.role-arn": ROLE, **KEYS}.items())))

        yield files
        server.shutdown()


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, PAGE),
        (200, WELL_FORMED),
        (200, b""),
        (200, CUT_OFF),
        (200, b"<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>"),
        (200, SOME_DAY),
        (403, PAGE),
        (502, b"502 bad gateway"),
        (404, b"default backend - 404"),
        (403, b"<ErrorResponse><Error>no</Error></ErrorResponse>"),
    ],
)
def test_what_can_not_be_read_is_an_outage(
    ask: Callable[[TableFiles], Any], answer: Callable[[int, bytes], TableFiles], status: int, body: bytes
) -> None:
    with pytest.raises(OSError, match=f"nobody gave the role {ROLE} as AWS does") as raised:
        ask(answer(status, body))
    assert type(raised.value) is OSError
    assert GIVEN not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (403, b"<ErrorResponse/>", PermissionError, "HTTP status 403: no reason given"),
        (403, b"<Error><Code>NoSuchKey</Code></Error>", PermissionError, "NoSuchKey: no reason given"),
        (404, WELL_FORMED, OSError, "HTTP status 404: no reason given"),
        (405, b"<e><Error><Code>MethodNotAllowed</Code></Error></e>", OSError, "MethodNotAllowed: no reason given"),
        (403, b"<e><Error><Code>AccessDenied</Code></Error></e>", StoreRefused, r"access is denied \(AccessDenied\)"),
    ],
)
def test_what_is_refused_is_nothing_about_the_store(  # noqa: PLR0917  # one answer
    ask: Callable[[TableFiles], Any],
    answer: Callable[[int, bytes], TableFiles],
    status: int,
    body: bytes,
    kind: type[OSError],
    told: str,
) -> None:
    with pytest.raises(kind, match=f"its role can't be taken: {told}") as raised:
        ask(answer(status, body))
    assert type(raised.value) is kind


def test_an_answer_without_credentials_is_not_kept(answer: Callable[[int, bytes], TableFiles]) -> None:
    """botocore kept it, and stumbled over it for as long as the process lived."""
    files = answer(200, b"<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>")
    with pytest.raises(OSError, match="nobody gave the role"):
        files.exists(FILE)
    answer(403, b"<e><Error><Code>ExpiredToken</Code></Error></e>")
    with pytest.raises(StoreRefused, match="have expired"):
        files.exists(FILE)


@pytest.mark.parametrize("body", [CUT_OFF, b"502 bad gateway"])
def test_a_role_of_a_profile(
    answer: Callable[[int, bytes], TableFiles], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """Which botocore asks for with a client of its own; of a catalog too."""
    files = answer(200, body)
    config = tmp_path / "config"
    keys = "aws_access_key_id = me\naws_secret_access_key = mine\nregion = us-east-1\n"
    config.write_text(f"[default]\n{keys}[profile acting]\n{keys}role_arn = {ROLE}\nsource_profile = default\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "acting")
    endpoint = dict(files.properties)["s3.endpoint"]
    of_profile = TableFiles((("s3.endpoint", endpoint), ("s3.region", "us-east-1")))
    with pytest.raises(OSError, match="what answered is nothing of AWS's") as raised:
        ASKED["whether versions are kept"](of_profile)
    assert GIVEN not in "".join(traceback.format_exception(raised.value))
    of_glue = {"type": "glue", "glue.region": "us-east-1", "glue.endpoint": endpoint}
    for settings in (of_glue, {"uri": endpoint, **SIGNED}):
        error, told = said(tmp_path, monkeypatch, **settings)
        assert "what answered is nothing of AWS's" in str(error)
        assert isinstance(error, StorageUnavailable)
        assert GIVEN not in told


def test_a_catalog_whose_requests_are_to_be_signed_and_that_nobody_has_credentials_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    error, _ = said(tmp_path, monkeypatch, uri="http://127.0.0.1:1", **SIGNED)
    assert "there are no credentials of AWS to sign its requests with" in str(error)
    assert isinstance(error, StorageUnavailable)
