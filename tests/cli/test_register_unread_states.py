"""Where no state of a topic can be read, ``keptlog topic register`` says why, and what helps against that."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.io.metadata_checksums import without_checksum
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED, NOW_MS


@pytest.fixture
def states(home: Path) -> list[Path]:
    """The metadata files of a topic, oldest first."""
    store = open_home().store
    store.create_topic("users", 1, COMPACTED)
    store.alter_topic("users", {"segment.ms": "1"})
    return sorted((home / "warehouse/keptlog/users/metadata").glob("*.metadata.json"))


def _raise_format(*files: Path) -> None:
    """As another program leaves them, that knows a newer version of Iceberg's format."""
    for each in files:
        content = without_checksum(str(each), each.read_bytes())
        raised = content.replace(b'"format-version":2', b'"format-version":9')
        assert raised != content
        each.write_bytes(raised)


def test_a_table_of_a_newer_format_is_told_as_that_and_not_as_lost(keptlog: Run, states: list[Path]) -> None:
    _raise_format(*states)
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "version 9 of Iceberg's format" in refused.err
    assert "use a keptlog that reads it" in refused.err
    assert "drop_table" not in refused.err


def test_one_whose_newest_state_is_of_a_newer_format_is_told_so(keptlog: Run, states: list[Path]) -> None:
    _raise_format(states[-1])
    told = keptlog("topic", "register", "users", "--yes", "--json")
    assert told.code == 1
    assert "version 9 of Iceberg's format" in told.json["errors"][0]["message"]
    assert told.json["errors"][0]["action"] == "fix_config"


def test_a_state_that_somebody_names_and_that_cannot_be_read_is_told_with_its_reason(
    keptlog: Run, states: list[Path]
) -> None:
    _raise_format(states[-1])
    refused = keptlog("topic", "register", "users", "--metadata", states[-1].name, "--yes")
    assert refused.code == 1
    assert "version 9 of Iceberg's format" in refused.err


def test_a_lost_catalog_does_not_say_there_is_no_topic_where_its_files_cannot_be_read(
    keptlog: Run, home: Path, states: list[Path]
) -> None:
    (home / "catalog.db").unlink()
    for each in states:
        each.write_bytes(each.read_bytes()[:100])
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert f"{states[-1]} does not have the checksum" in refused.err
    assert "put the file back from a copy" in refused.err


@pytest.mark.parametrize("place", [0, -6], ids=["first bytes", "checksum"])
@pytest.mark.parametrize("is_known", [True, False])
def test_one_that_another_engine_has_packed_is_damaged_and_not_out_of_reach(
    keptlog: Run, home: Path, states: list[Path], place: int, is_known: bool
) -> None:
    content = bytearray(gzip.compress(without_checksum(str(states[-1]), states[-1].read_bytes())))
    content[place] ^= 1
    packed = states[-1].with_name(states[-1].name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(content)
    for each in states:
        each.unlink()
    with closing(sqlite3.connect(home / "catalog.db")) as database, database:
        if is_known:
            database.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{packed}",))
        else:
            database.execute("DELETE FROM iceberg_tables")
    error = keptlog("topic", "register", "users", "--yes", "--json").json["errors"][0]
    assert (error["kind"], error["action"]) == ("LogCorrupt", "fix_data")
    assert f"{packed} is damaged (BadGzipFile: " in error["message"]


def test_receipts_of_a_newer_format_are_not_to_be_moved_away(keptlog: Run, home: Path, states: list[Path]) -> None:
    open_home().store.create_topic("carts", 1, COMPACTED)
    open_home().store.delete_topic("carts", NOW_MS)
    _raise_format(*(home / "warehouse/keptlog_receipts/chain/metadata").glob("*.metadata.json"))
    (home / "catalog.db").unlink()
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert "the chain of receipts: another program has raised its table to version 9 of Iceberg's format" in refused.err
    assert "users: no topic is registered before the chain of receipts is" in refused.err
    assert "elsewhere" not in refused.err
