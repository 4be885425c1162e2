"""Servers for the tests that need one: a store of objects, one for all of them, and a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket, new_bucket, s3_server
from tests.table.rest_server import RestServer, rest_server
from tests.table.stores import append_each, create, new_id, store_at


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> ABucket:
    """A bucket that keeps versions."""
    return new_bucket(s3_endpoint)


@pytest.fixture
def bucket_with_locks(s3_endpoint: str) -> ABucket:
    return new_bucket(s3_endpoint, locks=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    """A REST catalog with one topic, and a record in it."""
    create(tmp_path)
    append_each(store_at(tmp_path), [("a", "1")])
    with rest_server(tmp_path) as server:
        yield server


@pytest.fixture
def store(server: RestServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LogStore:
    """What a home has behind that catalog."""
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
    return LogStore(open_catalog(tmp_path / "elsewhere"), {}, lambda _: None, new_id)
