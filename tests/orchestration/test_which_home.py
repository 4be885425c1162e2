"""Dagster tells homes apart by more than their paths: on two machines, or in two containers, these may be the same."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from keptlog.dagster.resources.log_store import LogStoreResource, _opened
from keptlog.table.catalogs import home_location
from keptlog.table.catalogs.embedded import DATABASE
from tests.orchestration.conftest import COMPACT
from tests.table.stores import forget_id


def which(home: Path, *topics: str) -> str | None:
    """As a new process has it."""
    _opened.clear()
    return LogStoreResource(home=str(home), topics=list(topics)).which()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return made(tmp_path / "home")


def made(home: Path, topic: str = "users") -> Path:
    _opened.clear()
    LogStoreResource(home=str(home)).store.create_topic(topic, 1, COMPACT)
    return home


def test_a_home_is_the_same_for_every_process_and_through_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    assert which(home) == which(home) == which(tmp_path / "link")


def test_another_home_at_its_path_is_another(home: Path, tmp_path: Path) -> None:
    before = which(home)
    home.rename(tmp_path / "aside")
    assert which(made(home)) != before


def test_a_copy_of_it_is_another(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy")
    assert which(tmp_path / "copy") != which(home)


def test_some_topics_of_it_are_others_than_all(home: Path) -> None:
    assert len({which(home), which(home, "users"), which(home, "orders")}) == 3


def test_an_older_home_is_the_same_before_and_after_it_gets_its_id(home: Path) -> None:
    forget_id(home)
    before = which(home)
    made(home, "orders")
    assert before is not None
    assert has_id(home)
    assert which(home) == before


def test_an_older_home_at_its_path_is_another(home: Path, tmp_path: Path) -> None:
    forget_id(home)
    before = which(home)
    home.rename(tmp_path / "aside")
    forget_id(made(home))
    assert which(home) not in {None, before}


def test_a_home_whose_catalog_is_locked_is_what_it_was_and_none_before_it_was_read(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, resource = which(home), LogStoreResource(home=str(home))
    monkeypatch.setattr(home_location, "which_home", locked)
    assert (resource.which(), which(home)) == (before, None)


def has_id(home: Path) -> bool:
    with sqlite3.connect(home / DATABASE) as connection:
        query = "select count(*) from iceberg_namespace_properties where property_key = ?"
        return bool(connection.execute(query, (home_location.HOME_ID,)).fetchone()[0])


def locked(home: Path) -> str:
    raise sqlite3.OperationalError(f"{home}: database is locked")
