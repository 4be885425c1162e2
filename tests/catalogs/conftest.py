"""The catalogs that are looked at: SQLite's always; Postgres' and REST where their servers can be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from examples.lake.postgres import Postgres, postgres
from examples.lake.rest_catalog import rest_catalog
from keptlog.table.catalogs.catalog import open_catalog
from tests.lake.installed import or_skip
from tests.table.buckets import ABucket, new_bucket, s3_server

Open = Callable[[], Catalog]
"""Opens a catalog, each time anew."""
Configure = Callable[..., Open]


@pytest.fixture(scope="package")
def database() -> Iterator[Postgres]:
    with or_skip(postgres()) as server:
        yield server


@pytest.fixture(scope="package")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Its URL and its warehouse, on this disk."""
    warehouse = tmp_path_factory.mktemp("rest")
    with or_skip(rest_catalog(str(warehouse))) as server:
        yield server.uri, warehouse


@pytest.fixture(scope="package")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> ABucket:
    return new_bucket(s3_endpoint, None)


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Configure:
    """Makes a catalog the configured one, as users do; gives what opens it."""

    def configured(**properties: str) -> Open:
        for name, text in properties.items():
            variable = name.upper().replace(".", "__").replace("-", "_")
            monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{variable}", text)
        return lambda: open_catalog(tmp_path / "unused")

    return configured
