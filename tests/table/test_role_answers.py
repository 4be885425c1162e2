"""Who is asked for a role, in which a store is to be asked, and answers what AWS does not: it is an outage, no more.

Nothing of it is about the store: no file is gone, and no bucket has said that it does not tell of versions.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from examples.lake.s3_server import KEYS
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.storage.refusal import StoreRefused
from keptlog.table.catalogs.glue import _client
from keptlog.table.io.files import TableFiles
from keptlog.table.io.object_versions import _bucket, bucket_of
from keptlog.table.io.s3_client import s3_client
from tests.security.test_auth import said
from tests.table.portals import portal

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
OVER = SOME_DAY.replace(
    b"<Expiration>some day",
    b"<AccessKeyId>it</AccessKeyId><SecretAccessKey>its</SecretAccessKey><SessionToken>a</SessionToken>"
    b"<Expiration>2020-01-01T00:00:00Z",
)
UNREAD = [
    (200, PAGE),
    (200, WELL_FORMED),
    (200, b""),
    (200, CUT_OFF),
    (200, b"<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>"),
    (200, SOME_DAY),
    (200, OVER),
    (403, PAGE),
    (502, b"502 bad gateway"),
    (404, b"default backend - 404"),
    (403, b"<ErrorResponse><Error>no</Error></ErrorResponse>"),
]
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
@pytest.mark.parametrize(("status", "body"), UNREAD)
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


def test_a_role_that_is_over_may_be_so_by_a_clock_that_is_wrong(answer: Callable[[int, bytes], TableFiles]) -> None:
    """Then AWS has given it as it does."""
    with pytest.raises(OSError, match=r"see to AWS_ENDPOINT_URL_STS, .* and the clock here"):
        answer(200, OVER).exists(FILE)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_role_that_there_are_no_credentials_to_ask_for(
    ask: Callable[[TableFiles], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was asked, so nobody has answered what AWS does not."""
    configure_aws(tmp_path, monkeypatch)
    endpoint = "http://127.0.0.1:1"
    files = TableFiles((("client.role-arn", ROLE), ("s3.endpoint", endpoint), ("s3.region", "us-east-1")))
    with pytest.raises(StoreRefused, match="there are no credentials"):
        ask(files)


@pytest.mark.parametrize(("status", "body"), UNREAD)
def test_a_role_of_a_profile(  # noqa: PLR0917  # one answer
    answer: Callable[[int, bytes], TableFiles],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
    body: bytes,
) -> None:
    """Which botocore asks for with a client of its own; of a catalog too."""
    files = answer(status, body)
    keys = "aws_access_key_id = me\naws_secret_access_key = mine\nregion = us-east-1\n"
    profile = f"[default]\n{keys}[profile acting]\n{keys}role_arn = {ROLE}\nsource_profile = default\n"
    configure_aws(tmp_path, monkeypatch, profile, AWS_PROFILE="acting")
    endpoint = dict(files.properties)["s3.endpoint"]
    with pytest.raises(OSError, match=f"nobody gave the role {ROLE} as AWS does") as raised:
        ASKED["whether versions are kept"](of_environment(endpoint))
    assert GIVEN not in "".join(traceback.format_exception(raised.value))
    of_glue = {"type": "glue", "glue.region": "us-east-1", "glue.endpoint": endpoint}
    for settings in (of_glue, {"uri": endpoint, **SIGNED}):
        error, told = said(tmp_path, monkeypatch, **settings)
        assert f"nobody gave the role {ROLE} as AWS does" in str(error)
        assert isinstance(error, StorageUnavailable)
        assert GIVEN not in told
    assert GIVEN not in caplog.text


def configure_aws(folder: Path, monkeypatch: pytest.MonkeyPatch, profiles: str = "", **variables: str) -> None:
    """Let AWS's clients find nothing but this."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    (folder / "config").write_text(profiles)
    files = {"AWS_CONFIG_FILE": str(folder / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none")}
    for name, value in (files | {"AWS_EC2_METADATA_DISABLED": "true"} | variables).items():
        monkeypatch.setenv(name, value)
    s3_client.cache_clear()
    _bucket.cache_clear()
    _client.cache_clear()


def of_environment(endpoint: str) -> TableFiles:
    return TableFiles((("s3.endpoint", endpoint), ("s3.region", "us-east-1")))


def given(**parts: object) -> str:
    """Credentials, but for these parts, as a process gives them."""
    return json.dumps({"Version": 1, "AccessKeyId": "it", "SecretAccessKey": "ours"} | parts)


HALF = "\ud800"
LATER = "2099-01-01T00:00:00Z"
ACTING = f"[profile acting]\nregion = us-east-1\nrole_arn = {ROLE}\nsource_profile = here\n"
IDENTITY = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token"}
EXPORTED = {"AWS_ACCESS_KEY_ID": "it", "AWS_SECRET_ACCESS_KEY": "ours", "AWS_SESSION_TOKEN": "a"}
"""As ``aws configure export-credentials`` writes them, beside when they end."""
CONTAINER = {
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/nowhere/token",
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(
    ("profile", "variables", "told"),
    [
        ("", IDENTITY, "/nowhere/token: No such file or directory"),
        ("", CONTAINER, "/nowhere/token: No such file or directory"),
        ("credential_process = /nowhere/tool", {}, "/nowhere/tool: No such file or directory"),
        ("credential_process = /bin/echo none", {}, "it gave none that can be read"),
        ("credential_process = /bin/echo []", {}, "it gave none that can be read"),
        ("credential_process = /usr/bin/printf \\\\377", {}, "it gave none that can be read"),
        (f"credential_process = /bin/echo '{given(AccessKeyId=5)}'", {}, "it gave none that can be read"),
        (f"credential_process = /bin/echo '{given(SecretAccessKey=None)}'", {}, "it gave none that can be read"),
        (f"credential_process = /bin/echo '{given(SessionToken=5)}'", {}, "it gave none that can be read"),
        (
            f"credential_process = /bin/echo '{given(SessionToken='', Expiration=LATER[:-1])}'",
            {},
            "it gave none that can",
        ),
        (f"credential_process = /bin/echo '{given(Version=HALF)}'", {}, r"Unsupported version '\?'"),
        (
            f"credential_process = /bin/echo '{given(SessionToken=5)}'\n{ACTING}",
            {"AWS_PROFILE": "acting"},
            "it gave none",
        ),
        (
            'credential_process = /bin/echo "half',
            {},
            "No closing quotation: see to AWS_ACCESS_KEY_ID and the variables beside it, to credential_process",
        ),
        ("", EXPORTED | {"AWS_CREDENTIAL_EXPIRATION": "2001-01-01T00:00:00Z"}, "see to AWS_ACCESS_KEY_ID and the var"),
        ("", EXPORTED | {"AWS_CREDENTIAL_EXPIRATION": LATER[:-1]}, "see to AWS_ACCESS_KEY_ID and the variables"),
        ("aws_access_key_id = me", {}, "there are no credentials"),
        (f"role_arn = {ROLE}", {}, "there are no credentials"),
    ],
)
def test_what_should_give_credentials_and_is_not_there_is_no_file_of_the_store_that_is_gone(  # noqa: PLR0917
    ask: Callable[[TableFiles], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    variables: dict[str, str],
    told: str,
) -> None:
    """As the token of a cluster's service account, which is mounted: each file would be gone."""
    in_profile = {} if variables else {"AWS_PROFILE": "here"}
    configure_aws(tmp_path, monkeypatch, f"[profile here]\n{profile}\n", **variables, **in_profile)
    with pytest.raises(OSError, match=told) as raised:
        ask(of_environment("http://127.0.0.1:1"))
    assert not isinstance(raised.value, FileNotFoundError)
    of_glue = {"type": "glue", "glue.region": "us-east-1", "glue.endpoint": "http://127.0.0.1:1"}
    for settings in (of_glue, {"uri": "http://127.0.0.1:1", **SIGNED}):
        assert isinstance(said(tmp_path, monkeypatch, **settings)[0], StorageUnavailable)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_token_that_is_no_text_is_told_as_its_file_and_not_as_who_gives_roles(
    ask: Callable[[TableFiles], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_bytes(b"\xff\xfe" + GIVEN.encode())
    configure_aws(tmp_path, monkeypatch, **IDENTITY | {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token)})
    with pytest.raises(OSError, match=f"{token}: it is no text: let AWS_WEB_IDENTITY_TOKEN_FILE") as raised:
        ask(of_environment("http://127.0.0.1:1"))
    assert GIVEN not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"\xff",
        b'{"AccessKeyId": "it", "SecretAccessKey": "ours", "Token": "a", "Expiration": "some day"}',
        b'{"AccessKeyId": "it", "SecretAccessKey": "ours", "Token": "a", "Expiration": null}',
        b'{"AccessKeyId": "it", "SecretAccessKey": "ours", "Token": "a", "Expiration": "1893456000000"}',
        given(Token="a", Expiration=LATER, AccessKeyId=None).encode(),  # noqa: S106  # nobody's
        given(Token="a", Expiration=LATER, SecretAccessKey=HALF).encode(),  # noqa: S106  # nobody's
        given(Token=5, Expiration=LATER).encode(),
        b"[" * 100_000,
    ],
)
def test_credentials_of_a_container_that_can_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    with portal(body) as files:
        endpoint = dict(files.properties)["s3.endpoint"]
        configure_aws(tmp_path, monkeypatch, AWS_CONTAINER_CREDENTIALS_FULL_URI=endpoint)
        with pytest.raises(OSError, match="it gave none that can be read"):
            of_environment(endpoint).exists(FILE)
        of_glue = {"type": "glue", "glue.region": "us-east-1", "glue.endpoint": endpoint}
        for settings in (of_glue, {"uri": endpoint, **SIGNED}):
            error, _ = said(tmp_path, monkeypatch, **settings)
            assert isinstance(error, StorageUnavailable)
            assert "it gave none that can be read" in str(error)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("after", ["rm $0", "printf '#!/bin/sh\\necho []' > $0"])
def test_who_has_no_other_credentials_once_the_first_have_expired_leaves_the_refusal(
    ask: Callable[[TableFiles], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Without a tool that gives others each file of the store would be gone."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\necho '{given()}'\n{after}\n")
    tool.chmod(0o700)
    configure_aws(tmp_path, monkeypatch, f"[profile here]\ncredential_process = {tool}\n", AWS_PROFILE="here")
    expired = portal(b"<Error><Code>ExpiredToken</Code></Error>", 403)
    with expired as files, pytest.raises(OSError, match="ExpiredToken"):
        ask(of_environment(dict(files.properties)["s3.endpoint"]))


@pytest.mark.parametrize("of_role", ["", ACTING])
@pytest.mark.parametrize("then", [given(SecretAccessKey=None, SessionToken="a", Expiration=LATER), "[]"])
def test_credentials_that_are_renewed_and_can_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, of_role: str
) -> None:
    """The first ones end before botocore lets anybody use them, for a role too, of which nothing is told."""
    tool = tmp_path / "tool"
    (tmp_path / "then").write_text(f"#!/bin/sh\necho '{then}'\n")
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    first = given(SessionToken="a", Expiration=soon)
    tool.write_text(f"#!/bin/sh\necho '{first}'\ncat {tmp_path}/then > $0\n")
    tool.chmod(0o700)
    profiles = f"[profile here]\ncredential_process = {tool}\n{of_role}"
    configure_aws(tmp_path, monkeypatch, profiles, AWS_PROFILE="acting" if of_role else "here")
    with pytest.raises(OSError, match="custom-process: it gave none that can be read"):
        of_environment("http://127.0.0.1:1").exists(FILE)


@pytest.mark.parametrize(("profiles", "variables"), [("", {"AWS_PROFILE": "another"}), ("[half", {})])
def test_a_configuration_of_aws_that_can_not_be_used_is_to_be_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profiles: str, variables: dict[str, str]
) -> None:
    configure_aws(tmp_path, monkeypatch, profiles, **variables)
    with pytest.raises(InvalidConfig, match="correct AWS_PROFILE, or AWS's configuration file"):
        of_environment("http://127.0.0.1:1").exists(FILE)
    of_glue = {"type": "glue", "glue.region": "us-east-1", "glue.endpoint": "http://127.0.0.1:1"}
    for settings in (of_glue, {"uri": "http://127.0.0.1:1", **SIGNED}):
        assert isinstance(said(tmp_path, monkeypatch, **settings)[0], InvalidConfig)


def test_a_catalog_whose_requests_are_to_be_signed_for_no_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_aws(tmp_path, monkeypatch, AWS_ACCESS_KEY_ID="me", AWS_SECRET_ACCESS_KEY="mine")  # noqa: S106
    error, _ = said(tmp_path, monkeypatch, uri="http://127.0.0.1:1", **{"rest.sigv4-enabled": "true"})
    assert "there is no region to sign requests for: set rest.signing-region or client.region" in str(error)
    assert isinstance(error, InvalidConfig)


def test_a_catalog_whose_requests_are_to_be_signed_and_that_nobody_has_credentials_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_aws(tmp_path, monkeypatch)
    error, _ = said(tmp_path, monkeypatch, uri="http://127.0.0.1:1", **SIGNED)
    assert "there are no credentials of AWS to sign its requests with" in str(error)
    assert isinstance(error, StorageUnavailable)
