"""A database that can't be asked while the catalog opens is an outage, and is never taken for an answer."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from examples.lake.fault_proxy import TcpProxy, tcp_proxy
from examples.lake.postgres import USER, Postgres
from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from tests.catalogs.conftest import Configure, Open
from tests.table.stores import COMPACTED, TOPIC, new_id, store_over

QUESTIONS = (b"FROM iceberg_tables", b"FROM iceberg_namespace_properties", b"SELECT iceberg_type")
V0 = (
    "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255), table_namespace VARCHAR(255), table_name VARCHAR(255), "
    "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000))",
    "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255), namespace VARCHAR(255), "
    "property_key VARCHAR(255), property_value VARCHAR(1000))",
)


@pytest.fixture
def proxy(database: Postgres) -> Iterator[TcpProxy]:
    with tcp_proxy(database.port) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"db{new_id()}"


@pytest.fixture
def opened(tmp_path: Path, configure: Configure, database: Postgres, proxy: TcpProxy, name: str) -> Open:
    """Opens a catalog with a topic."""
    database.create(name)
    made = configure(uri=database.uri(name, proxy.port), warehouse=f"file://{tmp_path / 'lake'}")
    store_over(made()).create_topic(TOPIC, 1, COMPACTED)
    return made


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_lost_answer_is_an_outage(opened: Open, proxy: TcpProxy, question: bytes) -> None:
    proxy.lose_answer_to = lambda sent: question in sent
    with pytest.raises(StorageUnavailable, match=r"can't be opened: .*check that it exists and can be reached"):
        opened()
    assert proxy.lost == 1
    proxy.lose_answer_to = None
    assert store_over(opened()).topics() == [TOPIC]


def test_a_database_that_holds_a_lock_is_given_up_while_the_catalog_opens(
    opened: Open, database: Postgres, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.table.waiting.database_answers.DATABASE_SECONDS", 1.0)
    address = {"host": "127.0.0.1", "port": database.port, "user": USER, "dbname": name}
    begun = time.monotonic()
    with closing(psycopg2.connect(**address)) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE iceberg_tables")
        with pytest.raises(StorageUnavailable, match="the database did not answer within 1 s"):
            opened()
    assert time.monotonic() - begun < 25


def test_a_catalog_of_before_there_were_views_is_known_as_one(
    tmp_path: Path, configure: Configure, database: Postgres, name: str
) -> None:
    database.create(name)
    address = {"host": "127.0.0.1", "port": database.port, "user": USER, "dbname": name}
    with closing(psycopg2.connect(**address)) as session, session, session.cursor() as cursor:
        for statement in V0:
            cursor.execute(statement)
    catalog = configure(uri=database.uri(name), warehouse=f"file://{tmp_path / 'lake'}")()
    assert isinstance(catalog, SqlCatalog)
    assert catalog._schema_version == "v0"
    store = store_over(catalog)
    store.create_topic(TOPIC, 1, COMPACTED)
    assert store.topics() == [TOPIC]


def test_so_is_one_in_sqlite(tmp_path: Path, configure: Configure) -> None:
    file = tmp_path / "rows.db"
    with closing(sqlite3.connect(file)) as session, session:
        for statement in V0:
            session.execute(statement)
    catalog = configure(uri=f"sqlite:///{file}", warehouse=f"file://{tmp_path / 'lake'}")()
    assert isinstance(catalog, SqlCatalog)
    assert catalog._schema_version == "v0"


def test_a_file_that_another_program_has_locked_is_an_outage(tmp_path: Path, configure: Configure) -> None:
    file = tmp_path / "rows.db"
    opened = configure(uri=f"sqlite:///{file}?timeout=0.2", warehouse=f"file://{tmp_path / 'lake'}")
    store_over(opened()).create_topic(TOPIC, 1, COMPACTED)
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageUnavailable, match="locked"):
            opened()
    assert store_over(open_catalog(tmp_path)).topics() == [TOPIC]
