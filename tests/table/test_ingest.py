"""Ingests: the source's offsets, positions in the commit, one of two that race, and what other runs make of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table import CommitTableResponse

from keptlog.errors import InvalidConfig, InvariantViolated, LogCorrupt, StalePlan, UnknownTopic
from keptlog.log.assessment import assess
from keptlog.log.plan import make_retention_plan
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    clean,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)

SOURCE = SourceIdentity("users", "id-1", "broker:9092")
DAY_MS = 24 * 3_600_000
LATER_MS = NOW_MS + 30 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return create(tmp_path)


def arrived(store: LogStore, read: OffsetRange, *segments: Sequence[int]) -> Arrival:
    """A range of which these offsets were there, staged in these segments; the key is that of the offset's last digit.

    The value is the offset.
    """
    made = [
        staged(store, TOPIC, read.partition, [Record(n, b"%d" % (n % 10), b"%d" % n, NOW_MS) for n in offsets])
        for offsets in segments
    ]
    return Arrival(read, tuple(segment for each in made for segment in each))


def ingest(
    store: LogStore, *ranges: Arrival, run_id: str | None = None, source: SourceIdentity = SOURCE, partitions: int = 1
) -> None:
    store.ingest(TOPIC, ranges, source, partitions, run_id or new_id())


def first(store: LogStore) -> Arrival:
    """Offsets 40, 42 and 50 of [40, 55) that begin a log, in two segments."""
    return arrived(store, OffsetRange(0, None, 40, 55), [40, 42], [50])


def bounds(store: LogStore) -> list[tuple[int, int]]:
    return [(log.log_start_offset, log.log_end_offset) for log in store.logs(TOPIC)]


def commits(store: LogStore) -> int:
    return len(store.load_table(TOPIC).metadata.snapshots)


def test_records_keep_the_offsets_of_the_source_and_the_log_ends_at_the_position(store: LogStore) -> None:
    ingest(store, first(store))
    assert values(store) == [(0, 40, b"40"), (0, 42, b"42"), (0, 50, b"50")]
    assert bounds(store) == [(40, 55)]
    assert store.source_of(TOPIC) == StoredSource(SOURCE, (55,))
    assert values(store, from_offset=41) == values(store)[1:]
    assert store.logs(TOPIC)[0].is_ingested


def test_a_topic_that_was_never_ingested_has_neither_source_nor_positions(store: LogStore) -> None:
    assert store.source_of(TOPIC) == StoredSource(None, (None,))
    assert not store.logs(TOPIC)[0].is_ingested


def test_a_later_ingest_goes_on_at_the_position_and_leaves_the_log_start(store: LogStore) -> None:
    ingest(store, first(store))
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 61), [60]))
    assert [offset for _, offset, _ in values(store)] == [40, 42, 50, 60]
    assert bounds(store) == [(40, 61)]


def test_a_position_moves_in_a_snapshot_of_its_own_where_no_record_was_left(store: LogStore) -> None:
    ingest(store, first(store))
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 58)))
    assert bounds(store) == [(40, 58)]
    assert commits(store) == 2


def test_an_empty_log_is_known_from_then_on(store: LogStore) -> None:
    ingest(store, arrived(store, OffsetRange(0, None, 30, 30)))
    assert bounds(store) == [(30, 30)]
    assert store.source_of(TOPIC).positions == (30,)


def test_records_that_were_lost_at_the_source_leave_a_gap(store: LogStore) -> None:
    ingest(store, first(store))
    ingest(store, arrived(store, OffsetRange(0, 55, 90, 95), [91]))
    assert [offset for _, offset, _ in values(store)] == [40, 42, 50, 91]
    assert bounds(store) == [(40, 95)]


def test_partitions_grow_with_the_source_in_the_same_commit(store: LogStore) -> None:
    ingest(store, first(store))
    both = arrived(store, OffsetRange(0, 55, 55, 56)), arrived(store, OffsetRange(2, None, 0, 2), [1])
    ingest(store, *both, partitions=4)
    assert bounds(store) == [(40, 56), (0, 0), (0, 2), (0, 0)]
    assert store.source_of(TOPIC).positions == (56, None, 2, None)
    assert values(store, partition=2) == [(2, 1, b"1")]
    assert commits(store) == 2


def test_the_same_ranges_of_the_same_run_land_once(store: LogStore, tmp_path: Path) -> None:
    ingest(store, first(store), run_id="run")
    ingest(store_at(tmp_path), first(store), run_id="run")
    assert len(values(store)) == 3
    assert commits(store) == 1


def test_a_run_that_is_tried_again_and_finds_more_lands_that_too(store: LogStore) -> None:
    ingest(store, first(store), run_id="run")
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 61), [60]), run_id="run")
    assert bounds(store) == [(40, 61)]


def test_nothing_is_committed_where_nothing_moved(store: LogStore) -> None:
    ingest(store, first(store))
    ingest(store)
    assert commits(store) == 1


def test_an_id_that_was_learned_is_stored_and_the_newest_address_counts(store: LogStore) -> None:
    ingest(store, first(store), source=SourceIdentity("users"))
    ingest(store, source=SOURCE)
    assert store.source_of(TOPIC).source == SOURCE
    ingest(store, source=SourceIdentity("users", None, "other:9092"))
    assert store.source_of(TOPIC).source == SourceIdentity("users", "id-1", "other:9092")


@pytest.mark.parametrize("offsets", [[], [[40, 42], [50]]])
def test_of_two_ingests_at_once_one_lands(tmp_path: Path, offsets: list[list[int]]) -> None:
    """Also the very first two of a table that has no snapshot yet, and with no file to tell them apart."""
    real = create(tmp_path)
    faulty = FaultyCatalog(open_catalog(tmp_path))
    store = store_over(faulty)
    read = OffsetRange(0, None, 40, 55)

    def overtaken(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        ingest(real, arrived(real, read, *offsets))
        return commit()

    faulty.faults = [overtaken]
    with pytest.raises(StalePlan, match="the position of partition 0 was none, now it is 55; nothing lost, ingest"):
        ingest(store, arrived(store, read, *offsets))
    assert len(values(store)) == sum(map(len, offsets))
    assert bounds(store) == [(40, 55)]
    assert commits(store) == 1


def test_an_append_that_comes_first_makes_the_topic_its_own(tmp_path: Path) -> None:
    real = create(tmp_path, partitions=2)
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def overtaken(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        real.append(TOPIC, new_records(("a", "1"), partition=1), new_id(), NOW_MS)
        return commit()

    faulty.faults = [overtaken]
    with pytest.raises(StalePlan, match="records of its own were appended"):
        ingest(store_over(faulty), first(real), partitions=2)
    assert values(real) == [(1, 0, b"1")]


def test_an_ingest_that_comes_first_refuses_the_append(tmp_path: Path) -> None:
    real = create(tmp_path)
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def overtaken(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        ingest(real, first(real))
        return commit()

    faulty.faults = [overtaken]
    with pytest.raises(InvalidConfig, match="is ingested from users: produce to it there"):
        append_each(store_over(faulty), [("a", "1")])
    assert len(values(real)) == 3


def test_an_append_to_a_topic_with_a_source_is_refused_and_stages_nothing(store: LogStore, tmp_path: Path) -> None:
    ingest(store, first(store))
    before = files_below(tmp_path)
    with pytest.raises(InvalidConfig, match=f"topic {TOPIC} is ingested from users: produce to it there"):
        append_each(store, [("a", "1")])
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("source", "partitions", "said"),
    [
        (
            SourceIdentity("orders", "id-1"),
            2,
            "it comes from topic users at broker:9092 .id id-1., not from topic orders .id id-1.",
        ),
        (
            SourceIdentity("users", "id-2"),
            2,
            "id id-1., not from topic users .id id-2.",
        ),
        (SOURCE, 1, "it has 2 partitions, planned were 1"),
    ],
)
def test_a_source_that_is_another_by_now_lands_nothing(
    store: LogStore, source: SourceIdentity, partitions: int, said: str
) -> None:
    ingest(store, first(store), partitions=2)
    with pytest.raises(StalePlan, match=said):
        ingest(store, arrived(store, OffsetRange(0, 55, 55, 56)), source=source, partitions=partitions)
    assert bounds(store)[0] == (40, 55)


def test_a_zombie_whose_staged_files_were_swept_lands_nothing(store: LogStore) -> None:
    late = first(store)
    store.purge(TOPIC, time.time_ns() // 1_000_000 + 2 * DAY_MS)
    with pytest.raises(StalePlan, match="is gone: a purge swept it"):
        ingest(store, late)
    assert store.source_of(TOPIC) == StoredSource(None, (None,))


def test_a_topic_that_was_deleted_meanwhile_is_unknown(store: LogStore) -> None:
    late = first(store)
    store.delete_topic(TOPIC, NOW_MS)
    with pytest.raises(UnknownTopic):
        ingest(store, late)


def test_segments_outside_of_their_range_are_a_bug(store: LogStore) -> None:
    good = first(store)
    for read, segments in [
        (OffsetRange(0, None, 41, 55), good.segments),
        (OffsetRange(0, None, 40, 50), good.segments),
        (OffsetRange(0, None, 40, 55), good.segments[::-1]),
        (OffsetRange(0, None, 40, 55), (good.segments[0], good.segments[0])),
        (OffsetRange(0, 41, 40, 55), good.segments),
        (OffsetRange(0, None, 40, 39), ()),
        (OffsetRange(1, None, 40, 55), good.segments),
        (OffsetRange(-1, None, 40, 55), good.segments),
    ]:
        with pytest.raises(InvariantViolated, match="please report this"):
            ingest(store, Arrival(read, segments))
    with pytest.raises(InvariantViolated, match="one of them twice"):
        ingest(store, good, Arrival(OffsetRange(0, None, 55, 60), ()))
    assert commits(store) == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '{"topic": 1}', '{"topic_id": "id-1"}', "7"])
def test_a_source_that_is_none_is_reported_and_not_taken_for_no_source(store: LogStore, text: str) -> None:
    store.load_table(TOPIC).transaction().set_properties({"log.source": text}).commit_transaction()
    with pytest.raises(LogCorrupt, match=r"property log\.source=.* is no source"):
        store.source_of(TOPIC)


def test_a_clean_ends_where_the_log_does_and_disturbs_no_ingest(store: LogStore) -> None:
    ingest(store, first(store))
    late = arrived(store, OffsetRange(0, 55, 55, 61), [60])
    clean(store)
    assert [offset for _, offset, _ in values(store)] == [42, 50]
    assert store.logs(TOPIC)[0].checkpoint == 55
    assert not assess(store.logs(TOPIC)[0], LATER_MS).sections.dirty
    ingest(store, late)
    clean(store)
    assert [offset for _, offset, _ in values(store)] == [42, 60]
    assert store.logs(TOPIC)[0].checkpoint == 61


def test_an_ingest_disturbs_no_clean_not_even_with_new_partitions(store: LogStore) -> None:
    ingest(store, first(store))
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    more = arrived(store, OffsetRange(0, 55, 55, 61), [60]), arrived(store, OffsetRange(1, None, 7, 9), [8])
    ingest(store, *more, partitions=2)
    store.swap(TOPIC, [outcome], new_id())
    assert [offset for _, offset, _ in values(store, partition=0)] == [42, 50, 60]
    assert store.logs(TOPIC)[0].checkpoint == 55
    assert store.source_of(TOPIC).positions == (61, 9)


def test_retention_and_ingest_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = create(tmp_path, config={"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    ingest(store, first(store))
    steps = make_retention_plan(store.logs(TOPIC), LATER_MS).steps
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 61), [60]))
    late = arrived(store, OffsetRange(0, 61, 61, 66), [63])
    store.retain(TOPIC, steps, new_id())
    ingest(store, late)
    assert [offset for _, offset, _ in values(store)] == [60, 63]
    assert bounds(store) == [(55, 66)]


def test_a_log_that_retention_emptied_goes_on_at_its_position(tmp_path: Path) -> None:
    store = create(tmp_path, config={"cleanup.policy": "delete", "retention.ms": str(DAY_MS)})
    ingest(store, first(store))
    store.retain(TOPIC, make_retention_plan(store.logs(TOPIC), LATER_MS).steps, new_id())
    assert bounds(store) == [(55, 55)]
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 61), [60]))
    assert [offset for _, offset, _ in values(store)] == [60]


def test_the_source_survives_everything_that_can_be_done_to_a_topic(store: LogStore) -> None:
    ingest(store, first(store))
    log = TopicPartition(TOPIC, 0)
    before = store.source_of(TOPIC)
    store.alter_topic(TOPIC, {"segment.ms": "5"})
    store.alter_topic(TOPIC, {}, ["segment.ms"])
    store.delete_records(log, 41, new_id())
    clean(store)
    store.purge(TOPIC, time.time_ns() // 1_000_000 + 2 * DAY_MS)
    assert store.source_of(TOPIC) == before
    assert bounds(store) == [(41, 55)]
    store.delete_records(log, -1, new_id())
    assert (values(store), bounds(store)) == ([], [(55, 55)])
    assert store.source_of(TOPIC) == before


def test_records_can_be_deleted_up_to_an_offset_in_a_gap(store: LogStore) -> None:
    ingest(store, first(store))
    deleted = store.delete_records(TopicPartition(TOPIC, 0), 52, new_id())
    assert deleted.log_start_offset == 52
    assert values(store) == []
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 61), [60]))
    assert bounds(store) == [(52, 61)]


def test_a_topic_that_was_deleted_and_made_anew_begins_without_a_source(store: LogStore) -> None:
    ingest(store, first(store))
    late = replace(first(store), range=OffsetRange(0, 55, 55, 61), segments=())
    store.delete_topic(TOPIC, NOW_MS)
    store.create_topic(TOPIC, 1, {})
    assert store.source_of(TOPIC) == StoredSource(None, (None,))
    with pytest.raises(StalePlan, match="the position of partition 0 was 55, now it is none"):
        ingest(store, late)


def test_the_leader_epoch_of_the_source_is_remembered_with_the_position_that_was_reached_under_it(
    store: LogStore,
) -> None:
    ingest(store, arrived(store, OffsetRange(0, None, 40, 55, None, 7), [40]))
    assert store.source_of(TOPIC) == StoredSource(SOURCE, (55,), {0: 7})
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 60, 7, 9), [55]))
    assert store.source_of(TOPIC) == StoredSource(SOURCE, (60,), {0: 9})


def test_a_leader_epoch_is_not_believed_of_another_position(store: LogStore) -> None:
    """An older keptlog, or a source without epochs, moves the position and leaves the epoch as it was."""
    ingest(store, arrived(store, OffsetRange(0, None, 40, 55, None, 7), [40]))
    ingest(store, arrived(store, OffsetRange(0, 55, 55, 60), [55]))
    assert store.source_of(TOPIC) == StoredSource(SOURCE, (60,))


def test_a_leader_epoch_that_is_none_names_its_property(store: LogStore) -> None:
    ingest(store, first(store))
    store.load_table(TOPIC).transaction().set_properties({"log.p0.leader-epoch": "7"}).commit_transaction()
    with pytest.raises(LogCorrupt, match=r"log\.p0\.leader-epoch='7' is no leader epoch .*; remove it"):
        store.source_of(TOPIC)


def test_a_run_that_finds_another_epoch_at_the_same_offsets_is_the_same_commit(store: LogStore) -> None:
    ingest(store, arrived(store, OffsetRange(0, None, 40, 55, None, 7), [40]), run_id="1")
    before = commits(store)
    ingest(store, arrived(store, OffsetRange(0, None, 40, 55, None, 8), [40]), run_id="1")
    assert commits(store) == before
