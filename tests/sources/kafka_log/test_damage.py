"""What is broken in a log: its torn end is the end, anything else stops the reader or is skipped and told."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path

import pytest

from keptlog.errors import InvalidRecord, LogCorrupt, StorageUnavailable
from keptlog.log.record import Record
from keptlog.sources.kafka_log import batches
from keptlog.sources.kafka_log.batches import NO_END, LogSegment
from keptlog.sources.kafka_log.open_file import READ_BYTES
from keptlog.sources.kafka_log.reader import read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import scan_log
from tests.sources.kafka_log.encoder import BatchOptions, batch, encoded_records, read_log, whole_batch, write_segment

FIRST, SECOND, THIRD = (
    batch([Record(base + number, b"key", b"value %d" % number, 1_000) for number in range(4)]) for base in (0, 4, 8)
)


_CHECK = batches._check


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def message(offset: int, value: bytes | None, magic: int = 0, codec: int = 0, checksum: int | None = None) -> bytes:
    """A message of format v0 or v1."""
    checked = struct.pack(">bb", magic, codec) + (struct.pack(">q", 1_000) if magic else b"") + struct.pack(">i", -1)
    checked += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    checksum = zlib.crc32(checked) if checksum is None else checksum
    return struct.pack(">qiI", offset, len(checked) + 4, checksum) + checked


@pytest.mark.parametrize("kept_bytes", [1, 11, 16, 17, 60, 61, len(THIRD) - 1])
def test_a_batch_that_was_not_written_whole_is_the_end_of_the_log(tmp_path: Path, kept_bytes: int) -> None:
    path = write_segment(tmp_path, 0, FIRST + SECOND + THIRD[:kept_bytes])
    read = read_log(tmp_path)
    assert read.offsets == list(range(8))
    assert read.scan.torn is not None
    assert (read.scan.torn.path, read.scan.torn.position) == (str(path), len(FIRST + SECOND))
    assert (read.scan.torn.size_bytes, read.scan.torn.next_offset) == (kept_bytes, 8)
    assert read.scan.log_end_offset == read.scan.last_stable_offset == 8


def test_a_last_batch_with_holes_is_the_end_of_the_log(tmp_path: Path) -> None:
    """A crash may leave a file at its full length, and some of its pages unwritten."""
    write_segment(tmp_path, 0, FIRST + SECOND + THIRD[:-10] + bytes(10))
    read = read_log(tmp_path)
    assert read.offsets == list(range(8))
    assert "checksum" in str(read.scan.torn)


def test_space_that_was_allocated_ahead_is_the_end_of_the_log(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + bytes(2 * READ_BYTES))
    read = read_log(tmp_path)
    assert read.offsets == list(range(4))
    assert "only zeros" in str(read.scan.torn)


def test_the_end_may_be_torn_before_segments_without_bytes(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + SECOND[:30])
    write_segment(tmp_path, 8, b"")
    assert read_log(tmp_path).offsets == list(range(4))


@pytest.mark.parametrize("behind", [SECOND[:30], flipped(SECOND, 70)], ids=["cut off", "flipped bit"])
@pytest.mark.parametrize("skip_corrupt", [False, True])
def test_a_log_ends_where_its_end_is_torn_and_not_at_an_empty_segment_behind(
    tmp_path: Path, behind: bytes, *, skip_corrupt: bool
) -> None:
    """Kafka's recovery truncates there too, and deletes the segments behind."""
    write_segment(tmp_path, 0, FIRST + behind)
    write_segment(tmp_path, 8, b"")
    write_segment(tmp_path, 12, b"")
    read = read_log(tmp_path, skip_corrupt=skip_corrupt)
    assert (read.offsets, read.skipped) == (list(range(4)), [])
    assert (read.scan.log_end_offset, read.scan.last_stable_offset) == (4, 4)
    assert read.scan.between_segments == ()


def test_a_torn_segment_that_lost_all_ends_the_log_where_it_begins(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST)
    write_segment(tmp_path, 6, THIRD[:30])
    write_segment(tmp_path, 12, b"")
    scan = read_log(tmp_path).scan
    assert (scan.log_end_offset, scan.between_segments) == (6, ((4, 6),))


def test_a_log_that_is_torn_below_its_start_ends_at_its_start(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + SECOND[:30])
    write_segment(tmp_path, 12, b"")
    scan = read_log(tmp_path, 8).scan
    assert (scan.log_start_offset, scan.last_stable_offset, scan.log_end_offset) == (8, 8, 8)


def test_a_torn_segment_that_others_follow_is_corrupt(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + SECOND[:30])
    write_segment(tmp_path, 8, THIRD)
    with pytest.raises(LogCorrupt, match=f"position {len(FIRST)}, from offset 4 on: .*30 are there"):
        read_log(tmp_path)
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [damage.size_bytes for damage in read.skipped] == [30]


POSITIONS_IN_A_BATCH = {"length": 9, "magic": 16, "checksum": 18, "attributes": 22, "producer id": 45, "records": 70}


@pytest.mark.parametrize("position", POSITIONS_IN_A_BATCH.values(), ids=POSITIONS_IN_A_BATCH)
def test_a_corrupt_batch_in_the_middle_is_named_with_file_position_and_offset(tmp_path: Path, position: int) -> None:
    path = write_segment(tmp_path, 0, FIRST + flipped(SECOND, position) + THIRD)
    named = re.escape(f"{path}: {len(SECOND)} bytes at position {len(FIRST)}, from offset 4 on: ")
    segments = segments_to_read(tmp_path)
    with pytest.raises(LogCorrupt, match=named + ".*; restore the file, or skip"):
        scan_log(segments)
    scan = scan_log(segments, skip_corrupt=True)
    with pytest.raises(LogCorrupt, match=named):
        list(read_segment(segments[0], 0, scan))


@pytest.mark.parametrize("position", POSITIONS_IN_A_BATCH.values(), ids=POSITIONS_IN_A_BATCH)
def test_what_is_skipped_is_told_and_the_next_good_batch_is_read(tmp_path: Path, position: int) -> None:
    write_segment(tmp_path, 0, FIRST + flipped(SECOND, position) + THIRD)
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [(damage.position, damage.size_bytes) for damage in read.skipped] == [(len(FIRST), len(SECOND))]
    assert read.scan.corrupt == tuple(read.skipped)


def test_the_next_good_batch_is_found_far_away(tmp_path: Path) -> None:
    """Zeros look like messages of format v0 without a length."""
    write_segment(tmp_path, 0, FIRST + bytes(READ_BYTES - 5) + b"\x02" * READ_BYTES + THIRD)
    assert read_log(tmp_path, skip_corrupt=True).offsets == [0, 1, 2, 3, 8, 9, 10, 11]


def test_offsets_that_do_not_rise_are_corrupt(tmp_path: Path) -> None:
    """Neither the base offset nor the length is under the checksum."""
    write_segment(tmp_path, 0, FIRST + SECOND + FIRST + THIRD)
    with pytest.raises(LogCorrupt, match="do not rise from 8"):
        read_log(tmp_path)


def test_offsets_of_a_later_segment_are_corrupt(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + SECOND)
    write_segment(tmp_path, 6, THIRD)
    with pytest.raises(LogCorrupt, match="offset 7 lies behind 5, the last one that this segment can have"):
        read_log(tmp_path)


def with_base_offset(data: bytes, offset: int) -> bytes:
    """As a flipped bit leaves it: the base offset is not under the checksum."""
    return struct.pack(">q", offset) + data[8:]


LAST = batch([Record(20, b"key", b"last", 1_000)])
IN_A_GAP = with_base_offset(batch([Record(12, b"key", b"value", 1_000)]), 6)
MISPLACED = {
    "far above": ([FIRST, with_base_offset(SECOND, 4 | 2**56), THIRD], [8, 9, 10, 11], len(SECOND)),
    "above all": ([FIRST, with_base_offset(SECOND, 4 | 2**20), THIRD], [8, 9, 10, 11], len(SECOND)),
    "below": ([FIRST, with_base_offset(SECOND, 0), THIRD], [8, 9, 10, 11], len(SECOND)),
    "one of two, and nobody can tell which": ([FIRST, THIRD, IN_A_GAP], [], len(THIRD + IN_A_GAP)),
}


@pytest.mark.parametrize(("parts", "left", "lost_bytes"), MISPLACED.values(), ids=MISPLACED)
def test_a_batch_at_an_impossible_offset_is_corrupt_and_not_the_torn_end(
    tmp_path: Path, parts: list[bytes], left: list[int], lost_bytes: int
) -> None:
    write_segment(tmp_path, 0, [*parts, LAST])
    with pytest.raises(LogCorrupt, match=f"{lost_bytes} bytes at position {len(FIRST)}, from offset 4 on: "):
        read_log(tmp_path)
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, *left, 20]
    assert [damage.size_bytes for damage in read.skipped] == [lost_bytes]


@pytest.mark.parametrize("offset", [2**31 - 4, 8 | 2**40, 8 | 2**62])
def test_the_newest_batch_ends_within_the_offsets_that_a_segment_can_have(tmp_path: Path, offset: int) -> None:
    write_segment(tmp_path, 0, FIRST + SECOND + with_base_offset(THIRD, offset))
    if offset + 3 < 2**31:
        assert read_log(tmp_path).offsets[-1] == offset + 3
        return
    with pytest.raises(LogCorrupt, match=f"from offset 8 on: .*offset {offset + 3} lies behind 2147483647"):
        read_log(tmp_path)
    assert read_log(tmp_path, skip_corrupt=True).scan.log_end_offset == 8


def test_a_batch_before_its_segment_is_corrupt(tmp_path: Path) -> None:
    write_segment(tmp_path, 4, with_base_offset(SECOND, 0) + THIRD)
    with pytest.raises(LogCorrupt, match=r"from offset 4 on: .*do not rise from 4"):
        read_log(tmp_path)
    assert read_log(tmp_path, skip_corrupt=True).offsets == [8, 9, 10, 11]


def test_a_newest_batch_that_the_one_before_contradicts_is_not_taken_nor_taken_for_torn(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, FIRST + with_base_offset(SECOND, 4 | 2**20) + THIRD)
    with pytest.raises(LogCorrupt, match=r"offsets 1048580\.\.1048583 and those of the next batch, 8\.\.11"):
        read_log(tmp_path)
    assert read_log(tmp_path, skip_corrupt=True).offsets == [0, 1, 2, 3]


RECORD = encoded_records([Record(4, b"key", b"value", 1_000)], 4, 1_000)
BROKEN_INSIDE = {
    "no record": whole_batch(b"", (4, 7), (1, 1), 4),
    "too few bytes": whole_batch(RECORD[:-1], (4, 7), (1, 1), 1),
    "too many bytes": whole_batch(RECORD + b"\0", (4, 7), (1, 1), 1),
    "empty record": whole_batch(b"\0", (4, 7), (1, 1), 1),
    "endless length": whole_batch(b"\xff" * 5000, (4, 7), (1, 1), 1),
    "endless number": whole_batch(b"\x30\0" + b"\xff" * 23, (4, 7), (1, 1), 1),
    "long key": whole_batch(bytes([12, 0, 0, 0, 100, 0, 0]), (4, 7), (1, 1), 1),
    "negative header count": whole_batch(bytes([12, 0, 0, 0, 1, 1, 1]), (4, 7), (1, 1), 1),
    "too many headers": whole_batch(bytes([12, 0, 0, 0, 1, 1, 80]), (4, 7), (1, 1), 1),
    "header without key": whole_batch(bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]), (4, 7), (1, 1), 1),
    "bytes behind headers": whole_batch(bytes([14, 0, 0, 0, 1, 1, 0, 0]), (4, 7), (1, 1), 1),
    "offset outside": whole_batch(bytes([12, 0, 0, 8, 1, 1, 0]), (4, 7), (1, 1), 1),
    "same offset twice": whole_batch(bytes([12, 0, 0, 0, 1, 1, 0]) * 2, (4, 7), (1, 1), 2),
    "horizon too large": whole_batch(RECORD, (4, 7), (2**62, 1), 1, BatchOptions(delete_horizon_ms=1)),
    **{
        f"not {codec}": whole_batch(RECORD, (4, 7), (1, 1), 1, BatchOptions(codec=codec))
        for codec in ("gzip", "snappy", "lz4", "zstd")
    },
    "snappy block cut off": whole_batch(
        b"\x82SNAPPY\0" + bytes(8) + struct.pack(">i", 9) + b"x", (4, 7), (1, 1), 1, BatchOptions(codec="snappy")
    ),
    "snappy claims too much": whole_batch(b"\xff\xff\xff\xff\x07x", (4, 7), (1, 1), 1, BatchOptions(codec="snappy")),
    "wrapper without value": message(4, None, codec=1),
    "wrapper of nothing": message(4, gzip.compress(b""), codec=1),
    "wrapper of garbage": message(4, gzip.compress(b"garbage" * 9), codec=1),
    "wrapped twice": message(4, gzip.compress(message(4, gzip.compress(message(4, b"v")), codec=1)), codec=1),
    "another format inside": message(4, gzip.compress(message(0, b"v", magic=0)), magic=1, codec=1),
    "wrong checksum inside": message(4, gzip.compress(message(4, b"v", checksum=5)), codec=1),
    "offsets inside fall": message(4, gzip.compress(message(4, b"v") + message(4, b"v")), codec=1),
    "offset inside too large": message(4, gzip.compress(message(5, b"v")), codec=1),
    "message too long": message(4, b"v")[:-1] + b"vv",
}


def with_right_length(data: bytes) -> bytes:
    """A message whose length and checksum fit whatever it holds."""
    checked = data[16:]
    return data[:8] + struct.pack(">iI", len(checked) + 4, zlib.crc32(checked)) + checked


BROKEN_INSIDE["message too long"] = with_right_length(BROKEN_INSIDE["message too long"])
BROKEN_INSIDE["message too short"] = with_right_length(message(4, b"value" * 9)[:-1])


@pytest.mark.parametrize("broken", BROKEN_INSIDE.values(), ids=BROKEN_INSIDE)
def test_a_batch_that_breaks_its_promise_is_corrupt_though_its_checksum_is_right(tmp_path: Path, broken: bytes) -> None:
    write_segment(tmp_path, 0, FIRST + broken + THIRD)
    with pytest.raises(LogCorrupt, match=f"{len(broken)} bytes at position {len(FIRST)}, from offset 4 on: "):
        read_log(tmp_path)
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, 8, 9, 10, 11]
    assert [damage.position for damage in read.skipped] == [len(FIRST)]


UNFIT = {
    "header not UTF-8": whole_batch(bytes([18, 0, 0, 0, 1, 1, 2, 2, 255, 1]), (4, 7), (1, 1), 1),
    "timestamp too large": whole_batch(RECORD, (4, 7), (2**62, 1), 1),
    "timestamp too large in an old message": with_right_length(
        message(4, b"v", magic=1).replace(struct.pack(">q", 1_000), struct.pack(">q", 2**62))
    ),
}


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_a_record_that_no_table_can_hold_is_no_damage_and_is_named_alone(tmp_path: Path, unfit: bytes) -> None:
    write_segment(tmp_path, 0, FIRST + unfit + THIRD)
    with pytest.raises(InvalidRecord, match="the record at offset 4 has ") as stopped:
        read_log(tmp_path)
    assert stopped.value.whole_before_offset == 4
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, 8, 9, 10, 11]
    assert read.skipped == []
    assert [(each.next_offset, each.end_offset, each.count) for each in read.unfit] == [(4, 5, 1)]


def test_many_records_that_no_table_can_hold_are_told_together(tmp_path: Path) -> None:
    odd = [Record(offset, b"key", b"value", 2**62) for offset in (4, 6)]
    write_segment(tmp_path, 0, FIRST + batch([odd[0], Record(5, b"key", b"value", 1_000), odd[1]]))
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == [0, 1, 2, 3, 5]
    [told] = map(str, read.unfit)
    assert told.endswith(
        f"2 records from offset 4 to 6 can't be stored; the first has the timestamp {2**62} ms, which no table can hold"
    )


def test_a_codec_that_does_not_exist_is_corrupt(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, message(0, b"v", codec=4) + FIRST)
    with pytest.raises(LogCorrupt, match="no codec 4 in message format 0"):
        read_log(tmp_path)


def test_a_file_that_is_gone_can_be_tried_again(tmp_path: Path) -> None:
    segment = LogSegment(tmp_path / "gone.log", 0, NO_END, 1, is_last=True)
    with pytest.raises(StorageUnavailable, match="try again"):
        scan_log([segment])


def test_the_next_good_batch_is_found_behind_numbers_that_look_like_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly every place of them seems to begin a batch as long as the rest of the file: each took a checksum of it."""
    checked: list[int] = []

    def check(expected: int, actual: int) -> None:
        checked.append(actual)
        _CHECK(expected, actual)

    monkeypatch.setattr(batches, "_check", check)
    values = [struct.pack(">2500i", *range(low, low + 2500)) for low in (1, 2_000_000)]
    good = [batch([Record(offset, b"k", values[offset % 2], 1_000)]) for offset in range(500)]
    write_segment(tmp_path, 0, [good[0], flipped(good[1], 200), flipped(good[2], 200), *good[3:]])
    assert read_log(tmp_path, skip_corrupt=True).offsets == [0, *range(3, 500)]
    assert len(checked) < 2_000
