"""Of the metadata files that leave a table's history, whoever commits deletes what his commit lets go of."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from keptlog.log.holder import HolderKind
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.changes.mark import Failure
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.purging import purge
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, clock_ms, unreferenced
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create

REMEMBERED = 20
MORE_THAN_A_TABLE_REMEMBERS = REMEMBERED + 5


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


def test_what_a_purges_own_commit_has_deleted_is_no_orphan(store: LogStore, tmp_path: Path) -> None:
    """It stood in the list of before: a journal was written for it, and a receipt told it as swept."""
    clean(store)
    receipt = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert receipt.expired_snapshots
    assert receipt.deleted_orphans == ()
    assert not unreferenced(tmp_path)


def test_nor_is_what_a_later_one_of_many_has_deleted(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the metadata that the purge began with has left the history too, as others commit meanwhile."""
    clean(store)
    monkeypatch.setattr(purge, "EXPIRED_AT_ONCE", 1)
    receipt = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert len(receipt.expired_snapshots) > REMEMBERED
    assert receipt.deleted_orphans == ()
    assert not unreferenced(tmp_path)


def test_nor_is_it_told_as_held_where_nothing_else_was_deleted(store: LogStore) -> None:
    store.load_table(TOPIC).manage_snapshots().create_tag(oldest(store), "audit", max_ref_age_ms=1).commit()
    store.alter_topic(TOPIC, {"file.delete.delay.ms": str(DAY_MS)})
    receipt = store.purge(TOPIC, clock_ms() + 1000)
    assert [each.name for each in receipt.dropped_refs] == ["audit"]
    assert receipt.held == ()


def test_metadata_that_may_not_be_deleted_keeps_no_commit_from_landing_and_is_told(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(store)

    def refuse(_: DurableFileIO, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(DurableFileIO, "delete", refuse)
    receipt = store.purge(TOPIC, clock_ms() + 1)
    assert receipt.expired_snapshots
    left = unreferenced(tmp_path)
    assert len(left) == 1
    assert {file.path for file in receipt.held if file.holder.startswith(HolderKind.STAGED)} == left


def oldest(store: LogStore) -> int:
    return min(store.load_table(TOPIC).metadata.snapshots, key=lambda each: each.sequence_number or 0).snapshot_id
