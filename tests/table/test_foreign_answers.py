"""What a proxy says in place of a REST catalog is no word of the catalog's: no topic is gone for it, and no record."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import CommitStateUnknown, LogCorrupt, StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.table.rest_server import Answer, RestServer
from tests.table.stores import NOW_MS, TOPIC, new_id, new_records, values

PAGE = b"<!doctype html>\n<title>Sign in</title>"
DEFAULT_BACKEND = b"default backend - 404"


def append(store: LogStore) -> None:
    store.append(TOPIC, new_records(("b", "2")), "run", NOW_MS)


@pytest.mark.parametrize(
    "answer",
    [Answer(200, text=PAGE), Answer(302, text=PAGE), Answer(404, text=DEFAULT_BACKEND), Answer(404, text=b" ")],
    ids=["page", "redirect", "default backend", "empty"],
)
def test_topics_are_not_gone_for_a_proxy_that_says_so(store: LogStore, server: RestServer, answer: Answer) -> None:
    server.answers["list"] = [answer]
    with pytest.raises(StorageUnavailable, match=rf"{answer.status} from .*/tables came with .*not with JSON"):
        store.topics()
    server.answers["load"] = [answer] * 2
    with pytest.raises(StorageUnavailable, match="not with JSON of a catalog; check that it exists and can be reached"):
        store.load_table(TOPIC)
    assert store.topics() == [TOPIC]


GATEWAY = b'{"message": "no Route matched with those values"}'
SPRING = b'{"timestamp": "2026-11-27", "status": 404, "error": "Not Found", "path": "/v1"}'


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(404, text=GATEWAY), "JSON that is no error of an Iceberg catalog: .*no Route matched"),
        (Answer(404, text=SPRING), "JSON that is no error of an Iceberg catalog"),
        (Answer(404, text=b'{"error": '), "JSON that is no error of an Iceberg catalog"),
        (Answer(404, text=b'{"error": ' + b"[" * 100_000), "JSON that is no error of an Iceberg catalog"),
        (Answer(400, text=b'{"error": ' + b"[" * 100_000), "400"),
        (Answer(404, kind="FileIOUnknownHostException"), "tells of the catalog's storage"),
        (Answer(404, kind="NotFoundException"), "tells of the catalog's storage"),
    ],
    ids=["gateway", "Spring", "half", "nested", "refused and nested", "a bucket's host", "a file"],
)
def test_topics_are_not_gone_for_json_that_is_no_error_of_a_catalog_or_one_of_its_storage(
    store: LogStore, server: RestServer, answer: Answer, told: str
) -> None:
    server.answers["list"] = [answer]
    with pytest.raises(StorageUnavailable, match=told):
        store.topics()
    server.answers["load"] = [answer] * 2
    with pytest.raises(StorageUnavailable, match=told):
        store.load_table(TOPIC)
    assert store.topics() == [TOPIC]


@pytest.mark.parametrize(
    "text", [b"{}", b'{"identifiers": [{"na', b'{"metadata": []}', b" "], ids=["other form", "half", "list", "empty"]
)
def test_json_that_is_no_answer_of_a_catalog_is_an_outage_and_no_damage(
    store: LogStore, server: RestServer, text: bytes
) -> None:
    server.answers["list"] = [Answer(200, text=text)]
    with pytest.raises(StorageUnavailable, match="what came for a list of tables is no answer of an Iceberg catalog"):
        store.topics()
    server.answers["load"] = [Answer(200, text=text)] * 2
    with pytest.raises(StorageUnavailable, match=r"what came for a table is no answer .*; check that it exists"):
        store.load_table(TOPIC)
    server.answers.clear()
    assert store.topics() == [TOPIC]
    append(store)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


def test_a_table_whose_metadata_the_catalog_shows_damaged_is_damaged(store: LogStore, server: RestServer) -> None:
    server.answers["load"] = [Answer(200, text=b'{"metadata": {"format-version": 2}}')]
    with pytest.raises(LogCorrupt, match="metadata file that the catalog names is damaged"):
        store.load_table(TOPIC)


def test_half_a_configuration_is_told_as_no_answer(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
    server.answers["config"] = [Answer(200, text=b'{"defaults": {')]
    with pytest.raises(StorageUnavailable, match="what came for its configuration is no answer of an Iceberg catalog"):
        open_catalog(tmp_path / "elsewhere")


def test_a_catalog_that_does_not_know_the_warehouse_is_quoted_and_will_say_it_again(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
    server.answers["config"] = [Answer(404, kind="NotFoundException")]
    with pytest.raises(StorageUnavailable, match="NotFoundException: as the test says; see to its permissions") as told:
        open_catalog(tmp_path / "elsewhere")
    assert told.value.is_refused


def test_an_answer_about_a_namespace_that_is_none_is_an_outage(store: LogStore, server: RestServer) -> None:
    server.answers["namespace"] = [Answer(200, text=b"{}")]
    with pytest.raises(StorageUnavailable, match="what came for a namespace is no answer of an Iceberg catalog"):
        store.create_topic("fresh", 1, {})


def test_a_namespace_that_is_dropped_before_its_table_is_made_is_told_in_one_line(
    store: LogStore, server: RestServer
) -> None:
    server.answers["create"] = [Answer(404, kind="NoSuchNamespaceException")]
    with pytest.raises(StorageUnavailable, match="topic fresh can't be created: RESTError: NoSuchNamespaceException"):
        store.create_topic("fresh", 1, {})


def test_a_topic_whose_creation_got_no_answer_of_a_catalog_is_there_if_it_landed(
    store: LogStore, server: RestServer
) -> None:
    server.answers["create"] = [Answer(200, lands=True, text=b"{}")]
    store.create_topic("fresh", 1, {})
    assert store.topics() == ["fresh", TOPIC]


def test_a_topic_whose_creation_got_no_answer_and_did_not_land_can_be_created_again(
    store: LogStore, server: RestServer
) -> None:
    server.answers["create"] = [Answer(200, lands=False, text=b"{}")]
    with pytest.raises((StorageUnavailable, CommitStateUnknown)):
        store.create_topic("fresh", 1, {})
    store.create_topic("fresh", 1, {})
    assert store.topics() == ["fresh", TOPIC]


def test_a_page_in_place_of_the_configuration_is_told_in_one_line(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
    server.answers["config"] = [Answer(200, text=PAGE)]
    with pytest.raises(
        StorageUnavailable, match=r"can't be opened: ForeignAnswer: 200 from .*/v1/config came with text"
    ):
        open_catalog(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("status", "text"),
    [(200, PAGE), (200, b"{}"), (404, PAGE), (409, PAGE), (404, GATEWAY), (409, GATEWAY)],
    ids=["page", "JSON", "404", "409", "404 in JSON", "409 in JSON"],
)
@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_that_a_proxy_answers_lands_once(
    store: LogStore, server: RestServer, status: int, text: bytes, *, lands: bool
) -> None:
    server.answers["commit"] = [Answer(status, lands=lands, text=text)]
    append(store)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


@pytest.mark.parametrize("text", [DEFAULT_BACKEND, GATEWAY])
def test_a_commit_that_landed_is_in_doubt_while_a_proxy_says_that_nothing_is_there(
    store: LogStore, server: RestServer, tmp_path: Path, text: bytes
) -> None:
    def catalog_is_gone(_: float) -> None:
        server.answers["load"] = [Answer(404, text=text)] * 2

    waiting = LogStore(open_catalog(tmp_path / "elsewhere"), {}, catalog_is_gone, new_id)
    server.answers["commit"] = [Answer(503, lands=True)]
    with pytest.raises(CommitStateUnknown, match=r"404 from .*--run-id run"):
        append(waiting)
    server.answers.clear()
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
    append(store)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
