"""The writer rolls, stays in bounds, refuses disorder, and describes its files rightly."""

from __future__ import annotations

import errno
import io
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import InvariantViolated
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.storage import segment_writer
from keptlog.storage.schema import from_arrow, to_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.io.files import TableFiles


@dataclass
class Folder:
    """Where a test's segments go; a path is never given out twice."""

    path: Path
    files: TableFiles = field(default_factory=TableFiles)

    def path_for(self, base_offset: int) -> str:
        path = self.path / f"{base_offset}.parquet"
        assert not path.exists()
        return str(path)

    def writer(self, target_bytes: int = 2**30) -> SegmentWriter:
        return SegmentWriter(self.files, self.path_for, target_bytes)

    def write(self, tables: Sequence[pa.Table], target_bytes: int = 2**30) -> list[Segment]:
        writer = self.writer(target_bytes)
        for table in tables:
            writer.write(table)
        return writer.finish()

    def read(self, segments: Sequence[Segment]) -> list[Record]:
        return [
            record
            for segment in segments
            for table in read_row_groups(self.files, segment)
            for record in from_arrow(table.to_batches())
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of 100 records or 4000 bytes, so that a test needs no millions."""
    monkeypatch.setattr(segment_writer, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(segment_writer, "ROW_GROUP_BYTES", 4000)


def records(offsets: range, *, value_bytes: int = 10, seed: int = 7) -> list[Record]:
    """Records whose values can't be compressed."""
    source = random.Random(seed)
    return [Record(offset, b"%d" % offset, source.randbytes(value_bytes), 1000 + offset) for offset in offsets]


def row_groups(segment: Segment) -> Iterator[pq.RowGroupMetaData]:
    metadata = pq.read_metadata(segment.path)
    return (metadata.row_group(index) for index in range(metadata.num_row_groups))


def test_nothing_written_gives_no_file(folder: Folder) -> None:
    assert folder.write([]) == []
    assert folder.write([to_arrow(0, [])]) == []
    assert list(folder.path.iterdir()) == []


def test_what_goes_in_comes_out_in_order(folder: Folder) -> None:
    written = records(range(250))
    tables = [to_arrow(0, written[:1]), to_arrow(0, []), to_arrow(0, written[1:200]), to_arrow(0, written[200:])]
    segments = folder.write(tables)
    assert len(segments) == 1
    assert folder.read(segments) == written


@pytest.mark.usefixtures("small_row_groups")
def test_a_file_is_closed_once_it_has_its_target_size(folder: Folder) -> None:
    written = records(range(1000), value_bytes=30)
    segments = folder.write([to_arrow(0, written[start : start + 70]) for start in range(0, 1000, 70)], 10_000)
    assert len(segments) > 2
    assert folder.read(segments) == written
    assert [segment.base_offset for segment in segments[1:]] == [segment.last_offset + 1 for segment in segments[:-1]]
    row_group_bytes = 4000 + 2000
    assert all(10_000 <= segment.size_bytes <= 10_000 + row_group_bytes for segment in segments[:-1])


@pytest.mark.usefixtures("small_row_groups")
def test_row_groups_are_bounded_in_records_however_the_tables_come(folder: Folder) -> None:
    segments = folder.write([to_arrow(0, records(range(5))), to_arrow(0, records(range(5, 750), value_bytes=0))])
    sizes = [group.num_rows for segment in segments for group in row_groups(segment)]
    assert sum(sizes) == 750
    assert max(sizes) <= 100


@pytest.mark.usefixtures("small_row_groups")
def test_row_groups_are_bounded_in_bytes_when_values_are_large(folder: Folder) -> None:
    segments = folder.write([to_arrow(0, records(range(100), value_bytes=1000))])
    sizes = [group.total_byte_size for segment in segments for group in row_groups(segment)]
    assert len(sizes) > 10
    assert max(sizes) <= 2 * 4000 + 1000


@pytest.mark.parametrize(
    ("records", "records_bytes", "at_once"),
    [(131_072, 32 * 2**20, 4096), (16_384, 32 * 2**20, 512), (1, 2**30, 1), (131_072, 2**20, 8192), (10, 0, 8192)],
)
def test_about_a_page_is_encoded_at_once(records: int, records_bytes: int, at_once: int) -> None:
    assert segment_writer.batch_rows(records, records_bytes) == at_once


def test_a_record_larger_than_the_target_has_a_place(folder: Folder) -> None:
    written = records(range(3), value_bytes=5000)
    assert folder.read(folder.write([to_arrow(0, written)], target_bytes=10)) == written


@pytest.mark.parametrize("offsets", [[[5, 5]], [[5, 4]], [[5, 6], [6, 7]], [[5, 6], [3]]])
def test_offsets_that_do_not_rise_are_refused(folder: Folder, offsets: list[list[int]]) -> None:
    writer = folder.writer()
    tables = [to_arrow(0, [Record(offset, b"k", b"v", 0) for offset in part]) for part in offsets]
    for table in tables[:-1]:
        writer.write(table)
    with pytest.raises(InvariantViolated, match=r"offsets do not rise after .* \(G2\); nothing was committed"):
        writer.write(tables[-1])


def test_offsets_may_have_gaps(folder: Folder) -> None:
    written = [Record(offset, b"k", b"v", 0) for offset in (0, 7, 2**40)]
    (segment,) = folder.write([to_arrow(0, written)])
    assert (segment.base_offset, segment.last_offset, segment.record_count) == (0, 2**40, 3)
    assert folder.read([segment]) == written


@pytest.mark.usefixtures("small_row_groups")
def test_a_segment_is_described_as_its_records_are(folder: Folder) -> None:
    source = random.Random(11)
    written = [
        Record(
            offset,
            source.choice([None, b"k"]),
            source.choice([None, b"v" * 50]),
            source.randint(-1, 10_000),
            delete_horizon_ms=source.choice([None, None, source.randint(0, 9)]),
        )
        for offset in sorted(source.sample(range(5000), 1000))
    ]
    segments = folder.write([to_arrow(0, written)], target_bytes=6000)
    assert len(segments) > 2
    for segment in segments:
        own = [record for record in written if segment.base_offset <= record.offset <= segment.last_offset]
        times = [record.timestamp_ms for record in own]
        horizons = [record.delete_horizon_ms for record in own if record.delete_horizon_ms is not None]
        assert segment == Segment(
            path=str(folder.path / f"{own[0].offset}.parquet"),
            base_offset=own[0].offset,
            last_offset=own[-1].offset,
            first_timestamp_ms=min(times),
            largest_timestamp_ms=max(times),
            record_count=len(own),
            size_bytes=Path(segment.path).stat().st_size,
            tombstone_count=sum(record.is_tombstone for record in own),
            unkeyed_count=sum(record.key is None for record in own),
            stamped_count=len(horizons),
            earliest_delete_horizon_ms=min(horizons),
        )


@pytest.mark.usefixtures("small_row_groups")
def test_the_footer_tells_the_same_as_the_segment(folder: Folder) -> None:
    """Iceberg takes its metrics from there, and plans are made from them."""
    written = [
        Record(o, b"k", None if o % 3 else b"v", 1000 + o, delete_horizon_ms=o or None) for o in range(0, 990, 2)
    ]
    (segment,) = folder.write([to_arrow(4, written)])
    metadata = pq.read_metadata(segment.path)
    names = metadata.schema.to_arrow_schema().names
    assert metadata.num_row_groups > 2
    assert metadata.num_rows == segment.record_count

    def column(name: str) -> list[pq.Statistics]:
        found = (group.column(names.index(name)).statistics for group in row_groups(segment))
        return list(found)

    assert names.index("value") < names.index("headers"), "nested columns would shift the numbers"
    assert min(each.min for each in column("offset")) == segment.base_offset
    assert max(each.max for each in column("offset")) == segment.last_offset
    assert {(each.min, each.max) for each in column("partition")} == {(4, 4)}
    assert min(each.min for each in column("timestamp")).timestamp() * 1000 == segment.first_timestamp_ms
    assert max(each.max for each in column("timestamp")).timestamp() * 1000 == segment.largest_timestamp_ms
    assert sum(each.null_count for each in column("value")) == segment.tombstone_count
    assert sum(each.null_count for each in column("key")) == segment.unkeyed_count == 0


class WatchedFiles(TableFiles):
    """Remembers what it opened."""

    opened: ClassVar[list[pa.NativeFile]] = []

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with super().open_output(path) as sink:
            self.opened.append(sink)
            yield sink


@pytest.mark.usefixtures("small_row_groups")
def test_a_writer_that_was_abandoned_leaves_no_file_open(folder: Folder) -> None:
    writer = SegmentWriter(WatchedFiles(), folder.path_for, target_bytes=2**30)
    writer.write(to_arrow(0, records(range(150))))
    (sink,) = WatchedFiles.opened
    assert not sink.closed
    writer.abandon()
    assert sink.closed
    writer.abandon()


class FullDisk(TableFiles):
    """A disk that has no room for the last of a file."""

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with super().open_output(path) as sink:
            yield sink
            raise OSError(28, "No space left on device")


def test_an_error_of_the_storage_is_not_swallowed(tmp_path: Path) -> None:
    writer = SegmentWriter(FullDisk(), lambda base: str(tmp_path / f"{base}.parquet"), target_bytes=10)
    writer.write(to_arrow(0, records(range(3))))
    with pytest.raises(OSError, match="No space left"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []


class NoRoom(TableFiles):
    """A disk that is full before anything is written, as Arrow tells of it: without a name."""

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        del path

        class Full(io.BytesIO):
            def write(self, _content: object) -> int:
                raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

        yield pa.PythonFile(Full(), mode="w")


def test_a_disk_that_is_full_at_the_first_byte_of_a_segment_is_told_with_its_path(tmp_path: Path) -> None:
    """Whoever tells the error has nothing else to say where there is no room."""
    writer = SegmentWriter(NoRoom(), lambda base: str(tmp_path / f"{base}.parquet"), target_bytes=10)
    writer.write(to_arrow(0, records(range(3))))
    with pytest.raises(OSError, match="No space left") as raised:
        writer.finish()
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path / "0.parquet"))
