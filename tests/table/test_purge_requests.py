"""How often a purge asks an object store, exactly: counted at the store, a request each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from examples.lake.s3_server import KEYS
from keptlog.passes.purge import Purger
from keptlog.table.metadata.forward_in_time import forward_in_time
from keptlog.table.purging.purge_memory import PurgeMemory
from keptlog.table.store import LogStore
from tests.table.buckets import new_bucket
from tests.table.counted_s3 import CountedS3, counted_s3
from tests.table.stores import COMPACTED, append_each, clean, new_id

DAY_MS = 24 * 3_600_000
TOPICS = ["shop.users-v2", "orders"]


@pytest.fixture(scope="module")
def s3() -> Iterator[CountedS3]:
    with counted_s3() as s3:
        yield s3


def store_in(s3: CountedS3, home: Path, versioning: str | None) -> LogStore:
    bucket = new_bucket(s3.endpoint, versioning)
    how = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO", "s3.endpoint": s3.endpoint, **KEYS}
    uri, warehouse = f"sqlite:///{home}/catalog.db", f"s3://{bucket.name}"
    catalog = forward_in_time(SqlCatalog("keptlog", uri=uri, warehouse=warehouse, **how), None)
    store = LogStore(catalog, {}, time.sleep, new_id)
    store.seal = lambda _: None
    return store


@pytest.mark.parametrize(("versioning", "most"), [(None, 4), ("Enabled", 5)])
def test_a_purge_with_nothing_to_do_asks_five_times_and_one_of_an_idle_topic_never(
    s3: CountedS3, tmp_path: Path, versioning: str | None, most: int
) -> None:
    store = store_in(s3, tmp_path, versioning)
    for topic in TOPICS:
        store.create_topic(topic, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    clean(store)
    now_ms = time.time_ns() // 1_000_000 + DAY_MS // 2
    purger = Purger(store, PurgeMemory(tmp_path, {}))
    assert len(purger.purge(now_ms=now_ms).receipts[TOPICS[0]].deleted_files) == 2

    s3.forget()
    assert purger.purge([TOPICS[0]], now_ms=now_ms + 1).failed == {}
    assert len(s3.requests) <= most, s3.kinds()

    s3.forget()
    assert set(purger.purge(now_ms=now_ms + 2).idle) == set(TOPICS)
    assert len(s3.requests) == 0
