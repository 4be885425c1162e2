"""A property of another program's that no commit can be made with is told by its name, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keptlog.errors import Action, LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, create, store_at, values

LIMIT = "write.summary.partition-limit"
UNUSABLE = [
    ("write.py-location-provider.impl", "their.package.Locations"),
    ("write.object-storage.enabled", "perhaps"),
    ("write.metadata.previous-versions-max", "1k"),
    (LIMIT, "100k"),
]


def set_unusable(home: Path, name: str, value: str) -> None:
    """As a program sets it that can use it, or does not look."""
    catalog, table = open_catalog(home), table_of(home)
    stored = json.loads(table.metadata.model_dump_json())
    stored["properties"][name] = value
    new = Path(table.metadata_location.removeprefix("file://")).with_name("00099-set.metadata.json")
    new.write_text(json.dumps(stored), encoding="utf-8")
    catalog.drop_table(("keptlog", TOPIC))
    catalog.register_table(("keptlog", TOPIC), f"file://{new}")


@pytest.mark.parametrize(("name", "value"), UNUSABLE)
def test_it_is_told_and_what_is_there_is_read(tmp_path: Path, name: str, value: str) -> None:
    append_each(create(tmp_path, config={"file.delete.delay.ms": "0"}), [("a", "1")], [("a", "2")])
    set_unusable(tmp_path, name, value)
    store = store_at(tmp_path)
    made = "snapshot" if name == LIMIT else "commit"
    said = f"table keptlog.{TOPIC}: no {made} can be made with its property {name}={value} .*nothing is written"
    for attempt in (
        lambda: append_each(store, [("b", "1")]),
        lambda: store.alter_topic(TOPIC, {"segment.ms": "2"}),
        lambda: store.purge(TOPIC, clock_ms() + DAY_MS),
    ):
        with pytest.raises(LogCorrupt, match=said) as refused:
            attempt()
        assert refused.value.action is Action.FIX_CONFIG
    assert [offset for _, offset, _ in values(store)] == [0, 1]


def test_what_is_needed_for_snapshots_alone_keeps_no_purge_from_expiring_some(tmp_path: Path) -> None:
    append_each(create(tmp_path, config={"file.delete.delay.ms": "0"}), [("a", "1")], [("a", "2")])
    set_unusable(tmp_path, LIMIT, "100k")
    store_at(tmp_path).purge(TOPIC, clock_ms() + DAY_MS // 2)  # what has replaced the table's metadata is no orphan yet
    assert len(table_of(tmp_path).metadata.snapshots) == 1
    assert [offset for _, offset, _ in values(store_at(tmp_path))] == [0, 1]


@pytest.mark.parametrize("name", [name for name, _ in UNUSABLE if name != LIMIT])
def test_an_empty_text_is_a_default(tmp_path: Path, name: str) -> None:
    append_each(create(tmp_path), [("a", "1")])
    set_unusable(tmp_path, name, "")
    append_each(store_at(tmp_path), [("b", "1")])
    assert [offset for _, offset, _ in values(store_at(tmp_path))] == [0, 1]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_another_property_of_object_storage_is_told_by_its_own_name_where_it_is_taken(
    tmp_path: Path, *, is_enabled: bool
) -> None:
    append_each(create(tmp_path), [("a", "1")])
    set_unusable(tmp_path, "write.object-storage.enabled", str(is_enabled).lower())
    set_unusable(tmp_path, "write.object-storage.partitioned-paths", "perhaps")
    if not is_enabled:
        append_each(store_at(tmp_path), [("b", "1")])
        return
    with pytest.raises(LogCorrupt, match=r"with its property write\.object-storage\.partitioned-paths=perhaps"):
        append_each(store_at(tmp_path), [("b", "1")])
