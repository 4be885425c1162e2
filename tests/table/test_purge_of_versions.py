"""A topic in a versioned bucket: after its purges no version of what was deleted is there, and nothing else is gone."""

from __future__ import annotations

import time
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog

from keptlog.table.file_io import DurableFileIO
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, TOPIC, append_each, clean, new_id, values


def catalog_in(bucket: ABucket, home: Path) -> Catalog:
    return load_catalog(
        "keptlog",
        **{
            "type": "sql",
            "uri": f"sqlite:///{home}/catalog.db",
            "warehouse": f"s3://{bucket.name}/warehouse",
            "py-io-impl": f"{DurableFileIO.__module__}.{DurableFileIO.__name__}",
            **dict(bucket.properties),
        },
    )


def cleaned_in(bucket: ABucket, home: Path) -> LogStore:
    """A log of which three segments were replaced by one."""
    store = LogStore(catalog_in(bucket, home), {}, time.sleep, new_id)
    store.create_topic(TOPIC, 1, COMPACTED | {"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")], [("b", "3"), ("a", "4")])
    clean(store)
    return store


def location_of(store: LogStore) -> str:
    return store.describe_topic(TOPIC).location


def key_of(path: str) -> str:
    return path.split("/", maxsplit=3)[3]


def kept_beside(bucket: ABucket, store: LogStore) -> list[tuple[str, str]]:
    """Versions below the topic that are not the only one of a file which a listing shows."""
    location = location_of(store)
    there = bucket.versions(location)
    paths = [path for path, _ in there]
    current = {file.path for file in store.files.list(location)}
    return [(path, version_id) for path, version_id in there if path not in current or paths.count(path) > 1]


def test_after_a_purge_no_version_of_a_retired_file_is_there(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    retired = store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_files
    assert len(retired) == 3
    there = {path for path, _ in bucket.versions(location_of(store))}
    assert there.isdisjoint(file.path for file in retired)
    assert kept_beside(bucket, store) == []
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]


def test_a_topic_that_lives_long_leaves_no_version_of_its_old_metadata(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    with store.load_table(TOPIC).transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    append_each(store, *[[("a", str(number))] for number in range(3)])
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert kept_beside(bucket, store) == []
