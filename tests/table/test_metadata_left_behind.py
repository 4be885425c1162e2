"""Of the metadata files that leave a table's history, whoever commits deletes what his commit lets go of."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.holder import HolderKind
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.changes.mark import Failure
from keptlog.table.store import LogStore
from tests.table.purges import clock_ms, unreferenced
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create

MORE_THAN_A_TABLE_REMEMBERS = 25


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A topic whose history is full."""
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, *[[("a", str(number))] for number in range(MORE_THAN_A_TABLE_REMEMBERS)])
    return store


def test_a_commit_that_makes_no_snapshot_leaves_no_metadata_behind(store: LogStore, tmp_path: Path) -> None:
    failures = [Failure(TopicPartition(TOPIC, 0), "a segment is broken", None)]
    store.mark_uncleanable(TOPIC, failures, NOW_MS, Backoff(1000, 3000))
    assert not unreferenced(tmp_path)


def test_a_purge_is_not_told_as_a_run_that_died(store: LogStore, tmp_path: Path) -> None:
    """Its own commit left one metadata file each time; a day long that kept an erasure open, as what a run had left."""
    clean(store)
    receipt = store.purge(TOPIC, clock_ms() + 1)
    assert receipt.expired_snapshots
    assert not [file for file in receipt.held if file.holder.startswith(HolderKind.STAGED)]
    assert not unreferenced(tmp_path)
