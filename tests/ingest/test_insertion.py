"""Tombstones come in at offsets that are free, and only what they fall into is written once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.ingest.insertion import Insertion, places_for
from keptlog.ingest.result import Intake
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.source import OffsetRange
from keptlog.log.topic_partition import TopicPartition
from keptlog.progress import silent
from keptlog.storage.segment_reader import read_row_groups
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import FIRST_MS, run_import, write_log
from tests.sources.kafka_log.encoder import batch

NAME = TopicPartition("t", 0)


def intake_of(segments: tuple[Segment, ...], end_offset: int) -> Intake:
    return Intake(NAME, OffsetRange(0, 0, 0, end_offset), segments, ())


@pytest.mark.parametrize(
    ("offsets", "written"),
    [([1], [0]), ([5], [1]), ([1, 13], [0, 2]), ([3], [1]), ([99], [3]), ([1, 99], [0, 3])],
    ids=["first", "second", "first and last", "between", "behind", "first and behind"],
)
def test_segments_that_get_none_stay_as_they_are_staged(
    store: LogStore, there: Path, offsets: list[int], written: list[int]
) -> None:
    store.create_topic("t", 1, {})
    batches = [batch([Record(at, b"k", b"v", FIRST_MS) for at in (first, first + 2)]) for first in (0, 4, 8, 12)]
    for count in range(1, 5):
        write_log(there, "t-0", batches[:count])
        assert not run_import(store, there, str(count)).failed
    segments = store.logs("t")[0].segments
    assert [segment.base_offset for segment in segments] == [0, 4, 8, 12]
    staged = (*segments[:2], *segments[3:])
    tombstones = [Record(at, b"gone", None, FIRST_MS) for at in offsets]
    topic = store.describe_topic("t")
    jobs = in_process_engine(store.files).start_jobs("run", silent).within([topic.data_location])
    found = Insertion(jobs, store.files, topic).segments_with(intake_of(staged, 100), tombstones)
    kept = [index for index, segment in enumerate(staged) if segment in found]
    assert sorted([*kept, *written]) == list(range(max(len(staged), *(index + 1 for index in written))))
    tables = [table for segment in found for table in read_row_groups(store.files, segment, ["offset"])]
    read = [offset for table in tables for offset in table["offset"].to_pylist()]
    assert read == sorted([0, 2, 4, 6, 12, 14, *offsets])


def test_many_tombstones_with_offsets_of_their_own_leave_the_free_ones_to_the_others(store: LogStore) -> None:
    """A producer in nanoseconds gives all its records times that no table can hold: they are many."""
    count = 50_000
    deleted = {b"deleted-%d" % number: 2 * number for number in range(count)}
    gone = {b"gone-%d" % number for number in range(count)}
    placed = places_for(store.files, intake_of((), 2 * count), gone, deleted)
    assert sorted(placed) == list(range(2 * count))
    assert {offset for offset, key in placed.items() if key in gone} == set(range(1, 2 * count, 2))
