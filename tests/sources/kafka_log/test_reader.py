"""A segment is read in tables of bounded size, whatever its batches are like."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import pytest

from keptlog.log.record import Record, TimestampType
from keptlog.sources.kafka_log.open_file import READ_BYTES
from keptlog.sources.kafka_log.reader import TABLE_BYTES, TABLE_RECORDS, read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import scan_log
from keptlog.storage.schema import SCHEMA
from tests.sources.kafka_log.encoder import BatchOptions, batch, read_log, write_segment

OLD_LOGS = Path(__file__).parents[2] / "data" / "legacy_logs"


def moved(content: bytes, base_offset: int) -> bytes:
    """A batch at another offset; no checksum covers that."""
    return struct.pack(">q", base_offset) + content[8:]


@pytest.mark.parametrize(("value_bytes", "codec"), [(1000, "none"), (100_000, "none"), (100_000, "zstd"), (0, "none")])
def test_a_large_segment_comes_in_tables_of_bounded_size(tmp_path: Path, value_bytes: int, codec: str) -> None:
    value = bytes(range(250)) * (value_bytes // 250)
    content = batch([Record(number, b"key", value, 1_000) for number in range(100)], BatchOptions(codec=codec))
    plain_bytes = 100 * (value_bytes + 12)
    batches = min(3 * TABLE_BYTES // plain_bytes, 3 * TABLE_RECORDS // 100) + 1
    write_segment(tmp_path, 0, (moved(content, number * 100) for number in range(batches)))
    segments = segments_to_read(tmp_path)
    tables = list(read_segment(segments[0], 3, scan_log(segments)))
    assert all(table.schema.equals(SCHEMA, check_metadata=True) for table in tables)
    assert len(tables) >= 3
    for table in tables:
        assert table.num_rows <= TABLE_RECORDS + 100
        assert table.num_rows * (value_bytes + 12) <= TABLE_BYTES + plain_bytes
        assert set(table["partition"].to_pylist()) == {3}
    offsets = [offset for table in tables for offset in table["offset"].to_pylist()]
    assert offsets == list(range(batches * 100))


def test_a_batch_may_be_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    small, large = Record(0, b"small", b"v", 1), Record(1, b"large", bytes(READ_BYTES + 1), 1)
    write_segment(tmp_path, 0, [batch([small]), batch([large]), moved(batch([small]), 2)])
    assert [len(record.value or b"") for record in read_log(tmp_path).records] == [1, READ_BYTES + 1, 1]


def old_message(offset: int, value: bytes, attributes: int = 0) -> bytes:
    """A message of format v1 with the key k."""
    content = struct.pack(">bbqi", 1, attributes, 1_000, 1) + b"k" + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def test_compressed_messages_of_old_formats_come_in_tables_of_bounded_size(tmp_path: Path) -> None:
    """What they hold counts, and not what is stored of them, or a few MiB would be hundreds."""
    value_bytes = TABLE_BYTES // 8
    wrapped = gzip.compress(b"".join(old_message(number, bytes(value_bytes)) for number in range(4)))
    wrapper = old_message(3, wrapped, attributes=1)
    write_segment(tmp_path, 0, [moved(wrapper, 4 * number + 3) for number in range(8)])
    segments = segments_to_read(tmp_path)
    tables = list(read_segment(segments[0], 3, scan_log(segments)))
    assert [table.num_rows for table in tables] == [8, 8, 8, 8]
    assert [offset for table in tables for offset in table["offset"].to_pylist()] == list(range(32))


def test_a_log_that_was_upgraded_holds_several_formats(tmp_path: Path) -> None:
    old = (OLD_LOGS / "v1.gzip-0" / f"{0:020d}.log").read_bytes()
    write_segment(tmp_path, 0, old + batch([Record(100, b"key", None, 1_000, headers=(("name", None),))]))
    read = read_log(tmp_path)
    assert read.records[:-1] == read_log(OLD_LOGS / "v1.gzip-0").records
    assert read.records[-1].headers == (("name", None),)


def test_the_time_of_the_append_stands_for_every_record_of_its_batch(tmp_path: Path) -> None:
    records = [Record(number, b"key", b"value", 1_000 + number) for number in range(3)]
    write_segment(tmp_path, 0, batch(records, BatchOptions(is_append_time=True)))
    read = {(record.timestamp_ms, record.timestamp_type) for record in read_log(tmp_path).records}
    assert read == {(1_002, TimestampType.LOG_APPEND_TIME)}


def test_only_tombstones_have_the_horizon_of_their_batch(tmp_path: Path) -> None:
    records = [Record(0, b"a", b"", 1_000), Record(1, b"b", None, 2_000), Record(2, b"c", b"value", 3_000)]
    write_segment(tmp_path, 0, batch(records, BatchOptions(delete_horizon_ms=9_000)))
    read = read_log(tmp_path).records
    assert [record.delete_horizon_ms for record in read] == [None, 9_000, None]
    assert [record.timestamp_ms for record in read] == [1_000, 2_000, 3_000]
