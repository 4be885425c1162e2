"""Commits that land and are reported as refused, as a client does that sends a request again by itself.

The first request lands, its answer is lost, the second one finds another snapshot than it was built on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse

from keptlog.errors import StalePlan
from keptlog.log.record import Record
from keptlog.log.retention import retention_of
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import MAX_LOST_RACES
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata.references import all_references
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)

Commit = Callable[[], CommitTableResponse]


def landed_as_refused(commit: Commit) -> CommitTableResponse:
    commit()
    raise CommitFailedException("Requirement failed: branch main has changed")


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": "1", "segment.ms": "1"})
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.fixture
def store(faulty: FaultyCatalog) -> LogStore:
    return store_over(faulty)


def append(store: LogStore) -> None:
    assert store.append(TOPIC, new_records(("z", "9")), "run", NOW_MS).records == 1


def swap(store: LogStore) -> None:
    store.swap(TOPIC, [rewritten(store, step_for(store.logs(TOPIC)[0]))], "run")


def delete_records(store: LogStore) -> None:
    deleted = store.delete_records(TopicPartition(TOPIC, 0), 1, "run")
    assert deleted.log_start_offset == 1


def retain(store: LogStore) -> None:
    log = store.logs(TOPIC)[0]
    old = retention_of(log, NOW_MS * 2)
    store.retain(
        TOPIC,
        [
            Retain(
                log.topic_partition,
                old.segments,
                old.segments[-1].last_offset + 1,
                log.checkpoint,
                log.log_start_offset,
                NOW_MS * 2,
            )
        ],
        "run",
    )


def require_whole(home: Path) -> None:
    """Every file that the topic refers to is there."""
    referenced = all_references(load_topic_table(open_catalog(home), TOPIC)).keys()
    assert [path for path in referenced if not Path(path).exists()] == []


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (append, [(0, 0, b"1"), (0, 1, b"2"), (0, 2, b"9")]),
        (swap, [(0, 1, b"2")]),
        (delete_records, [(0, 1, b"2")]),
        (retain, []),
    ],
)
def test_a_commit_that_landed_and_is_reported_as_refused_is_a_success_and_the_topic_is_whole(
    store: LogStore,
    faulty: FaultyCatalog,
    tmp_path: Path,
    change: Callable[[LogStore], None],
    left: list[tuple[int, int, bytes]],
) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    faulty.faults = [landed_as_refused]
    before = faulty.commits
    change(store)
    assert faulty.commits == before + 1
    require_whole(tmp_path)
    assert values(store_at(tmp_path)) == left


def test_an_ingest_that_landed_and_is_reported_as_refused_is_a_success_and_the_topic_is_whole(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    segments = staged(store, TOPIC, 0, [Record(7, b"a", b"1", NOW_MS)])
    faulty.faults = [landed_as_refused]
    store.ingest(TOPIC, [Arrival(OffsetRange(0, None, 5, 9), tuple(segments))], SourceIdentity("users"), 1, "run")
    require_whole(tmp_path)
    assert values(store_at(tmp_path)) == [(0, 7, b"1")]


def test_a_refusal_that_landed_is_seen_after_the_last_attempt_too(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.table.commits.commit.MAX_LOST_RACES", 1)
    faulty.faults = [landed_as_refused]
    append(store)
    require_whole(tmp_path)
    assert values(store_at(tmp_path)) == [(0, 0, b"9")]


def test_a_refused_commit_deletes_no_file_of_the_metadata(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    """Whoever refuses may be wrong, so what was written for the commit is left to the purge."""

    def refused(commit: Commit) -> CommitTableResponse:
        seen.append(set(tmp_path.rglob("*.avro")))
        raise CommitFailedException("another process was faster")

    seen: list[set[Path]] = []
    faulty.faults = [refused] * (MAX_LOST_RACES + 1)
    with pytest.raises(StalePlan):
        append(store)
    assert len(seen[-1]) == 2 * MAX_LOST_RACES
    assert set(tmp_path.rglob("*.avro")) == seen[-1]


def test_a_table_that_asks_pyiceberg_for_retries_gets_none(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    """They would take stale properties along; another program may have set this one."""
    catalog = open_catalog(tmp_path)
    with load_topic_table(catalog, TOPIC).transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "4", "commit.retry.min-wait-ms": "1"})

    def overtaken(commit: Commit) -> CommitTableResponse:
        append_each(store_at(tmp_path), [("x", "other")])
        return commit()

    faulty.faults = [overtaken]
    append(store)
    assert values(store) == [(0, 0, b"other"), (0, 1, b"9")]
    assert store.logs(TOPIC)[0].log_end_offset == 2


def test_a_landed_refusal_whose_snapshot_was_purged_since_is_a_success(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    def landed_and_purged(commit: Commit) -> CommitTableResponse:
        commit()
        other = store_at(tmp_path)
        append_each(other, [("x", "other")])
        other.purge(TOPIC, 2**45)
        raise CommitFailedException("Requirement failed: branch main has changed")

    faulty.faults = [landed_and_purged]
    append(store)
    assert values(store) == [(0, 0, b"9"), (0, 1, b"other")]
