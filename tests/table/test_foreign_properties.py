"""Properties that another program sets for its own commits stop none of ours."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.table.foreign import set_properties
from tests.table.stores import append_each, clean, create, store_at, values

OF_OTHERS = [
    {"write.avro.compression-codec": "uncompressed"},
    {"write.avro.compression-codec": "snappy"},
    {"commit.retry.num-retries": "many", "commit.retry.min-wait-ms": "1s", "commit.retry.total-timeout-ms": "1min"},
]


@pytest.mark.parametrize("properties", OF_OTHERS, ids=lambda each: "=".join(next(iter(each.items()))))
def test_appends_cleans_and_purges_go_on(tmp_path: Path, properties: dict[str, str]) -> None:
    store = create(tmp_path, config={"segment.ms": "1", "file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")])
    set_properties(tmp_path, properties)
    store = store_at(tmp_path)
    append_each(store, [("a", "2")], [("a", "3")])
    clean(store)
    assert store.purge(store.topics()[0], time.time_ns() // 1_000_000 + 24 * 3_600_000).deleted_files
    assert values(store)[-1] == (0, 2, b"3")
