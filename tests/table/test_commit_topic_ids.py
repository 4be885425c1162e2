"""A change that was made for a topic does not land in another one that has got its name meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import CommitTableResponse

from keptlog.errors import StalePlan, UnknownTopic
from keptlog.log.record import NewRecord, Record
from keptlog.log.retention import retention_of
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.mark import Failure
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    files_below,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)

ANOTHER = "was deleted and created again meanwhile"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": "1", "segment.ms": "1"})


def create_again(store: LogStore) -> None:
    store.delete_topic(TOPIC, NOW_MS)
    store.create_topic(TOPIC, 1, COMPACTED)


def test_an_append_that_began_on_a_topic_does_not_land_in_the_next_one(store: LogStore, tmp_path: Path) -> None:
    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        create_again(store_at(tmp_path))

    with pytest.raises(StalePlan, match=ANOTHER):
        store.append(TOPIC, overtaken(), "run", NOW_MS)
    assert values(store) == []
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_staged_files_that_are_gone_with_their_topic_are_not_told_as_swept(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    missing = TableFiles.missing

    def deleted_first(files: TableFiles, paths: Sequence[str]) -> list[str]:
        monkeypatch.undo()
        store.delete_topic(TOPIC, NOW_MS)
        if is_made_anew:
            store.create_topic(TOPIC, 1, COMPACTED)
        return missing(files, paths)

    monkeypatch.setattr(TableFiles, "missing", deleted_first)
    kind, told = (StalePlan, ANOTHER) if is_made_anew else (UnknownTopic, TOPIC)
    with pytest.raises(kind, match=told):
        append_each(store, [("a", "1")])


def test_a_clean_and_a_retention_that_were_planned_on_a_topic_say_that_it_is_another_one(store: LogStore) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    log = store.logs(TOPIC)[0]
    outcome = rewritten(store, step_for(log))
    old = retention_of(log, 2 * NOW_MS)
    step = Retain(
        log.topic_partition, old.segments, 2, log.checkpoint, log.log_start_offset, 2 * NOW_MS, topic_id=log.topic_id
    )
    create_again(store)
    append_each(store, [("b", "3")], [("b", "4")])
    with pytest.raises(StalePlan, match=ANOTHER):
        store.swap(TOPIC, [outcome], "run")
    with pytest.raises(StalePlan, match=ANOTHER):
        store.retain(TOPIC, [step], "run")
    assert [value for _, _, value in values(store)] == [b"3", b"4"]


def test_an_ingest_that_began_on_a_topic_does_not_land_in_the_next_one(store: LogStore) -> None:
    topic = store.describe_topic(TOPIC)
    create_again(store)
    segments = tuple(staged(store, TOPIC, 0, [Record(7, b"a", b"1", NOW_MS)]))
    arrivals = [Arrival(OffsetRange(0, None, 5, 9), segments)]
    with pytest.raises(StalePlan, match=ANOTHER):
        store.ingest(topic, arrivals, SourceIdentity("users"), 1, "run")
    assert store.source_of(TOPIC).source is None
    store.ingest(TOPIC, arrivals, SourceIdentity("users"), 1, "run")


def test_a_log_of_another_topic_is_not_marked_for_a_clean_that_failed(store: LogStore) -> None:
    append_each(store, [("a", "1")])
    log = store.logs(TOPIC)[0]
    failure = Failure(log.topic_partition, "no space", log.checkpoint, topic_id=log.topic_id)
    create_again(store)
    with pytest.raises(StalePlan, match=ANOTHER):
        store.mark_uncleanable(TOPIC, [failure], NOW_MS, Backoff(1, 2))
    assert store.logs(TOPIC)[0].uncleanable is None


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.delete_records(TopicPartition(TOPIC, 0), -1, "run"),
        lambda store: store.alter_topic(TOPIC, {"segment.ms": "77"}),
    ],
)
def test_an_attempt_that_is_made_again_is_not_made_on_another_topic(
    store: LogStore, tmp_path: Path, change: Callable[[LogStore], object]
) -> None:
    def lost_and_created_again(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        other = store_at(tmp_path)
        create_again(other)
        append_each(other, [("b", "3")])
        raise CommitStateUnknownException("the line was cut before the commit")

    append_each(store, [("a", "1")])
    faulty = FaultyCatalog(open_catalog(tmp_path))
    faulty.faults = [lost_and_created_again]
    with pytest.raises(StalePlan, match=ANOTHER):
        change(store_over(faulty))
    assert values(store) == [(0, 0, b"3")]
    assert store.describe_topic(TOPIC).raw_config == COMPACTED
