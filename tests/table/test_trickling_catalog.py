"""A REST catalog that answers a byte at a time, for ever, is given up in time, and costs no other topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from urllib3 import Timeout

from keptlog.errors import StorageUnavailable
from keptlog.passes.observer import Observer
from keptlog.table.store import LogStore
from tests.table import rest_server as served
from tests.table.rest_server import RestServer, rest_server
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, create, new_id, new_records, store_at

SLOW = "slow"
SECONDS = 1.5
PIECES_A_WAIT = 8
"""So no single byte is late."""


class Pieces:
    """Writes a byte, and a while later the next."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def write(self, content: bytes) -> None:
        for byte in content:
            self._whole.write(bytes([byte]))
            time.sleep(SECONDS / PIECES_A_WAIT)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


@pytest.fixture
def slow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    create(tmp_path).create_topic(SLOW, 1, COMPACTED)
    really = served._Handler._handle

    def handle(handler: Any) -> None:
        if handler.server_of_test.delay_seconds and f"/{SLOW}" in handler.path:
            handler.wfile = Pieces(handler.wfile)
        really(handler)

    monkeypatch.setattr(served._Handler, "_handle", handle)
    for method in ("do_GET", "do_POST", "do_HEAD"):
        monkeypatch.setattr(served._Handler, method, handle)
    with rest_server(tmp_path) as server:
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
        yield server


@pytest.fixture
def store(tmp_path: Path, slow_server: RestServer, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """One whose catalog is slow about one topic since it was opened."""
    made = store_at(tmp_path / "elsewhere")
    assert made.topics() == sorted([SLOW, TOPIC])
    monkeypatch.setattr("keptlog.table.catalogs.rest.ANSWER_SECONDS", SECONDS)
    monkeypatch.setattr("keptlog.table.catalogs.conditional._TIMEOUT", Timeout(read=SECONDS))
    slow_server.delay_seconds = 0.001
    return made


def test_a_look_at_all_topics_ends_and_the_others_are_there(store: LogStore) -> None:
    seen = Observer(store, lambda: time.monotonic_ns() // 1_000_000).look(NOW_MS)
    assert [log.topic_partition.topic for log in seen.logs] == [TOPIC]
    assert isinstance(seen.unreadable[SLOW], StorageUnavailable)


def test_what_is_asked_of_its_topic_ends_with_one_line_that_says_what_happened(store: LogStore) -> None:
    with pytest.raises(StorageUnavailable, match=r"Read timed out"):
        store.append(SLOW, new_records(("a", "1")), new_id(), NOW_MS)
