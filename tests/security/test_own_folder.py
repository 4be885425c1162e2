"""A topic whose table says that it lies where others lie: nothing is swept there, and nothing is deleted with it."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt
from keptlog.home import Home, open_home
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.removal.erasure_register import read_erasures
from tests.table.foreign import set_location

NOW_MS = 1_900_000_000_000
COMPACTED = {"cleanup.policy": "compact"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two topics, and a home that has signed a receipt."""
    opened = open_home(tmp_path / "home", {})
    for name in ("users", "orders", "gone"):
        opened.create_topic(name, 1, COMPACTED)
        opened.append(name, [NewRecord(b"k", b"v", NOW_MS, 0)], now_ms=NOW_MS)
    opened.delete_topic("gone")
    return opened


def move(home: Home, folder: Path) -> None:
    set_location(home.path, folder, "users")


def files_of(home: Home) -> set[Path]:
    """All that is no topic's own metadata."""
    return {each for each in home.path.rglob("*") if each.is_file() and "users" not in each.parts}


@pytest.mark.parametrize("where", ["warehouse/keptlog", "warehouse", ".", ".."])
def test_neither_a_purge_nor_a_deletion_touches_what_lies_around(home: Home, where: str) -> None:
    move(home, (home.path / where).resolve())
    before = {path for path in files_of(home) if "metadata" not in path.parts or "orders" in path.parts}

    with pytest.raises(LogCorrupt, match=r"topic users: its folder file://.* nothing was deleted") as refused:
        home.store.purge("users", NOW_MS)
    with pytest.raises(LogCorrupt, match="nothing was deleted"):
        home.delete_topic("users")

    assert "\n" not in str(refused.value)
    assert before <= files_of(home)
    assert [record.value for _, record in home.read("orders")] == [b"v"]


@pytest.mark.parametrize("appends", [0, 1, 30])
def test_neither_a_purge_nor_a_deletion_touches_a_folder_that_the_table_was_set_to_later(
    home: Home, tmp_path: Path, appends: int
) -> None:
    """It is a folder of some other program's, in which no table lies that anybody could tell it by."""
    foreign = [tmp_path / "photos" / name for name in ("1.jpg", "data/partition=0/export.parquet", "metadata/x.avro")]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("nobody has another")
    move(home, tmp_path / "photos")
    for number in range(appends):
        home.append("users", [NewRecord(b"k", b"%d" % number, NOW_MS, 0)], now_ms=NOW_MS)

    with pytest.raises(LogCorrupt, match=r"topic users: its folder .*photos is not where .* nothing was deleted"):
        home.store.purge("users", NOW_MS)
    with pytest.raises(LogCorrupt, match="nothing was deleted"):
        home.delete_topic("users")

    assert all(path.exists() for path in foreign)
    assert next(record.value for _, record in home.read("users")) == b"v"


def planted(home: Home, name: str, value: object) -> None:
    """A property of ``users`` as another program can set it."""
    table = open_catalog(home.path).load_table(("keptlog", "users"))
    table.transaction().set_properties({name: json.dumps(value)}).commit_transaction()


def test_a_register_that_a_property_names_elsewhere_is_refused(home: Home) -> None:
    precious = home.path / "precious.json"
    precious.write_text('{"erasures": []}')
    crc32 = zlib.crc32(precious.read_bytes())
    planted(home, "log.erasures", {"file": "../../../../../../precious.json", "crc32": crc32})

    with pytest.raises(LogCorrupt, match="is no name of a file"):
        read_erasures(home.store.files, home.store.load_table("users"))


@pytest.mark.parametrize(("name", "reader_id"), [("search", "../../../../../.."), ("..", "4f"), ("a/../../..", "4f")])
def test_a_reader_whose_registration_leads_elsewhere_is_refused(home: Home, name: str, reader_id: str) -> None:
    before = files_of(home)
    planted(home, f"log.reader.{name}", {"id": reader_id, "hold_max_ms": 1, "added_ms": 1})

    with pytest.raises((LogCorrupt, InvalidConfig)):
        home.readers.commit("users", name, {0: 1})

    assert files_of(home) >= before


@pytest.mark.parametrize("name", ["..", "a/../../.."])
def test_a_reader_whose_name_leads_elsewhere_is_not_removed(home: Home, name: str) -> None:
    before = files_of(home)
    planted(home, f"log.reader.{name}", {"id": "4f", "hold_max_ms": 1, "added_ms": 1})

    with pytest.raises((LogCorrupt, InvalidConfig)):
        home.readers.remove("users", name)

    assert files_of(home) >= before


def test_a_reader_whose_registration_leads_elsewhere_is_removed_and_nothing_there(home: Home) -> None:
    home.readers.add("users", "search", now_ms=1)
    before = files_of(home)
    planted(home, "log.reader.search", {"id": "../../../../../..", "hold_max_ms": 1, "added_ms": 1})

    home.readers.remove("users", "search")

    assert "log.reader.search" not in home.store.load_table("users").properties
    assert files_of(home) >= before
