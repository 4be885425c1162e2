"""Several processes may begin with a new database at once; each of them opens the catalog in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.schema import CreateTable

from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog

TABLES = {each.__tablename__: each.__table__ for each in (IcebergTables, IcebergNamespaceProperties)}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is not there yet, configured as the catalog."""
    path = tmp_path / "shared.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{path}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'warehouse'}")
    return path


@pytest.fixture
def others(database: Path) -> Iterator[set[str]]:
    """Tables that another process makes right before this one does."""
    names: set[str] = set()

    def make_first(_: Connection, _cursor: object, statement: str, *_rest: object) -> None:
        for name in [each for each in names if statement.lstrip().startswith(f"CREATE TABLE {each} ")]:
            names.discard(name)
            with sqlite3.connect(database) as other:
                other.execute(str(CreateTable(TABLES[name]).compile(create_engine("sqlite://"))))  # type: ignore[arg-type]

    event.listen(Engine, "before_cursor_execute", make_first)
    yield names
    event.remove(Engine, "before_cursor_execute", make_first)


@pytest.mark.parametrize("made", [{"iceberg_tables"}, {"iceberg_namespace_properties"}, set(TABLES)])
def test_who_finds_the_tables_made_in_between_goes_on(others: set[str], tmp_path: Path, made: set[str]) -> None:
    others |= made
    catalog = open_catalog(tmp_path)
    assert not others
    assert catalog.list_namespaces() == []


def test_a_database_that_can_not_be_opened_is_told_as_before(database: Path, tmp_path: Path) -> None:
    database.mkdir()
    with pytest.raises(StorageUnavailable, match="can't be opened"):
        open_catalog(tmp_path)
