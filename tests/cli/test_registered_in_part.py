"""What ``keptlog topic register`` does where one of several can't be registered, or what is named can't be kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.catalogs.embedded_catalog import begin_anew
from keptlog.table.registrar import Registrar
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED

_REFUSES_RECEIPTS = (
    "CREATE TRIGGER refuses_receipts BEFORE INSERT ON iceberg_tables WHEN NEW.table_namespace = 'keptlog_receipts' "
    "BEGIN SELECT abs(-9223372036854775807 - 1); END"
)
"""An overflow, which is an operational error as a lock is."""


def test_where_receipts_can_t_be_registered_topics_are_not_for_a_purge_would_begin_a_new_chain(
    keptlog: Run, home: Path
) -> None:
    for topic in ("gone", "users"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    assert keptlog("topic", "delete", "gone", "--yes").code == 0
    (home / "catalog.db").unlink()
    begin_anew(home)
    registrar = Registrar(open_home().store)
    found = registrar.propose_all(["users"])
    assert found.receipts
    with closing(sqlite3.connect(home / "catalog.db")) as catalog, catalog:
        catalog.execute(_REFUSES_RECEIPTS)
    failed = registrar.register_all(found.proposals)
    assert list(failed) == ["the chain of receipts", "users"]
    assert open_home().store.topics() == []
    with closing(sqlite3.connect(home / "catalog.db")) as catalog, catalog:
        catalog.execute("DROP TRIGGER refuses_receipts")
    assert registrar.register_all(found.proposals) == {}
    assert "1 receipt, number 1" in keptlog("receipt", "verify").out


def test_a_state_that_the_catalog_names_from_where_one_stands_is_named_whole(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_home().store.create_topic("users", 1, COMPACTED)
    [newest] = (home / "warehouse/keptlog/users/metadata").glob("*.metadata.json")
    with closing(sqlite3.connect(home / "catalog.db")) as catalog, catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (str(newest.relative_to(home)),))
    monkeypatch.chdir(home)
    told = keptlog("topic", "register", "users", "--yes")
    assert told.code == 0
    relative = newest.relative_to(home)
    assert f"the catalog names {relative}, and would name file://{newest} of " in told.out
    monkeypatch.chdir(home.parent)
    assert keptlog("topic", "describe", "users").code == 0
