"""Only committed records enter, up to the last stable offset, however their transactions lie in the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keptlog.log.record import Record
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import AbortedTransaction, LogScan, scan_log
from tests.sources.kafka_log.encoder import (
    ABORT,
    COMMIT,
    BatchOptions,
    batch,
    marker,
    read_log,
    whole_batch,
    write_segment,
)


def data(offset: int, producer_id: int = -1, count: int = 1) -> bytes:
    """Records of a producer's transaction; without a producer they are in none."""
    records = [Record(offset + number, b"k", b"v", 1_000) for number in range(count)]
    return batch(records, BatchOptions(producer_id=producer_id, is_transactional=producer_id >= 0))


def write_log(folder: Path, *segments: Sequence[bytes]) -> None:
    for content in segments:
        write_segment(folder, int.from_bytes(content[0][:8], "big"), content)


def scan(folder: Path) -> LogScan:
    return scan_log(segments_to_read(folder))


def test_a_log_without_transactions_is_stable_to_its_end(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0, count=3), data(3)])
    read = read_log(tmp_path)
    assert read.offsets == [0, 1, 2, 3]
    assert (read.scan.last_stable_offset, read.scan.log_end_offset, read.scan.aborted) == (4, 4, ())


def test_committed_records_enter_and_aborted_ones_and_markers_do_not(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0, 7), data(1, 8, 2), data(3), marker(4, 8, ABORT), data(5, 7), marker(6, 7, COMMIT)])
    read = read_log(tmp_path)
    assert read.offsets == [0, 3, 5]
    assert read.scan.aborted == (AbortedTransaction(8, 1, 4),)
    assert read.scan.log_end_offset == 7


def test_a_marker_reaches_back_over_segments(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0, 7), data(1, 8)], [data(2, 7), data(3, 8)], [marker(4, 7, ABORT), marker(5, 8, COMMIT)])
    read = read_log(tmp_path)
    assert read.offsets == [1, 3]
    needed = [read.scan.for_segment(segment).aborted for segment in segments_to_read(tmp_path)]
    assert needed == [read.scan.aborted, read.scan.aborted, ()]


def test_a_producer_that_aborts_may_commit_later(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [data(0, 7), marker(1, 7, ABORT), data(2, 7), marker(3, 7, COMMIT), data(4, 7), marker(5, 7, ABORT), data(6)],
    )
    assert read_log(tmp_path).offsets == [2, 6]


def test_nothing_from_an_open_transaction_on_enters(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0), data(1, 7), data(2), data(3, 8), marker(4, 8, COMMIT)], [data(5)])
    read = read_log(tmp_path)
    assert read.offsets == [0]
    assert (read.scan.last_stable_offset, read.scan.log_end_offset) == (1, 6)


def test_the_first_of_several_open_transactions_counts(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0, 7), data(1, 8), data(2, 9), marker(3, 7, ABORT)])
    assert scan(tmp_path).last_stable_offset == 1


def test_records_outside_of_transactions_are_committed_whoever_wrote_them(tmp_path: Path) -> None:
    idempotent = batch([Record(0, b"k", b"v", 1)], BatchOptions(producer_id=7))
    write_log(tmp_path, [idempotent, data(1, 7), marker(2, 7, ABORT)])
    assert read_log(tmp_path).offsets == [0]


def test_a_marker_whose_records_a_clean_removed_ends_nothing(tmp_path: Path) -> None:
    write_log(tmp_path, [marker(4, 7, ABORT), marker(5, 8, COMMIT), data(6)])
    read = read_log(tmp_path)
    assert (read.offsets, read.scan.aborted, read.scan.last_stable_offset) == ([6], (), 7)


def test_a_batch_that_a_clean_emptied_opens_no_transaction(tmp_path: Path) -> None:
    emptied = whole_batch(b"", (0, 3), (1, 1), 0, BatchOptions(producer_id=7, is_transactional=True))
    write_log(tmp_path, [emptied, data(4)])
    read = read_log(tmp_path)
    assert (read.offsets, read.scan.last_stable_offset) == ([4], 5)


def test_a_log_that_a_clean_emptied_keeps_its_end(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"")
    write_segment(tmp_path, 70, whole_batch(b"", (70, 79), (1, 1), 0))
    found = scan(tmp_path)
    assert (found.log_start_offset, found.last_stable_offset, found.log_end_offset) == (0, 80, 80)


def test_other_control_batches_end_no_transaction(tmp_path: Path) -> None:
    """A quorum's leader change, for one, has type 2."""
    write_log(tmp_path, [data(0, 7), marker(1, 7, 2), data(2)])
    assert scan(tmp_path).last_stable_offset == 0


def test_a_log_begins_at_its_first_segment_or_where_the_broker_noted(tmp_path: Path) -> None:
    write_log(tmp_path, [data(10, count=5)], [data(15, count=5)])
    assert read_log(tmp_path).scan.log_start_offset == 10
    assert read_log(tmp_path, 3).scan.log_start_offset == 10
    assert read_log(tmp_path, 12).offsets == list(range(12, 20))
    assert read_log(tmp_path, 15).offsets == list(range(15, 20))
    assert read_log(tmp_path, 20).offsets == []


def test_a_transaction_that_is_open_below_the_log_start_leaves_nothing_stable(tmp_path: Path) -> None:
    write_log(tmp_path, [data(0, count=5), data(5, 7, 3), data(8, count=8)])
    read = read_log(tmp_path, 10)
    assert (read.scan.log_start_offset, read.scan.last_stable_offset, read.scan.log_end_offset) == (10, 10, 16)
    assert not read.records


def test_a_folder_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    assert scan(tmp_path) == LogScan(0, 0, 0, (), None, ())
