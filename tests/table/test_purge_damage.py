"""What is broken costs itself: snapshots that nobody needs expire, and journals that say nothing are set aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.errors import LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, stored_paths
from tests.table.stores import TOPIC, append_each, create, store_at, values

Damage = Callable[[Path], object]
DAMAGES: dict[str, Damage] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
}


@pytest.fixture(params=DAMAGES)
def damage(request: pytest.FixtureRequest) -> Damage:
    return DAMAGES[request.param]


def table_of(home: Path) -> Table:
    return open_catalog(home).load_table(("keptlog", TOPIC))


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def list_of(table: Table, index: int) -> Path:
    return local(table.metadata.snapshots[index].manifest_list)


def manifest_of(table: Table, index: int) -> Path:
    """The manifest that a snapshot brought."""
    snapshot = table.metadata.snapshots[index]
    [path] = [
        each.manifest_path for each in snapshot.manifests(table.io) if each.added_snapshot_id == snapshot.snapshot_id
    ]
    return local(path)


def test_a_snapshot_whose_manifest_list_is_damaged_can_be_expired(tmp_path: Path, damage: Damage) -> None:
    store = cleaned(tmp_path)
    broken = list_of(table_of(tmp_path), 1)
    damage(broken)
    receipt = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert len(receipt.expired_snapshots) == 3
    assert [what for what in receipt.unreadable if broken.name in what] == list(receipt.unreadable) != []
    assert not broken.exists()
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert paths_of_values(store) == live_paths(store)
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]
    assert store.purge(TOPIC, clock_ms() + 2 * DAY_MS).unreadable == ()


def test_what_only_a_damaged_manifest_named_is_left_to_the_sweep(tmp_path: Path, damage: Damage) -> None:
    store = cleaned(tmp_path)
    broken = manifest_of(table_of(tmp_path), 0)
    damage(broken)
    receipt = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert [broken.name in what for what in receipt.unreadable] == [True]
    assert len(receipt.deleted_files) == 2
    assert [file.holder for file in receipt.held] == ["staged"]
    assert len(store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_orphans) >= 1
    assert paths_of_values(store) == live_paths(store)


def test_a_damaged_manifest_of_the_current_snapshot_is_corruption_that_names_it(tmp_path: Path, damage: Damage) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    for broken in (manifest_of(table_of(tmp_path), 1), list_of(table_of(tmp_path), 1)):
        before = stored_paths(tmp_path)
        damage(broken)
        with pytest.raises(LogCorrupt, match=broken.name):
            store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
        assert stored_paths(tmp_path) - {f"file://{broken}"} == before - {f"file://{broken}"}


def test_a_damaged_snapshot_that_a_tag_keeps_is_corruption_until_the_tag_is_gone(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")], [("a", "3")], [("a", "4")])
    table = table_of(tmp_path)
    table.manage_snapshots().create_tag(table.metadata.snapshots[1].snapshot_id, "audit").commit()
    broken = list_of(table, 1)
    broken.unlink()
    with pytest.raises(LogCorrupt, match=f"{broken.name}.*delete its tag"):
        store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    table_of(tmp_path).manage_snapshots().remove_tag("audit").commit()
    assert len(store.purge(TOPIC, clock_ms() + 2 * DAY_MS).expired_snapshots) == 3
    assert len(values(store)) == 4


def journal_at(store: LogStore, name: str, text: str) -> Path:
    folder = local(store.describe_topic(TOPIC).location) / "metadata" / "gc"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    "text", ['{"snapsh', "", '{"segments": 7}', '{"snapshots": ["1"], "segments": [], "metadata": []}']
)
def test_a_journal_that_says_nothing_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    store = cleaned(tmp_path)
    journal = journal_at(store, "broken.json", text)
    young = store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert len(young.deleted_files) == 3
    assert [journal.name in what for what in young.unreadable] == [True]
    assert len([each for each in caplog.records if journal.name in each.getMessage()]) == 1
    assert journal.exists()  # somebody may be writing it
    assert len(store.purge(TOPIC, clock_ms() + 2 * DAY_MS).unreadable) == 1
    [kept] = (tmp_path / "warehouse").rglob("receipts/unreadable/broken.json")
    assert (kept.read_text(), journal.exists()) == (text, False)
    assert store.purge(TOPIC, clock_ms() + 2 * DAY_MS).unreadable == ()


def test_a_journal_of_a_newer_minor_version_is_carried_out(tmp_path: Path) -> None:
    store = create(tmp_path)
    path = f"{store.data_location(TOPIC)}/partition=0/x.parquet"
    store.files.write_bytes(path, b"retired")
    named = {"snapshots": [1], "segments": [{"path": path, "bytes": 7, "why": "?"}], "metadata": [], "colour": "blue"}
    journal_at(store, "newer.json", json.dumps(named))
    assert [file.path for file in store_at(tmp_path).purge(TOPIC, clock_ms()).deleted_files] == [path]
