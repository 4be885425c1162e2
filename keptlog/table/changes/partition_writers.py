"""The segment writers of one batch, whoever brings it: one for each partition, in bounded memory, and all or nothing.

    records --spool--> [ records that no table has yet ]--+
                                                          +--> [ rows that wait for their row group ] --> staged files
    tables  --write---------------------------------------+
                       '--------------- held: at most HELD_BYTES over all partitions -------------'

Beyond ``HELD_BYTES`` the partitions that hold most write a row group, full or not: so a batch for hundreds of
partitions needs no more memory than one for a single partition. The path of every file is remembered from before it
exists, so that a batch that is given up leaves none behind. A storage that refuses is told from a source that can't be
read here, where both meet: it is ``StorageUnavailable``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from keptlog.disk import refusal_of, refusal_text
from keptlog.errors import StorageUnavailable, first_line
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.segment_path import partition_folder
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.storage.refusal import store_refusal_of
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.waiting.reach import FailureKind, failure_of, todo_about

HELD_BYTES = 128 * 2**20
CLOSING_THREADS = 8
"""A file is waited for until it is on the disk; a disk that is asked for many at once has them sooner."""
_SPOOL_BYTES = 2 * 2**20
_SPOOL_RECORDS = 8192
_RECORD_OVERHEAD_BYTES = 512
"""What a record costs in Python beside its bytes."""


@dataclass(frozen=True, slots=True)
class SegmentPaths:
    """Names new segments of a topic; ``new_id`` never returns the same twice (invariant I2)."""

    data_location: str
    run_id: str
    new_id: Callable[[], str]

    def for_partition(self, partition: int) -> Callable[[int], str]:
        """The path of a new segment of a partition, from its base offset."""
        folder = partition_folder(self.data_location, partition)
        return lambda base_offset: f"{folder}/{base_offset:020d}-{self.run_id}-{self.new_id()}.parquet"


@dataclass
class _PartitionWriter:
    """One partition's writer, and its records that are in no table yet."""

    partition: int
    writer: SegmentWriter
    records: list[Record] = field(default_factory=list)
    spooled_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        return self.spooled_bytes + self.writer.waiting_bytes

    def hand_over(self) -> None:
        """Make a table of the records."""
        if self.records:
            self.writer.write(to_arrow(self.partition, self.records))
            self.records, self.spooled_bytes = [], 0

    def flush(self) -> None:
        self.hand_over()
        self.writer.flush()

    def finish(self) -> tuple[Segment, ...]:
        self.hand_over()
        return tuple(self.writer.finish())


@dataclass
class PartitionWriters:
    """Writes one batch. Within a partition, offsets must rise. Leave it through ``finish`` or ``discard``."""

    files: Files
    paths: SegmentPaths
    segment_bytes: int
    """The size at which a segment is closed."""
    _writers: dict[int, _PartitionWriter] = field(default_factory=dict)
    _held_bytes: int = 0
    """At most: what came in is counted until the next look, also where a full row group was written."""
    _written_paths: list[str] = field(default_factory=list)

    def spool(self, partition: int, record: Record, size_bytes: int) -> None:
        """Take the next record of a partition; ``size_bytes`` are those of its key, value and headers."""
        writer = self._writer(partition)
        writer.records.append(record)
        writer.spooled_bytes += size_bytes + _RECORD_OVERHEAD_BYTES
        self._held_bytes += size_bytes + _RECORD_OVERHEAD_BYTES
        if writer.spooled_bytes >= _SPOOL_BYTES or len(writer.records) >= _SPOOL_RECORDS:
            with self._storing():
                writer.hand_over()
        self._let_go()

    def write(self, partition: int, table: pa.Table) -> None:
        """Take the next rows of a partition, a table of ``SCHEMA``."""
        with self._storing():
            self._writer(partition).writer.write(table)
        self._held_bytes += table.nbytes
        self._let_go()

    def finish(self) -> dict[int, tuple[Segment, ...]]:
        """Write what waits; the segments of every partition that something was taken for, in the order of the numbers.

        A partition that got tables without rows has none.

        Raises:
            StorageUnavailable: the storage did not take it; so do those that take something.
        """
        writers = dict(sorted(self._writers.items()))
        with self._storing(), ThreadPoolExecutor(CLOSING_THREADS) as closing:
            segments = closing.map(_PartitionWriter.finish, writers.values())
            return dict(zip(writers, segments, strict=True))

    def discard(self) -> None:
        """Delete everything that was staged."""
        for each in self._writers.values():
            each.writer.abandon()
        discard(self.files, self._written_paths)

    def _writer(self, partition: int) -> _PartitionWriter:
        writer = self._writers.get(partition)
        if writer is None:
            made = SegmentWriter(self.files, self._remembered(self.paths.for_partition(partition)), self.segment_bytes)
            writer = self._writers[partition] = _PartitionWriter(partition, made)
        return writer

    def _remembered(self, path_for: Callable[[int], str]) -> Callable[[int], str]:
        def remembered(base_offset: int) -> str:
            path = path_for(base_offset)
            self._written_paths.append(path)
            return path

        return remembered

    def _let_go(self) -> None:
        """Once too much is held, write row groups until half of the bound is free, those of who holds most first."""
        if self._held_bytes < HELD_BYTES:
            return
        by_size = sorted(self._writers.values(), key=lambda writer: writer.held_bytes, reverse=True)
        self._held_bytes = sum(each.held_bytes for each in by_size)
        for each in by_size:
            if self._held_bytes < HELD_BYTES // 2:
                return
            self._held_bytes -= each.held_bytes
            with self._storing():
                each.flush()

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            location, what = self.paths.data_location, f"run {self.paths.run_id}"
            if refusal := refusal_of(error):
                raise StorageUnavailable(refusal_text(what, error.filename or location, refusal)).for_good() from error
            said = store_refusal_of(error) or f"{location} can't be written to ({first_line(error)})"
            if failure_of(error) is FailureKind.REFUSED:
                todo = todo_about(error) if store_refusal_of(error) else f"{todo_about(error)}, then run it again"
                raise StorageUnavailable(f"{what}: {said}; nothing landed: {todo}").for_good() from error
            raise StorageUnavailable(f"{what}: {said}; nothing landed, try again") from error
