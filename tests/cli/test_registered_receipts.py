"""Receipts come back with the topics, however old the catalog is that was put back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.chain.receipt_files import LENGTH
from keptlog.table.metadata.partitions import PARTITIONS
from keptlog.table.metadata.state import log_end_offset, uncleanable
from tests.cli.conftest import Run
from tests.table.receipt_chains import chain_at, draft, ids, require_sound
from tests.table.stores import COMPACTED

MORE_THAN_ARE_KEPT = 25
"""Commits: a table deletes the metadata file of the twentieth before."""


@pytest.fixture
def users(home: Path) -> Path:
    """A home with a topic, and a receipt."""
    open_home().create_topic("users", config=COMPACTED)
    chain_at(home).append([draft(0)])
    return home


def test_a_catalog_that_is_older_than_the_chain_has_files_of_takes_in_the_receipts_too(
    users: Path, keptlog: Run
) -> None:
    """Topics were taken in, and no receipt was sealed or read any more."""
    old = users.parent / "old.db"
    shutil.copy(users / "catalog.db", old)
    for number in range(1, MORE_THAN_ARE_KEPT):
        chain_at(users).append([draft(number)])
        open_home().append("users", [NewRecord(b"%d" % number, b"1", 1)])
    shutil.copy(old, users / "catalog.db")
    assert keptlog("receipt", "verify").code == 1
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert told.code == 0
    assert told.json["receipts"]["ends"] == [{"name": "chain", "before": None, "after": MORE_THAN_ARE_KEPT}]
    require_sound(chain_at(users))
    assert len(keptlog("read", "users").json_lines) == MORE_THAN_ARE_KEPT - 1
    chain_at(users).append([draft("since")])
    assert len(ids(chain_at(users))) == MORE_THAN_ARE_KEPT + 1


def test_a_chain_whose_newest_state_is_gone_is_not_taken_back_to_an_older_one(users: Path, keptlog: Run) -> None:
    chain_at(users).append([draft(1)])
    newest = max((users / "warehouse/keptlog_receipts/chain/metadata").glob("*.metadata.json"))
    aside = newest.rename(users.parent / newest.name)
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert told.code == 1
    assert told.json["receipts"] is None
    assert f"the catalog's {newest.name} is gone, and is newer than all that is left of it: file://" in told.err
    aside.rename(newest)
    require_sound(chain_at(users))


@pytest.mark.parametrize("table", ["keptlog_receipts/chain", "keptlog/users"])
def test_a_newest_state_that_the_catalog_names_and_that_is_damaged_is_no_news_of_none(
    users: Path, keptlog: Run, table: str
) -> None:
    """It was read as a file, and not as a table: the catalog names the newest state already, it said."""
    chain_at(users).append([draft(1)])
    open_home().append("users", [NewRecord(b"ada", b"1", 1)])
    open_home().append("users", [NewRecord(b"bob", b"1", 1)])
    newest = max((users / "warehouse" / table / "metadata").glob("*.metadata.json"))
    state = json.loads(newest.read_text())
    newest.write_text(json.dumps(state | {"current-snapshot-id": state["snapshots"][0]["snapshot-id"]}))
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert told.code == 1
    assert f"{newest} is damaged (ValueError: main is at snapshot" in told.json["errors"][0]["message"]


@pytest.mark.parametrize(("table", "name"), [("keptlog_receipts.chain", LENGTH), ("keptlog.users", log_end_offset(0))])
def test_a_newest_state_with_a_damaged_property_is_told_and_an_earlier_one_of_the_topic_can_be_named(
    users: Path, keptlog: Run, table: str, name: str
) -> None:
    """What the damaged one says of offsets was asked for the answer, and kept the earlier one from being taken."""
    open_home().append("users", [NewRecord(b"ada", b"1", 1)])
    with open_home().store.committer.catalog.load_table(table).transaction() as change:
        change.set_properties({name: "x"})
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert told.code == 1
    assert f"{name}=" in told.json["errors"][0]["message"]
    if table == "keptlog.users":
        [earlier] = (users / "warehouse/keptlog/users/metadata").glob("00001-*.metadata.json")
        told = keptlog("topic", "register", "users", "--yes", "--json", "--metadata", earlier.name)
        assert told.code == 0
        assert told.json["topics"]["users"]["ends"] == [{"name": "users-0", "before": None, "after": 1}]
        assert len(keptlog("read", "users").json_lines) == 1


def test_an_earlier_state_loses_what_the_newest_one_has_also_where_a_note_of_that_is_damaged(
    users: Path, keptlog: Run
) -> None:
    """It keeps the log from being read, and not its end."""
    for key in (b"ada", b"bob"):
        open_home().append("users", [NewRecord(key, b"1", 1)])
    with open_home().store.committer.catalog.load_table("keptlog.users").transaction() as change:
        change.set_properties({uncleanable(0): "x"})
    [earlier] = (users / "warehouse/keptlog/users/metadata").glob("00001-*.metadata.json")
    told = keptlog("topic", "register", "users", "--dry-run", "--metadata", earlier.name)
    assert "users-0: would end at offset 1, not 2: what lies between is LOST" in told.out


@pytest.mark.parametrize("count", ["2", "1", "x"], ids=["right", "too low", "no number"])
def test_an_earlier_state_with_fewer_partitions_loses_the_other_logs(users: Path, keptlog: Run, count: str) -> None:
    """Also where the number of the newest state is damaged: each log's end stands for itself."""
    open_home().append("users", [NewRecord(b"ada", b"1", 1)])
    file = users.parent / "topics.yaml"
    file.write_text("topics:\n  users:\n    partitions: 2\n")
    assert keptlog("topic", "apply", str(file), "--yes").code == 0
    open_home().append("users", [NewRecord(b"bob", b"1", 1, 1)])
    with open_home().store.committer.catalog.load_table("keptlog.users").transaction() as change:
        change.set_properties({PARTITIONS: count})
    [earlier] = (users / "warehouse/keptlog/users/metadata").glob("00001-*.metadata.json")
    told = keptlog("topic", "register", "users", "--dry-run", "--metadata", earlier.name)
    assert "users-1: would end at offset 0, not 1: what lies between is LOST" in told.out


def test_a_newest_state_with_a_damaged_note_is_taken_in_where_the_catalog_has_none_and_then_repaired(
    users: Path, keptlog: Run
) -> None:
    """It was refused with the advice to repair the topic, which only one that the catalog names can be."""
    open_home().append("users", [NewRecord(b"ada", b"1", 1)])
    with open_home().store.committer.catalog.load_table("keptlog.users").transaction() as change:
        change.set_properties({uncleanable(0): "x"})
    (users / "catalog.db").unlink()
    told = keptlog("topic", "register", "users", "--new-catalog", "--yes", "--json")
    assert told.code == 0
    assert told.json["topics"]["users"]["ends"] == [{"name": "users-0", "before": None, "after": 1}]
    assert keptlog("repair", "users").code == 0
    assert len(keptlog("read", "users").json_lines) == 1
