"""What ``keptlog topic register`` does where one of several can't be registered, or what is named can't be kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
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


def test_where_nobody_can_tell_the_newest_state_of_the_receipts_topics_wait_for_it(keptlog: Run, home: Path) -> None:
    """They were registered, the next purge began a new chain, and no later registration took in the one before."""
    for topic in ("gone", "users"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    assert keptlog("topic", "delete", "gone", "--yes").code == 0
    newest = max((home / "warehouse/keptlog_receipts/chain/metadata").glob("*.metadata.json"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:200])
    (home / "catalog.db").unlink()
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert "users: no topic is registered before the chain of receipts is, as the next purge would begin" in refused.err
    assert f"move file://{newest.parent} elsewhere" in refused.err
    assert open_home().store.topics() == []
    newest.write_bytes(whole)
    assert keptlog("topic", "register", "users", "--yes").code == 0
    assert "1 receipt, number 1" in keptlog("receipt", "verify").out


def test_topics_go_on_where_the_catalog_names_receipts_that_are_damaged_for_no_purge_begins_a_new_chain(
    keptlog: Run, home: Path
) -> None:
    old = home.parent / "old.db"
    for topic in ("gone", "users"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    assert keptlog("topic", "delete", "gone", "--yes").code == 0
    old.write_bytes((home / "catalog.db").read_bytes())
    open_home().append("users", [NewRecord(b"ann", b"1", 1)])
    (home / "catalog.db").write_bytes(old.read_bytes())
    max((home / "warehouse/keptlog_receipts/chain/metadata").glob("*.metadata.json")).write_bytes(b"{")
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert [each["subject"] for each in told.json["errors"]] == ["the chain of receipts"]
    assert [each["key"] for each in keptlog("read", "users").json_lines] == ["ann"]


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


def test_of_a_topic_that_was_deleted_after_its_catalog_was_backed_up_the_next_step_is_told_and_helps(
    keptlog: Run, home: Path
) -> None:
    open_home().store.create_topic("gone", 1, COMPACTED)
    old = (home / "catalog.db").read_bytes()
    assert keptlog("topic", "delete", "gone", "--yes").code == 0
    (home / "catalog.db").write_bytes(old)
    refused = keptlog("topic", "register", "gone", "--yes")
    assert refused.code == 1
    assert "catalog.drop_table(('keptlog', 'gone')) takes it out of the catalog" in refused.err
    assert "keptlog receipt list --topic=gone tells whether it was" in refused.err
    assert "gone" in keptlog("receipt", "list", "--topic=gone").out
    open_catalog(home).drop_table(("keptlog", "gone"))
    assert keptlog("doctor").code == 0
