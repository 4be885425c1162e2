"""A table whose location another program gave a slash at its end is where it was, for appends, purges and lookers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update import SetLocationUpdate

from keptlog.passes.holders import look_for_holders
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.metadata.plain_location import plain_location
from keptlog.table.namespaces import CATALOG_NAME, NAMESPACE
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket
from tests.table.rest_server import rest_server
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, store_over, values

DAY_MS = 86_400_000


def of_pyiceberg(database: Path, warehouse: str, **properties: str) -> SqlCatalog:
    return SqlCatalog(CATALOG_NAME, uri=f"sqlite:///{database}", warehouse=warehouse, **properties)


@pytest.fixture(params=["home", "bucket", "rest"])
def two(
    request: pytest.FixtureRequest, tmp_path: Path, bucket: ABucket, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Catalog, SqlCatalog]]:
    """A catalog as keptlog opens it, and PyIceberg's own over the same rows."""
    if request.param == "home":
        home = open_catalog(tmp_path)
        home.create_namespace(NAMESPACE)
        yield home, of_pyiceberg(tmp_path / DATABASE, f"file://{tmp_path}/warehouse")
        return
    is_rest = request.param == "rest"
    warehouse = f"file://{tmp_path}/lake" if is_rest else f"s3://{bucket.name}/lake"
    other = of_pyiceberg(tmp_path / "rows.db", warehouse, **dict(bucket.properties))
    if not is_rest:
        settings = {"uri": f"sqlite:///{tmp_path}/rows.db", "warehouse": warehouse, **dict(bucket.properties)}
        for name, text in settings.items():
            variable = name.upper().replace(".", "__").replace("-", "_")
            monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{variable}", text)
        yield open_catalog(tmp_path), other
        return
    with rest_server(other) as server:
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
        yield open_catalog(tmp_path), other


@pytest.fixture
def store(two: tuple[Catalog, SqlCatalog]) -> LogStore:
    """With a topic that has a record, and whose location has a slash at its end."""
    catalog, other = two
    store = store_over(catalog)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    table = other.load_table((NAMESPACE, TOPIC))
    other.commit_table(table, (), (SetLocationUpdate(location=f"{table.location()}/"),))
    assert other.load_table((NAMESPACE, TOPIC)).location().endswith("/")
    return store


def test_what_is_appended_lies_in_the_same_folder_and_the_slash_is_gone(
    store: LogStore, two: tuple[Catalog, SqlCatalog]
) -> None:
    append_each(store, [("b", "2")])
    assert [value for _, _, value in values(store)] == [b"1", b"2"]
    location = two[0].load_table((NAMESPACE, TOPIC)).location()
    paths = [each.path for each in store.files.list(location)]
    assert not [path for path in paths if "//" in path.partition("://")[2].lstrip("/")]
    segments = [path for path in paths if path.startswith(f"{location}/data/") and path.endswith(".parquet")]
    assert len(segments) == 2
    is_own = "rest" not in type(two[0]).__name__.lower()  # a server makes its metadata itself
    assert two[1].load_table((NAMESPACE, TOPIC)).location().endswith("/") != is_own


def test_its_folder_is_its_own_for_a_purge_and_for_who_looks_for_holders(store: LogStore) -> None:
    assert look_for_holders(store, TOPIC, NOW_MS + DAY_MS).unread == ()
    orphan = f"{store.load_table(TOPIC).location()}/data/partition=0/orphan.parquet"
    store.files.write_bytes(orphan, b"value")
    store.purge(TOPIC, NOW_MS * 2, 0)
    assert orphan not in [each.path for each in store.files.list(store.load_table(TOPIC).location())]
    assert [value for _, _, value in values(store)] == [b"1"]


@pytest.mark.parametrize(
    ("location", "plain"),
    [("s3://b/t/", "s3://b/t"), ("s3://b/t//", "s3://b/t"), ("/t/", "/t"), ("/", "/"), ("file:///", "file:///")],
)
def test_the_root_of_a_disk_stays_what_it_is(location: str, plain: str) -> None:
    assert plain_location(location) == plain
