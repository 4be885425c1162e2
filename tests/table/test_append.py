"""Appends: offsets, partitions, all or nothing, and two writers at once."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidRecord, StorageUnavailable
from keptlog.log.given.partitioner import partition_for_key
from keptlog.log.record import NewRecord, TimestampType
from keptlog.table.changes import partition_writers
from keptlog.table.io.files import TableFiles
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    append_each,
    create,
    files_below,
    new_id,
    new_records,
    store_at,
    values,
)


def test_offsets_go_on_where_the_last_append_ended(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "2")], [("a", "3")])
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2"), (0, 2, b"3")]
    [log] = store.logs(TOPIC)
    assert [(segment.base_offset, segment.last_offset) for segment in log.segments] == [(0, 1), (2, 2)]
    assert log.log_end_offset == 3


def test_the_result_tells_what_each_partition_got(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=3)
    append_each(store, [("a", "0")])
    batch = new_records(("a", "1"), ("b", "2"), partition=0) + new_records(("c", "3"), partition=2)
    result = store.append(TOPIC, batch, "run", NOW_MS)
    assert [(p.partition, p.base_offset, p.last_offset, p.records, p.segments) for p in result.partitions] == [
        (0, 1, 2, 2, 1),
        (2, 0, 0, 1, 1),
    ]
    assert (result.records, result.segments) == (3, 2)
    assert result.bytes == sum(path.stat().st_size for path in files_below(tmp_path) if "-run-" in path.name)


def test_a_key_goes_to_the_partition_that_kafka_would_choose(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=7)
    keys = [f"key-{number}".encode() for number in range(200)]
    store.append(TOPIC, [NewRecord(key, b"", NOW_MS) for key in keys], "run", NOW_MS)
    found = {record.key: partition for partition, record in store.read(TOPIC)}
    assert found == {key: partition_for_key(key, 7) for key in keys}


def test_records_without_key_and_partition_of_one_batch_go_to_one_partition(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=5, config={"cleanup.policy": "delete"})
    store.append(TOPIC, [NewRecord(None, b"v", NOW_MS) for _ in range(20)], "run", NOW_MS)
    assert len({partition for partition, _ in store.read(TOPIC)}) == 1


def test_every_field_comes_back_as_it_went_in(tmp_path: Path) -> None:
    store = create(tmp_path)
    headers = (("trace", b"\x00\xff"), ("trace", None), ("", b""))
    batch = [NewRecord(b"\x00\xff", b"", NOW_MS + 1, 0, headers), NewRecord(b"", None, -1, 0)]
    store.append(TOPIC, batch, "run", NOW_MS)
    first, second = (record for _, record in store.read(TOPIC))
    assert (first.key, first.value, first.timestamp_ms, first.headers) == (b"\x00\xff", b"", NOW_MS + 1, headers)
    assert (second.key, second.value, second.timestamp_ms, second.headers) == (b"", None, -1, ())
    [segment] = store.logs(TOPIC)[0].segments
    assert (segment.tombstone_count, segment.unkeyed_count, segment.stamped_count) == (1, 0, 0)
    assert (segment.first_timestamp_ms, segment.largest_timestamp_ms) == (-1, NOW_MS + 1)


def test_log_append_time_replaces_the_records_own(tmp_path: Path) -> None:
    store = create(tmp_path, config={"message.timestamp.type": "LogAppendTime"})
    store.append(TOPIC, [NewRecord(b"k", b"v", 5)], "run", NOW_MS)
    [(_, record)] = store.read(TOPIC)
    assert (record.timestamp_ms, record.timestamp_type) == (NOW_MS, TimestampType.LOG_APPEND_TIME)


def test_an_empty_batch_commits_nothing(tmp_path: Path) -> None:
    store = create(tmp_path)
    before = store.metadata_locations()
    result = store.append(TOPIC, [], "run", NOW_MS)
    assert (result.partitions, result.records) == ((), 0)
    assert store.metadata_locations() == before


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (NewRecord(None, b"v", NOW_MS), "record 3 .* no key"),
        (NewRecord(b"k", b"v" * 101, NOW_MS), "record 3 .* 102 bytes, above max.message.bytes=100"),
        (NewRecord(b"k", b"v", NOW_MS, 2), "record 3 .* partition 2 does not exist"),
        (NewRecord(b"k", b"v", NOW_MS, -1), "record 3 .* partition -1 does not exist"),
        (NewRecord(b"k", b"v", 10**17), "record 3 .* timestamp"),
        (NewRecord(b"k", b"v", NOW_MS + 3_600_001), "3600001 ms after the clock, above message.timestamp.after.max.ms"),
        (NewRecord(b"k", b"v", NOW_MS - 51), "51 ms before the clock, above message.timestamp.before.max.ms=50"),
        (NewRecord(b"k", b"v", NOW_MS, 0, (("\ud800", b""),)), "record 3 .* header"),
    ],
)
def test_one_bad_record_refuses_the_whole_batch_by_its_number(tmp_path: Path, bad: NewRecord, said: str) -> None:
    store = create(tmp_path, partitions=2, config={"max.message.bytes": "100", "message.timestamp.before.max.ms": "50"})
    before = store.metadata_locations()
    with pytest.raises(InvalidRecord, match=said):
        store.append(TOPIC, [*new_records(("a", "1"), ("b", "2")), bad, *new_records(("c", "3"))], "run", NOW_MS)
    assert store.metadata_locations() == before
    assert files_below(tmp_path) == set()


def test_timestamps_as_far_from_the_clock_as_allowed_and_none_at_all_are_taken(tmp_path: Path) -> None:
    store = create(tmp_path, config={"message.timestamp.before.max.ms": "50"})
    times = [NOW_MS - 50, NOW_MS + 3_600_000, -1]
    store.append(TOPIC, [NewRecord(b"k", b"v", time_ms) for time_ms in times], "run", NOW_MS)
    assert [record.timestamp_ms for _, record in store.read(TOPIC)] == times


def test_the_time_of_the_append_is_never_too_far_away(tmp_path: Path) -> None:
    store = create(tmp_path, config={"message.timestamp.type": "LogAppendTime"})
    store.append(TOPIC, [NewRecord(b"k", b"v", NOW_MS + 10**9)], "run", NOW_MS)
    assert [record.timestamp_ms for _, record in store.read(TOPIC)] == [NOW_MS]


def test_a_source_that_fails_in_the_middle_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_writers, "HELD_BYTES", 10_000)

    def failing() -> Iterator[NewRecord]:
        for number in range(1000):
            yield NewRecord(b"k%d" % number, b"v" * 100, NOW_MS)
        assert files_below(tmp_path), "the batch is too small to be spooled to files"
        raise RuntimeError("the line was cut")

    store = create(tmp_path, partitions=3)
    with pytest.raises(RuntimeError, match="the line was cut"):
        store.append(TOPIC, failing(), "run", NOW_MS)
    assert values(store) == []
    assert files_below(tmp_path) == set()


def test_a_segment_that_can_not_be_written_while_others_are_closed_leaves_none_behind(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=20)
    data = Path(store.data_location(TOPIC).removeprefix("file://"))
    data.mkdir(parents=True)
    (data / "partition=13").touch()
    with pytest.raises(StorageUnavailable, match=r"can't be written to .*partition=13"):
        store.append(TOPIC, [NewRecord(b"k", b"v", NOW_MS, partition) for partition in range(20)], new_id(), NOW_MS)
    assert files_below(tmp_path) == set()
    assert [log.log_end_offset for log in store.logs(TOPIC)] == [0] * 20


def test_a_batch_larger_than_what_may_be_held_comes_through_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_writers, "HELD_BYTES", 20_000)
    store = create(tmp_path, partitions=4)
    batch = [NewRecord(b"k%d" % (number % 97), b"%d" % number, NOW_MS) for number in range(5000)]
    assert store.append(TOPIC, batch, "run", NOW_MS).records == 5000
    read = list(store.read(TOPIC))
    assert sorted(int(record.value or b"") for _, record in read) == list(range(5000))
    for number in range(4):
        offsets = [record.offset for partition, record in read if partition == number]
        assert offsets == list(range(len(offsets)))


def test_segments_roll_at_segment_bytes(tmp_path: Path) -> None:
    store = create(tmp_path, config={"internal.segment.bytes": "1"})
    store.append(TOPIC, [NewRecord(b"k%d" % number, b"", NOW_MS, 0) for number in range(300_000)], "run", NOW_MS)
    [log] = store.logs(TOPIC)
    assert len(log.segments) == 3
    assert sum(segment.record_count for segment in log.segments) == log.log_end_offset == 300_000


def test_a_run_that_was_appended_before_is_not_appended_again(tmp_path: Path) -> None:
    store = create(tmp_path)
    first = store.append(TOPIC, new_records(("a", "1"), ("b", "2")), "run", NOW_MS)
    append_each(store, [("c", "3")])
    assert store_at(tmp_path).append(TOPIC, new_records(("a", "1"), ("b", "2")), "run", NOW_MS) == replace(
        first, is_repeated=True
    )
    assert len(values(store)) == 3


def test_the_loser_of_a_race_takes_the_next_offsets(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=2)

    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "late"), partition=0)
        append_each(store_at(tmp_path), [("x", "early"), ("y", "early")])
        yield from new_records(("b", "late"), partition=1)

    result = store.append(TOPIC, overtaken(), "run", NOW_MS)
    assert [(each.partition, each.base_offset) for each in result.partitions] == [(0, 2), (1, 0)]
    assert values(store) == [(0, 0, b"early"), (0, 1, b"early"), (0, 2, b"late"), (1, 0, b"late")]
    assert len(files_below(tmp_path)) == 3, "the segment with the old offsets is deleted"


def test_the_loser_of_a_race_lands_although_it_may_not_delete_what_it_had_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever appends needs no permission to delete (docs/lake.md)."""
    store = create(tmp_path, partitions=2)

    def refuse(files: TableFiles, path: str) -> None:  # as that of TableFiles
        raise PermissionError(13, "Permission denied", path)

    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "late"), ("b", "late"), partition=0)
        append_each(store_at(tmp_path), [("x", "early")])
        monkeypatch.setattr(TableFiles, "delete", refuse)

    assert store.append(TOPIC, overtaken(), "run", NOW_MS).partitions[0].base_offset == 1
    assert values(store) == [(0, 0, b"early"), (0, 1, b"late"), (0, 2, b"late")]
    assert len(files_below(tmp_path)) == 3, "the segment with the old offsets stays until a purge"
    monkeypatch.undo()
    store.purge(TOPIC, NOW_MS + 10**12, 0)
    assert len(files_below(tmp_path)) == 2


def _append_many(home: Path, writer: int, batches: int) -> None:
    store = store_at(home)
    for batch in range(batches):
        pairs = [(f"{writer}-{number}", f"{writer}/{batch}/{number}") for number in range(5)]
        store.append(TOPIC, new_records(*pairs, partition=batch % 2), new_id(), NOW_MS)


def test_three_processes_that_append_at_once_lose_nothing_and_leave_no_gap(tmp_path: Path) -> None:
    store = create(tmp_path, partitions=2)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(tmp_path, number, 8)) for number in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0, 0, 0]
    found = values(store)
    assert Counter(value for _, _, value in found) == Counter(
        f"{writer}/{batch}/{number}".encode() for writer in range(3) for batch in range(8) for number in range(5)
    )
    for partition in (0, 1):
        assert [offset for number, offset, _ in found if number == partition] == list(range(60))
    assert [log.log_end_offset for log in store.logs(TOPIC)] == [60, 60]
