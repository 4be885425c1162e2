"""Receipts come back with the topics, however old the catalog is that was put back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
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
    assert f"the catalog's {newest.name} does not lead to the newest one" in told.err
    aside.rename(newest)
    require_sound(chain_at(users))
