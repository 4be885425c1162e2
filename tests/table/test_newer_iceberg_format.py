"""A table raised by another program to a format of Iceberg's that PyIceberg can't write is told, and can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import Action, LogCorrupt
from keptlog.passes.observer import observe
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.repair import Repair
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.table.foreign import insert, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import NOW_MS, TOPIC, append_each, create, store_at, values

SAID = f"topic {TOPIC}: another program has raised its table to version 3 of Iceberg's format"


def _raised(home: Path) -> None:
    """What ``ALTER TABLE … SET TBLPROPERTIES ('format-version'='3')`` leaves."""
    catalog, table = open_catalog(home), table_of(home)
    stored = json.loads(table.metadata.model_dump_json()) | {"format-version": 3, "next-row-id": 0}
    new = Path(table.metadata_location.removeprefix("file://")).with_name("00099-raised.metadata.json")
    new.write_text(json.dumps(stored), encoding="utf-8")
    catalog.drop_table(("keptlog", TOPIC))
    catalog.register_table(("keptlog", TOPIC), f"file://{new}")


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"cleanup.policy": "compact", "segment.ms": "1"})
    append_each(store, [("a", "1")], [("a", "2")])
    return store


def _repair(store: LogStore, home: Path) -> object:
    it = Repair(TOPIC, is_adoption=False, files=store.files, live_files=LiveFiles(), broker_settings={})
    return it.plan(table_of(home))


def test_it_is_told_nothing_is_written_and_what_is_there_is_read(store: LogStore, tmp_path: Path) -> None:
    _raised(tmp_path)
    store = store_at(tmp_path)
    before = store.metadata_locations()
    with pytest.raises(LogCorrupt, match=SAID) as refused:
        append_each(store, [("b", "1")])
    assert refused.value.action is Action.FIX_CONFIG
    assert f"keptlog restore {TOPIC} --to jsonl FILE" in str(refused.value)
    assert "set its current snapshot back" not in str(refused.value)
    with pytest.raises(LogCorrupt, match=SAID):
        store.alter_topic(TOPIC, {"segment.ms": "2"})
    with pytest.raises(LogCorrupt, match=SAID):
        store.purge(TOPIC, clock_ms() + DAY_MS)
    with pytest.raises(LogCorrupt, match=SAID):
        _repair(store, tmp_path)
    assert SAID in str(observe(store, now_ms=NOW_MS).unreadable[TOPIC])
    assert store.metadata_locations() == before
    assert [offset for _, offset, _ in values(store)] == [0, 1]


def test_what_was_also_written_to_is_to_be_rolled_back_there_for_no_repair_can_be_written(
    store: LogStore, tmp_path: Path
) -> None:
    own = table_of(tmp_path).metadata.current_snapshot_id
    insert(tmp_path, 0)
    _raised(tmp_path)
    store = store_at(tmp_path)
    said = f"{SAID}.*set its current snapshot back to {own} there"
    attempts: list[Callable[[], object]] = [
        lambda: append_each(store, [("b", "1")]),
        lambda: _repair(store, tmp_path),
        lambda: values(store),
    ]
    for attempt in attempts:
        with pytest.raises(LogCorrupt, match=said) as refused:
            attempt()
        assert "keptlog repair" not in str(refused.value)


def test_a_version_that_can_not_be_read_is_no_damage_to_be_put_back(store: LogStore, tmp_path: Path) -> None:
    named = Path(table_of(tmp_path).metadata_location.removeprefix("file://"))
    stored = json.loads(table_of(tmp_path).metadata.model_dump_json())
    named.write_text(json.dumps(stored | {"format-version": 9}), encoding="utf-8")
    store = store_at(tmp_path)
    said = f"{SAID.replace('version 3', 'version 9')}, which this keptlog can't read .*use a keptlog that reads it"
    for attempt in (lambda: append_each(store, [("b", "1")]), lambda: values(store)):
        with pytest.raises(LogCorrupt, match=said) as refused:
            attempt()
        assert refused.value.action is Action.FIX_CONFIG
        assert "put the file back" not in str(refused.value)


@pytest.mark.parametrize(
    ("column_type", "name"),
    [
        ("variant", "variant"),
        ("geometry(OGC:CRS84)", "geometry"),
        ({"type": "list", "element-id": 98, "element-required": False, "element": "variant"}, "variant"),
    ],
)
def test_a_column_of_a_type_that_can_not_be_read_is_no_damage_to_be_put_back(
    store: LogStore, tmp_path: Path, column_type: object, name: str
) -> None:
    named = Path(table_of(tmp_path).metadata_location.removeprefix("file://"))
    stored = json.loads(table_of(tmp_path).metadata.model_dump_json()) | {"format-version": 3, "next-row-id": 0}
    [schema] = stored["schemas"]
    column = {"id": 99, "name": "v", "required": False, "type": column_type}
    schemas = [schema, schema | {"schema-id": 1, "fields": [*schema["fields"], column]}]
    changed = stored | {"schemas": schemas, "current-schema-id": 1, "last-column-id": 99}
    named.write_text(json.dumps(changed), encoding="utf-8")
    store = store_at(tmp_path)
    said = rf"topic {TOPIC}: another program .* a column of type {name}, which this keptlog can't read: .*{named.name}"
    for attempt in (lambda: append_each(store, [("b", "1")]), lambda: values(store)):
        with pytest.raises(LogCorrupt, match=said) as refused:
            attempt()
        assert refused.value.action is Action.FIX_CONFIG
        assert "put the file back" not in str(refused.value)
        # Spark's default expires what is older than five days, and deletes files that a purge is to account for.
        assert "older_than => TIMESTAMP '1970-01-02 00:00:00'" in str(refused.value)
    seen = UnopenedStore(tmp_path, {}, lambda: store_at(tmp_path))
    assert "put the file back" not in str(observe(seen, now_ms=NOW_MS).unreadable[TOPIC])
    # The column was dropped there, and its schema removed.
    named.write_text(json.dumps(stored), encoding="utf-8")
    assert [offset for _, offset, _ in values(store_at(tmp_path))] == [0, 1]


def test_a_type_that_no_version_has_is_damage(store: LogStore, tmp_path: Path) -> None:
    assert store.topics() == [TOPIC]
    named = Path(table_of(tmp_path).metadata_location.removeprefix("file://"))
    stored = table_of(tmp_path).metadata.model_dump_json()  # without the checksum
    named.write_text(stored.replace('"type":"binary"', '"type":"binarz"', 1), encoding="utf-8")
    with pytest.raises(LogCorrupt, match=r"is damaged \(Val.*put the file back"):
        values(store_at(tmp_path))
