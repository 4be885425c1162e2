"""Times in a table's metadata never go back, whatever the clocks of its writers show: Java readers refuse that."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.store import LogStore
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, clean, new_id, values

HOUR_MS = 3_600_000


def store_with_clock(home: Path, now_ms: Callable[[], int]) -> LogStore:
    """A store whose commits show this clock's time."""
    return LogStore(open_catalog(home, now_ms), {}, lambda _: None, new_id)


def require_order(metadata: dict[str, Any]) -> None:
    """What Iceberg's ``TableMetadata`` asks of a table that it opens, without its tolerance of a minute."""
    snapshots = [entry["timestamp-ms"] for entry in metadata.get("snapshot-log", [])]
    files = [entry["timestamp-ms"] for entry in metadata.get("metadata-log", [])]
    for log in (snapshots, files):
        assert all(earlier <= later for earlier, later in pairwise(log)), log
        assert not log or log[-1] <= metadata["last-updated-ms"]
    by_sequence = sorted(metadata.get("snapshots", []), key=lambda each: each["sequence-number"])
    assert all(a["timestamp-ms"] <= b["timestamp-ms"] for a, b in pairwise(by_sequence))


def all_metadata(home: Path) -> list[dict[str, Any]]:
    """Of all commits, in their order."""
    files = sorted(home.rglob("*.metadata.json"), key=lambda path: path.name)
    return [json.loads(path.read_text()) for path in files]


def test_two_writers_whose_clocks_are_an_hour_apart_leave_times_in_order(tmp_path: Path) -> None:
    ticks = [0]

    def clock(skew_ms: int) -> Callable[[], int]:
        def now_ms() -> int:
            ticks[0] += 1000
            return NOW_MS + ticks[0] + skew_ms

        return now_ms

    ahead, behind = store_with_clock(tmp_path, clock(HOUR_MS)), store_with_clock(tmp_path, clock(-HOUR_MS))
    ahead.create_topic(TOPIC, 1, COMPACTED | {"file.delete.delay.ms": "0"})
    for store in (behind, ahead, behind):
        append_each(store, [("k", "1")], [("k", "2")])
        store.alter_topic(TOPIC, {"segment.ms": str(ticks[0])})
        failure = Failure(TopicPartition(TOPIC, 0), "why", store.logs(TOPIC)[0].checkpoint)
        store.mark_uncleanable(TOPIC, [failure], NOW_MS, Backoff(1, 2))
        clean(store)
        store.delete_records(TopicPartition(TOPIC, 0), 1, new_id())
    behind.purge(TOPIC, NOW_MS + 2 * HOUR_MS)
    append_each(behind, [("k", "3")])

    metadata = all_metadata(tmp_path)
    assert len(metadata) > 15
    for each in metadata:
        require_order(each)
    assert NOW_MS + HOUR_MS < metadata[-1]["last-updated-ms"] < NOW_MS + 2 * HOUR_MS
    assert values(behind)[-1][2] == b"3"


def test_a_store_with_a_clock_shows_no_other_time(tmp_path: Path) -> None:
    store = store_with_clock(tmp_path, lambda: NOW_MS)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("k", "1")])
    store.alter_topic(TOPIC, {"segment.ms": "1"})
    (last,) = [each for each in all_metadata(tmp_path) if len(each.get("metadata-log", [])) == 2]
    times = {last["last-updated-ms"], *(each["timestamp-ms"] for each in last["metadata-log"] + last["snapshots"])}
    assert times == {NOW_MS}


def test_a_configured_database_shared_by_two_machines_has_times_in_order_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    assert isinstance(open_catalog(tmp_path), SqlCatalog)
    ahead = store_with_clock(tmp_path, lambda: NOW_MS + HOUR_MS)
    ahead.create_topic(TOPIC, 1, COMPACTED)
    append_each(ahead, [("k", "1")])
    behind = store_with_clock(tmp_path, lambda: NOW_MS)
    append_each(behind, [("k", "2")])
    behind.alter_topic(TOPIC, {"segment.ms": "1"})
    for each in all_metadata(tmp_path / "lake"):
        require_order(each)
    assert len(values(behind)) == 2


def test_a_rollback_by_a_slow_clock_leaves_times_in_order(tmp_path: Path) -> None:
    ahead = store_with_clock(tmp_path, lambda: NOW_MS + HOUR_MS)
    ahead.create_topic(TOPIC, 1, COMPACTED)
    append_each(ahead, [("k", "1")], [("k", "2")])
    table = open_catalog(tmp_path, lambda: NOW_MS).load_table(("keptlog", TOPIC))
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    for each in all_metadata(tmp_path):
        require_order(each)
    assert values(ahead)[-1][2] == b"1"


def test_a_change_that_changes_nothing_commits_nothing(tmp_path: Path) -> None:
    store = store_with_clock(tmp_path, iter(range(NOW_MS, NOW_MS + 1000)).__next__)
    store.create_topic(TOPIC, 1, COMPACTED)
    before = store.metadata_locations()
    catalog = open_catalog(tmp_path, lambda: NOW_MS + HOUR_MS)
    table = catalog.load_table(("keptlog", TOPIC))
    catalog.commit_table(table, (), ())
    assert store.metadata_locations() == before
