"""Whoever asks over HTTP waits for the whole of an answer so long, whichever way the connection is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import URI
from requests import ReadTimeout
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager

from keptlog.table.catalogs.rest import PatientRestCatalog, _Patient, session_of
from keptlog.table.waiting.whole_answers import WholeAnswer
from tests.table.rest_server import RestServer, rest_server

PROXY = "http://127.0.0.1:1"
KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret-of-the-store", "s3.region": "us-east-1"}
SIGNED = {
    "rest.sigv4-enabled": "true",
    "client.access-key-id": "key",
    "client.secret-access-key": "secret",
    "client.region": "us-east-1",
}


def has_limit(manager: PoolManager) -> list[bool]:
    """Whether what its connections bring has a limit, without TLS and with it."""
    pools = [manager.connection_from_url(f"{scheme}://host.invalid") for scheme in ("http", "https")]
    return [getattr(pool.ConnectionCls, "response_class", None) is WholeAnswer for pool in pools]


def managers_of(client: Any) -> list[PoolManager]:
    """Of a client of boto3: without a proxy, and with one."""
    http = client._endpoint.http_session
    return [http._manager, http._get_proxy_manager(PROXY)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    with rest_server(tmp_path) as served:
        yield served


def test_of_a_rest_catalog() -> None:
    adapter = _Patient()
    assert has_limit(adapter.poolmanager) == [True, True]
    assert has_limit(adapter.proxy_manager_for(PROXY)) == [True, True]


def test_of_a_rest_catalog_whose_requests_are_signed(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    catalog = PatientRestCatalog("signed", **{URI: server.uri, **SIGNED})
    adapter = session_of(catalog).get_adapter(server.uri)
    assert isinstance(adapter, HTTPAdapter)
    assert not isinstance(adapter, _Patient)
    assert has_limit(adapter.poolmanager) == [True, True]
    assert has_limit(adapter.proxy_manager_for(PROXY)) == [True, True]
    monkeypatch.setattr("keptlog.table.catalogs.rest.ANSWER_SECONDS", 0.2)
    server.delay_seconds = 5
    with pytest.raises(ReadTimeout):
        catalog.list_namespaces()


def test_of_s3_and_of_who_gives_the_credentials_for_it() -> None:
    pytest.importorskip("boto3")
    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415  # boto3 may be missing

    client = s3_client(tuple(sorted(KEYS.items())))
    assert [has_limit(each) for each in managers_of(client)] == [[True, True]] * 2
    role = {"s3.role-arn": "arn:aws:iam::123456789012:role/purger"}
    taking = s3_client(tuple(sorted({**KEYS, **role}.items())))
    made = taking._request_signer._credentials._refresh_using.asked._client_creator("sts")
    assert [has_limit(each) for each in managers_of(made)] == [[True, True]] * 2


def test_of_glue() -> None:
    pytest.importorskip("boto3")
    from keptlog.table.catalogs.glue import _client  # noqa: PLC0415  # as above

    client = _client((("glue.region", "us-east-1"),))
    for each in (client._asking, client._changing):
        assert [has_limit(manager) for manager in managers_of(each)] == [[True, True]] * 2
