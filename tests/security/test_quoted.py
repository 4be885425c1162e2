"""What a server that refuses quotes of the request: no error tells what was secret of that."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, quote_plus

import pytest

from keptlog.table.io.s3_errors import reaching_store
from keptlog.table.waiting.patience import within
from keptlog.table.waiting.quoted import secrets_in, without
from tests.security.searching import found_in
from tests.security.test_auth import OF_AWS, SECRET, SECRETS, said
from tests.table.test_role_answers import configure_aws, of_environment

GIVEN_UP_SECONDS = 60.0
TOKEN = "planted/auth+token=="  # noqa: S105  # nobody's; of such letters
SIGNED = OF_AWS | {"client.session-token": TOKEN}
ROLE = "arn:aws:iam::123456789012:role/reader"
SENT = SECRETS | {"the session's token": TOKEN}


def _json(text: str) -> str:
    return json.dumps({"__type": "InvalidSignatureException", "message": text})


def _xml(text: str) -> str:
    return f"<Error><Code>SignatureDoesNotMatch</Code><Message>{text}</Message></Error>"


def _xml_of_roles(text: str) -> str:
    return f"<ErrorResponse>{_xml(text)}</ErrorResponse>"


@contextmanager
def quoting_server(write: Callable[[str], str]) -> Iterator[str]:
    """Quotes what was signed, as AWS does for a signature that it does not take."""

    class Quoting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # its base class has named it
            quoted = " ".join(f"{name.lower()}:{text}" for name, text in self.headers.items())
            body = write(f"The Canonical String should have been 'GET {quoted}'").encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quoting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_was_signed_for_a_rest_catalog_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    with quoting_server(_json) as uri:
        error, told = said(tmp_path, monkeypatch, **SIGNED, uri=uri, token=SECRET, **{"rest.sigv4-enabled": "true"})
    assert "x-amz-security-token:[hidden]" in str(error)
    assert found_in(told, SENT) == []


@pytest.mark.parametrize(
    ("header", "value"),
    [("X-Api-Key", TOKEN), ("X-Vault-Token", f"{TOKEN} 2"), ("Cookie", TOKEN), ("Authorization", TOKEN)],
)
def test_what_a_header_of_the_settings_has_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, value: str
) -> None:
    """An authorization may have no scheme."""
    with quoting_server(_json) as uri:
        error, told = said(tmp_path, monkeypatch, uri=uri, **{f"header.{header}": value})
    assert f"{header.lower()}:[hidden]" in str(error)
    assert found_in(told, SENT) == []


HTML_5 = ("sol", "plus", "equals", "percnt", "apos", "bsol", "NewLine")
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON without ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "PHP": lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    "Gson": lambda text: json.dumps(text)[1:-1].replace("=", r"\u003d").replace("'", r"\u0027"),
    ".NET": lambda text: json.dumps(text)[1:-1].replace("+", r"\u002B").replace(r"\"", r"\u0022"),
    "Gson in JSON": lambda text: json.dumps(json.dumps(text)[1:-1].replace("=", r"\u003d"))[1:-1],
    "XML": escape,
    "a page of .NET": lambda text: escape(text).replace("+", "&#x2B;"),
    "a page of OWASP": lambda text: escape(text).replace("/", "&#x2F;").replace("=", "&#61;").replace("'", "&apos;"),
    "a page in a page": lambda text: escape(escape(text)),
    "a page of PHP": lambda text: escape(text).replace("&#x27;", "&#039;"),
    "a page of PHP for HTML 5": lambda text: escape(text).translate(
        {ord(each): f"&{name};" for each, name in zip("/+=%'\\\n", HTML_5, strict=True)}
    ),
    "a page in JSON of Go": lambda text: json.dumps(escape(text).replace("+", "&#43;"))[1:-1].replace("&", r"\u0026"),
    "an address": lambda text: quote(text, safe=""),
    "a form": quote_plus,
}


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize(
    "secret",
    [
        TOKEN,
        "pass word",
        "a'b\"c=d",
        "a%5Cb&%&",
        '<&>"',
        "back\\sl\\\\ash",
        "two\nlines",
        "caf\u00e9",
        "key\U0001f511s",
    ],
)
def test_a_secret_is_found_however_an_answer_writes_it(how: str, secret: str) -> None:
    text = f'{{"message": "no {WRITTEN[how](secret)} here"}}'
    assert without([secret, ""], text.encode()) == b'{"message": "no [hidden] here"}'


@pytest.mark.parametrize("value", ["2", "", "\\\\\\\\", "42\\"])
def test_what_is_too_short_for_a_secret_leaves_an_answer_as_it_is(value: str) -> None:
    """As that of header.X-Auth-Version: the answer's status would be no number any more."""
    answer = b'{"error": {"message": "no version 2 of \\\\\\\\ here", "code": 422}}'
    assert without(secrets_in({"X-Auth-Version": value}), answer) == answer


def test_an_answer_of_backslashes_is_looked_through_in_no_time() -> None:
    answer = b"\\" * 1_000_000
    assert within(lambda: without([TOKEN, "a\\b\\c", "\\"], answer), GIVEN_UP_SECONDS) == answer


@pytest.mark.parametrize("write", [_json, str])
def test_what_was_signed_for_glue_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], str]
) -> None:
    pytest.importorskip("boto3")
    with quoting_server(write) as uri:
        error, told = said(tmp_path, monkeypatch, **SIGNED, type="glue", **{"glue.endpoint": uri})
    assert "x-amz-security-token:[hidden]" in str(error)
    assert found_in(told, SENT) == []


@pytest.mark.parametrize("asked", ["the store", "for a role"])
def test_what_was_signed_for_a_store_is_not_told(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    s3_client = pytest.importorskip("keptlog.table.io.s3_client").s3_client
    write, role = (_xml, {}) if asked == "the store" else (_xml_of_roles, {"client.role-arn": ROLE})
    with quoting_server(write) as uri:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", uri)
        client = s3_client(tuple(sorted((SIGNED | role | {"s3.endpoint": uri}).items())))
        with pytest.raises(OSError, match="the bucket") as raised, reaching_store("the bucket"):
            client.list_buckets()
    told = "".join(traceback.format_exception(raised.value))
    assert "x-amz-security-token:[hidden]" in told
    assert found_in(told, SENT) == []


def test_what_was_signed_for_a_role_of_a_profile_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which botocore asks for with a client of its own."""
    pytest.importorskip("boto3")
    keys = f"aws_access_key_id = me\naws_secret_access_key = {SECRET}\naws_session_token = {TOKEN}\n"
    profile = f"[default]\n{keys}[profile acting]\nregion = us-east-1\nrole_arn = {ROLE}\nsource_profile = default\n"
    with quoting_server(_xml_of_roles) as uri:
        configure_aws(tmp_path, monkeypatch, profile, AWS_PROFILE="acting", AWS_ENDPOINT_URL_STS=uri)
        with pytest.raises(OSError, match="its role can't be taken") as raised:
            of_environment(uri).exists(f"s3://lake/{ROLE}")
        _, of_glue = said(tmp_path, monkeypatch, type="glue", **{"glue.endpoint": uri})
        _, of_rest = said(tmp_path, monkeypatch, uri=uri, **{"rest.sigv4-enabled": "true"})
    for each in ("".join(traceback.format_exception(raised.value)), of_glue, of_rest):
        assert "x-amz-security-token:[hidden]" in each
        assert found_in(each, SENT) == []


@pytest.mark.parametrize("is_in_file", [False, True])
def test_what_was_sent_to_whom_gives_a_container_its_credentials_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_file: bool
) -> None:
    pytest.importorskip("boto3")
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)
    (tmp_path / "token").write_text(f"Bearer {TOKEN}")
    name = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
    sent = {f"{name}_FILE": str(tmp_path / "token")} if is_in_file else {name: TOKEN}
    with quoting_server(_json) as uri:
        configure_aws(tmp_path, monkeypatch, AWS_CONTAINER_CREDENTIALS_FULL_URI=uri, **sent)
        with pytest.raises(OSError, match="can't be asked") as raised:
            of_environment(uri).exists(f"s3://lake/{ROLE}")
        _, of_glue = said(tmp_path, monkeypatch, type="glue", **{"glue.region": "us-east-1", "glue.endpoint": uri})
        _, of_rest = said(
            tmp_path, monkeypatch, uri=uri, **{"rest.sigv4-enabled": "true", "client.region": "us-east-1"}
        )
    for each in ("".join(traceback.format_exception(raised.value)), of_glue, of_rest):
        assert "[hidden]" in each
        assert found_in(each, SENT) == []
