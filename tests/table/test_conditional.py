"""What a look at a REST catalog sends for each topic, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.conditional import Question
from keptlog.table.catalogs.rest import PatientRestCatalog, session_of
from keptlog.table.commits.loading import metadata_location
from keptlog.table.store import LogStore
from tests.table.rest_server import Answer, RestServer, rest_server
from tests.table.stores import TOPIC, append_each, create, new_id, store_at

CREDENTIALS = "X-Iceberg-Access-Delegation"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    append_each(create(tmp_path), [("a", "1")])
    with rest_server(tmp_path) as server:
        yield server


def catalog_of(server: RestServer, **settings: Any) -> PatientRestCatalog:
    how = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"} | settings
    return PatientRestCatalog("rest", uri=server.uri, **how)


def store_of(catalog: PatientRestCatalog) -> LogStore:
    return LogStore(catalog, {}, lambda _: None, new_id)


def test_the_catalogs_own_headers_and_credentials_go_with_each_question(server: RestServer) -> None:
    auth = {"type": "basic", "basic": {"username": "me", "password": "mine"}}
    catalog = catalog_of(server, auth=auth, **{"header.X-Team": "lake"})
    store = store_of(catalog)

    store.metadata_locations()
    store.metadata_locations()

    first, second = server.headers["load"]
    assert first["Authorization"] == second["Authorization"] == "Basic bWU6bWluZQ=="
    assert first["X-Team"] == second["X-Team"] == "lake"
    assert CREDENTIALS not in first | second
    assert "If-None-Match" not in first
    assert second["If-None-Match"]
    assert server.asked["unchanged"] == 1


def test_a_catalog_below_a_prefix_that_has_to_be_quoted(server: RestServer) -> None:
    server.overrides["prefix"] = "main|s3 lake"
    store = store_of(catalog_of(server))

    assert store.metadata_locations() == store.metadata_locations()

    assert (server.asked["load"], server.asked["unchanged"]) == (2, 1)


class _Signing(HTTPAdapter):
    """Signs the way a request goes, as that of AWS does."""

    def send(self, request: PreparedRequest, *args: Any, **how: Any) -> Response:
        request.headers["X-Signed"] = f"{request.path_url} {request.headers.get('If-None-Match')!r}"
        return super().send(request, *args, **how)


def test_each_question_goes_through_who_signs_it(server: RestServer) -> None:
    catalog = catalog_of(server)
    session_of(catalog).mount(server.uri, _Signing())
    store = store_of(catalog)

    assert store.metadata_locations() == store.metadata_locations()

    first, second = server.headers["load"]
    path = f"/v1/namespaces/keptlog/tables/{TOPIC}?snapshots=refs"
    assert first["X-Signed"] == f"{path} None"
    assert second["X-Signed"] == f"{path} {second['If-None-Match']!r}"
    assert server.asked["unchanged"] == 1


def test_a_proxy_is_told_the_whole_address(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of(server)
    catalog.uri = "http://catalog.invalid"
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", server.uri)

    told = Question(catalog, "keptlog").ask(TOPIC, None)

    # The server stands for the proxy.
    assert (told.status, server.headers["load"][0]["Host"]) == (200, "catalog.invalid")


def test_a_token_that_expires_within_a_look_is_taken_anew(server: RestServer) -> None:
    store = store_of(catalog_of(server))
    known = store.metadata_locations()
    server.answers["load"] = [Answer(401, kind="NotAuthorizedException")]

    assert store.metadata_locations() == known


@pytest.mark.parametrize("text", [b"<html>sign in</html>", b"[]", b'{"metadata-location": "s3://cut of'])
def test_an_answer_of_somebody_else_is_an_outage_and_no_harm_to_what_is_known(server: RestServer, text: bytes) -> None:
    store = store_of(catalog_of(server))
    known = store.metadata_locations()
    server.answers["load"] = [Answer(200, text=text)]

    with pytest.raises(StorageUnavailable, match=f"topic {TOPIC} can't be loaded: .*what came is no"):
        store.metadata_locations()

    assert store.metadata_locations() == known


def test_a_catalog_that_closes_the_connection_is_an_outage(server: RestServer) -> None:
    store = store_of(catalog_of(server))
    server.answers["load"] = [Answer(None)]

    with pytest.raises(StorageUnavailable, match=f"topic {TOPIC} can't be loaded"):
        store.metadata_locations()

    assert server.asked["load"] == 1


def test_not_modified_counts_for_the_answer_that_is_known_alone(server: RestServer, tmp_path: Path) -> None:
    catalog = catalog_of(server)
    store = store_of(catalog)
    before = store.metadata_locations()[TOPIC]
    append_each(store_at(tmp_path), [("b", "2")])
    moved = store.metadata_locations()[TOPIC]

    assert moved == metadata_location(catalog, TOPIC) != before
    # Who knows nothing and is told "not modified" has been told nothing, and asks again.
    server.answers["load"] = [Answer(304)]
    assert store_of(catalog).metadata_locations()[TOPIC] == moved
