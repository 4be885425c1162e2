"""A bit that flips in a stored file is found by whoever reads it, or it changes nothing that anybody reads."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage import segment_reader, segment_writer
from keptlog.storage.schema import SCHEMA, to_arrow
from keptlog.storage.segment_reader import open_segment, read_row_groups
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.storage.value_views import with_values
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, read_watermark_file, write_watermark_file
from keptlog.table.io.files import TableFiles
from tests.test_style import OURS, ROOT

FILES = TableFiles()
BY_TIMESTAMP = Strategy(StrategyKind.TIMESTAMP)
FLIPS = 300


@pytest.fixture
def segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Segment:
    """Three row groups with all that records may have: headers, tombstones with and without horizon, no key."""
    monkeypatch.setattr(segment_writer, "ROW_GROUP_ROWS", 400)
    monkeypatch.setattr(segment_reader, "VIEWED_FILE_BYTES", 0)
    source = random.Random(11)
    records = [
        Record(
            offset=offset,
            key=None if offset % 97 == 0 else b"key-%d" % source.randrange(200),
            value=None if offset % 7 == 0 else source.randbytes(20).hex().encode(),
            timestamp_ms=1_700_000_000_000 + offset * 3,
            headers=(("v", b"%08d" % offset),) if offset % 3 == 0 else (),
            delete_horizon_ms=1_800_000_000_000 if offset % 14 == 0 else None,
        )
        for offset in range(1_200)
    ]
    writer = SegmentWriter(FILES, lambda base: str(tmp_path / f"{base}.parquet"), target_bytes=2**30)
    writer.write(to_arrow(0, records))
    (written,) = writer.finish()
    return written


def flipped(content: bytes, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def records_of(segment: Segment) -> list[pa.Table]:
    """All records of a segment, as its readers and as a rewrite read them."""
    with open_segment(FILES, segment) as opened:
        numbers = range(len(opened.row_groups))
        rewritten = [opened.read_for_rewrite(number, SCHEMA.names).select(SCHEMA.names) for number in numbers]
    return [pa.concat_tables(read_row_groups(FILES, segment)), pa.concat_tables(map(with_values, rewritten))]


def silently_wrong(segment: Segment, bits: Iterable[int]) -> list[int]:
    """Those of these bits of a segment's file that may flip so that other records are read, and nothing is said."""
    path = Path(segment.path)
    content = path.read_bytes()
    right = records_of(segment)
    assert right[1].equals(right[0])
    wrong, told = [], [segment.path]
    for bit in bits:
        path.write_bytes(flipped(content, bit))
        try:
            read = records_of(segment)
            if not all(table.equals(whole, check_metadata=True) for table, whole in zip(read, right, strict=True)):
                wrong.append(bit)
        except LogCorrupt as error:
            told.append(str(error))
    path.write_bytes(content)
    assert [text for text in told if segment.path not in text or "try again" in text] == []
    return wrong


def footer_at(segment: Segment) -> int:
    """Where the footer of a segment begins, in bytes."""
    content = Path(segment.path).read_bytes()
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def test_no_bit_anywhere_in_a_segment_flips_unseen(segment: Segment) -> None:
    bits = random.Random(13).sample(range(segment.size_bytes * 8), FLIPS)
    assert silently_wrong(segment, bits) == []


def test_no_bit_of_the_footer_flips_unseen(segment: Segment) -> None:
    bits = random.Random(17).sample(range(footer_at(segment) * 8, segment.size_bytes * 8), FLIPS)
    assert silently_wrong(segment, bits) == []


def test_a_segment_that_was_cut_short_is_corrupt_and_named(segment: Segment) -> None:
    path = Path(segment.path)
    content = path.read_bytes()
    for size_bytes in (0, 7, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size_bytes])
        with pytest.raises(LogCorrupt, match=f"{path} has {size_bytes} bytes, not {len(content)}"):
            list(read_row_groups(FILES, segment))


def test_a_segment_that_was_written_without_checksums_is_read_as_before(
    segment: Segment,
) -> None:
    right = pa.concat_tables(read_row_groups(FILES, segment))
    pq.write_table(right, segment.path, row_group_size=400)
    older = replace(segment, size_bytes=Path(segment.path).stat().st_size)

    with open_segment(FILES, older) as opened:
        opened.read_through()
        assert not opened.has_checksums
    assert all(read.equals(right) for read in records_of(older))


def test_reading_through_sees_what_columns_that_were_asked_for_do_not_show(segment: Segment) -> None:
    path = Path(segment.path)
    content = path.read_bytes()
    in_values = pq.read_metadata(path).row_group(1).column(5)
    assert in_values.path_in_schema == "value"
    path.write_bytes(flipped(content, 8 * (in_values.data_page_offset + in_values.total_compressed_size // 2)))

    assert len(list(read_row_groups(FILES, segment, ["key", "offset"]))) == 3
    with open_segment(FILES, segment) as opened, pytest.raises(LogCorrupt, match=f"{path} .* checksum"):
        opened.read_through()


class Unanswering:
    """Storage that is there when a file is opened, and fails as pyarrow's S3 does: an ``OSError`` without a number."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def open_input(self, path: str, _: int | None = None) -> pa.NativeFile:
        return pa.PythonFile(_Failing(Path(path).open("rb"), self), mode="r")


class _Failing:
    closed = False

    def __init__(self, file: BinaryIO, storage: Unanswering) -> None:
        self.file, self.storage, self.reads = file, storage, 0

    def read(self, size: int = -1) -> bytes:
        self.reads += 1
        if self.reads > 1 and self.storage.failures:
            self.storage.failures -= 1
            raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 28")
        return self.file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        return self.file.seek(position, whence)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("failures", [2, 100])
def test_storage_that_does_not_answer_is_no_corruption(segment: Segment, failures: int) -> None:
    with pytest.raises(OSError, match="NETWORK_CONNECTION"):
        list(read_row_groups(Unanswering(failures), segment))  # type: ignore[arg-type]


def test_a_single_failure_is_got_over(segment: Segment) -> None:
    assert len(list(read_row_groups(Unanswering(1), segment))) == 3  # type: ignore[arg-type]


def marks(count: int) -> pa.Table:
    source = random.Random(19)
    keys = [source.randbytes(source.randrange(30)) for _ in range(count)]
    numbers = [source.randrange(-(2**63), 2**63) for _ in range(2 * count)]
    columns = {"key": keys, "version": numbers[:count], "expires_ms": numbers[count:]}
    return pa.table(columns, schema=WATERMARKS_SCHEMA)


@pytest.mark.parametrize("count", [0, 1, 40])
def test_no_bit_of_a_watermark_file_flips_unseen(tmp_path: Path, count: int) -> None:
    path, right = tmp_path / "marks.arrow", marks(count)
    write_watermark_file(FILES, str(path), BY_TIMESTAMP, right)
    content = path.read_bytes()
    assert read_watermark_file(FILES, str(path), BY_TIMESTAMP, "users").equals(right, check_metadata=True)
    wrong, told = [], [str(path)]
    for bit in random.Random(23).sample(range(len(content) * 8), FLIPS):
        path.write_bytes(flipped(content, bit))
        try:
            if not read_watermark_file(FILES, str(path), BY_TIMESTAMP, "users").equals(right, check_metadata=True):
                wrong.append(bit)
        except LogCorrupt as error:
            told.append(str(error))
    assert [text for text in told if str(path) not in text] == []
    assert wrong == []


def test_a_watermark_file_that_was_cut_short_is_corrupt_and_named(tmp_path: Path) -> None:
    path = tmp_path / "marks.arrow"
    write_watermark_file(FILES, str(path), BY_TIMESTAMP, marks(9))
    content = path.read_bytes()
    for size_bytes in (0, 5, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size_bytes])
        with pytest.raises(LogCorrupt, match=rf"{path} .* put the file back .*: keptlog repair users --adopt"):
            read_watermark_file(FILES, str(path), BY_TIMESTAMP, "users")


def test_watermarks_are_summed_whatever_chunks_and_slices_they_come_in(tmp_path: Path) -> None:
    path, whole = tmp_path / "marks.arrow", marks(40)
    in_pieces = pa.concat_tables([marks(40).slice(0, 7), marks(40).slice(7, 0), marks(40).slice(7)])
    write_watermark_file(FILES, str(path), BY_TIMESTAMP, in_pieces)
    assert read_watermark_file(FILES, str(path), BY_TIMESTAMP, "users").equals(whole)


def test_nobody_but_the_segment_reader_opens_a_segment() -> None:
    """Whoever would could leave the checksums out. A new module here reads, or writes, Parquet that is no segment."""
    reads_parquet = re.compile(r"pyarrow\.parquet|pyarrow import .*parquet|pyarrow\.dataset|pyarrow import .*dataset")
    found = {str(path.relative_to(ROOT)) for path in OURS if reads_parquet.search(path.read_text(encoding="utf-8"))}
    assert {path for path in found if path.startswith("keptlog/")} == {
        "keptlog/storage/segment_reader.py",
        "keptlog/storage/segment_writer.py",
        "keptlog/sinks/parquet_file.py",
        "keptlog/sources/parquet.py",
        "keptlog/arrow_alone.py",  # import it ahead of whoever needs it, and do nothing with it
        "keptlog/spark/worker_imports.py",
    }
