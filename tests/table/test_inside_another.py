"""A topic whose table was set into another topic's folder: nothing is written there, for it would go with the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.removal.own_folder import require_not_inside
from tests.table.foreign import set_location, set_properties, table_of
from tests.table.stores import TOPIC, FaultyCatalog, create

_COMPACTED = {"cleanup.policy": "compact"}
NOW_MS = 1_900_000_000_000


@pytest.mark.parametrize("below", ["", "inner"])
def test_nothing_is_written_there(tmp_path: Path, below: str) -> None:
    home = open_home(tmp_path / "home", {})
    for name in ("odd", "users"):
        home.create_topic(name, 1, _COMPACTED)
        home.append(name, [NewRecord(b"k", b"v", NOW_MS, 0)], now_ms=NOW_MS)
    folder = home.path / "warehouse/keptlog/users"
    set_location(home.path, folder / below, "odd")
    before = {path for path in folder.rglob("*") if path.is_file()}

    with pytest.raises(
        LogCorrupt, match=r"topic odd: its folder .* lies in that of topic users, .* nothing is written"
    ):
        home.append("odd", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS)
    with pytest.raises(LogCorrupt, match="lies in that of topic users"):
        home.alter_topic("odd", {"segment.ms": "7"})

    assert {path for path in folder.rglob("*") if path.is_file()} == before
    assert [record.value for _, record in home.read("odd")] == [b"v"]
    home.append("users", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS)
    set_location(home.path, home.path / "warehouse/keptlog/odd", "odd")
    assert home.append("odd", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS).records == 1


def test_a_catalog_that_is_no_database_is_asked_for_topics_that_the_folder_may_be_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = create(tmp_path)
    store.create_topic("odd", 1, {})
    store.create_topic("others", 1, {})
    set_location(tmp_path, tmp_path / "warehouse/keptlog" / TOPIC / "inner", "odd")
    server = FaultyCatalog(open_catalog(tmp_path))
    asked: list[str] = []
    server.list_tables = server.real.list_tables  # type: ignore[method-assign]

    def load_table(identifier: tuple[str, ...]) -> Table:
        asked.append(identifier[-1])
        return server.real.load_table(identifier)

    monkeypatch.setattr(server, "load_table", load_table)

    with pytest.raises(LogCorrupt, match=f"lies in that of topic {TOPIC}"):
        require_not_inside(server, table_of(tmp_path, "odd"))
    assert asked == [TOPIC]


def test_a_table_that_was_set_to_a_folder_of_its_own_is_written_to(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", {})
    for name in ("odd", "users"):
        home.create_topic(name, 1, _COMPACTED)
    set_location(home.path, home.path / "warehouse/keptlog/users-2", "odd")
    assert home.append("odd", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS).records == 1


def test_so_is_one_beside_a_topic_that_has_its_metadata_in_the_warehouse_itself(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", {})
    for name in ("odd", "users"):
        home.create_topic(name, 1, _COMPACTED)
    set_properties(home.path, {"write.metadata.path": f"file://{home.path}/warehouse/metadata"}, "users")
    home.append("users", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS)
    assert table_of(home.path, "users").metadata_location.startswith(f"file://{home.path}/warehouse/metadata/")
    set_location(home.path, home.path / "warehouse/keptlog/odd-2", "odd")
    assert home.append("odd", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS).records == 1


def test_a_database_that_does_not_tell_the_others_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = open_home(tmp_path / "home", {})
    home.create_topic("odd", 1, _COMPACTED)
    set_location(home.path, home.path / "warehouse/keptlog/odd-2", "odd")

    def lost(*_arguments: object) -> dict[str, str]:
        raise OperationalError("SELECT 1", None, Exception("server closed the connection"))

    monkeypatch.setattr("keptlog.table.catalogs.catalog.metadata_locations", lost)
    with pytest.raises(StorageUnavailable, match="topic odd can't be read"):
        home.append("odd", [NewRecord(b"k", b"w", NOW_MS, 0)], now_ms=NOW_MS)
