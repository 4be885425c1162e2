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

UNUSABLE = [
    ("write.py-location-provider.impl", "their.package.Locations"),
    ("write.object-storage.enabled", "perhaps"),
    ("write.metadata.previous-versions-max", "1k"),
    ("write.summary.partition-limit", "100k"),
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
    said = f"table keptlog.{TOPIC}: no commit can be made with its property {name}={value} .*nothing is written"
    for attempt in (
        lambda: append_each(store, [("b", "1")]),
        lambda: store.alter_topic(TOPIC, {"segment.ms": "2"}),
        lambda: store.purge(TOPIC, clock_ms() + DAY_MS),
    ):
        with pytest.raises(LogCorrupt, match=said) as refused:
            attempt()
        assert refused.value.action is Action.FIX_CONFIG
    assert [offset for _, offset, _ in values(store)] == [0, 1]
