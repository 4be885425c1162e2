"""A configured catalog that would be another one in each working directory is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog

BY_TYPE = ("TYPE", "sql")
BY_CLASS = ("PY_CATALOG_IMPL", "pyiceberg.catalog.sql.SqlCatalog")


@pytest.mark.parametrize("warehouse", ["lake", "file:lake", "file://lake"])
def test_a_warehouse_that_depends_on_the_working_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", warehouse)
    with pytest.raises(InvalidConfig, match=f"warehouse {warehouse} is another folder in each working directory: give"):
        open_catalog(tmp_path)


@pytest.mark.parametrize("named", [BY_TYPE, BY_CLASS])
@pytest.mark.parametrize(
    ("uri", "whole"),
    [
        ("sqlite:///catalog.db", "{}/catalog.db"),
        ("sqlite+pysqlite:///./lake/catalog.db?timeout=30", "{}/lake/catalog.db"),
        ("sqlite:///file:catalog.db?mode=rwc&uri=true", "file:{}/catalog.db"),
        ("sqlite:///file:/lake/catalog.db", "{}/file:/lake/catalog.db"),
    ],
)
def test_a_database_that_depends_on_the_working_directory_is_refused_with_the_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, str], uri: str, whole: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{named[0]}", named[1])
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", uri)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    told = (
        f"is another file in each working directory: give the whole path, such as sqlite:///{whole.format(tmp_path)},"
    )
    with pytest.raises(InvalidConfig, match=re.escape(told)):
        open_catalog(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", [BY_TYPE, BY_CLASS])
@pytest.mark.parametrize("uri", ["sqlite:///{}/c.db?timeout=3", "sqlite:///file:{}/c.db?uri=true", "sqlite:///{}/a b"])
def test_a_database_with_a_whole_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, str], uri: str
) -> None:
    monkeypatch.setenv(f"PYICEBERG_CATALOG__KEPTLOG__{named[0]}", named[1])
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", uri.format(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    assert open_catalog(tmp_path).list_namespaces() == []


@pytest.mark.parametrize("host", ["[x", "[::1]", "x"])
def test_a_database_on_a_host_is_refused_as_sqlite_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///file://{host}{tmp_path}/c.db?uri=true")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")
    with pytest.raises(StorageUnavailable, match=re.escape(f"invalid uri authority: {host}")):
        open_catalog(tmp_path)


def test_the_warehouse_of_a_catalog_that_is_named_by_its_class_is_to_be_whole_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__PY_CATALOG_IMPL", BY_CLASS[1])
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", "lake")
    with pytest.raises(InvalidConfig, match="warehouse lake is another folder in each working directory: give"):
        open_catalog(tmp_path)
