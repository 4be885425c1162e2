"""From records on their way in to staged segments: checked, given a partition and an offset, written, not yet visible.

Records of any order and number go in; each goes to its partition's spool and from there to its segment writer. What is
held in memory is bounded over all partitions together: beyond ``HELD_BYTES`` the partition that holds most writes a row
group, and a batch for hundreds of partitions needs no more memory than one for a single partition.

Offsets are inside the files, so they are chosen before the commit: from the log end offset as it was read. If another
append takes them first, ``shifted`` writes the staged segments again with the next free ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidRecord
from keptlog.log.partitioner import partition_for_key
from keptlog.log.record import LARGEST_TIMESTAMP_MS, NewRecord, Record, TimestampType
from keptlog.log.segment import Segment, total_bytes
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA, to_arrow
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.topics import Topic

HELD_BYTES = 128 * 2**20
CLOSING_THREADS = 8
"""A file is waited for until it is on the disk; a disk that is asked for many at once has them sooner."""
_SPOOL_BYTES = 2 * 2**20
_SPOOL_RECORDS = 8192
_RECORD_OVERHEAD_BYTES = 512
"""What a record costs in Python beside its bytes."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What an append brings to one partition, written and invisible."""

    partition: int
    base_offset: int
    segments: tuple[Segment, ...]

    @property
    def record_count(self) -> int:
        return sum(segment.record_count for segment in self.segments)

    @property
    def last_offset(self) -> int:
        return self.segments[-1].last_offset

    @property
    def size_bytes(self) -> int:
        return total_bytes(self.segments)


@dataclass(frozen=True, slots=True)
class SegmentPaths:
    """Names new segments of a topic; ``new_id`` never returns the same twice (invariant I2)."""

    data_location: str
    run_id: str
    new_id: Callable[[], str]

    def for_partition(self, partition: int) -> Callable[[int], str]:
        """The path of a new segment of a partition, from its base offset."""
        folder = f"{self.data_location}/partition={partition}"
        return lambda base_offset: f"{folder}/{base_offset:020d}-{self.run_id}-{self.new_id()}.parquet"


@dataclass
class _Spool:
    """One partition's records that no writer has yet, and the writer."""

    partition: int
    base_offset: int
    writer: SegmentWriter
    records: list[Record] = field(default_factory=list)
    spooled_bytes: int = 0
    next_offset: int = 0

    @property
    def held_bytes(self) -> int:
        return self.spooled_bytes + self.writer.waiting_bytes

    def hand_over(self) -> None:
        if self.records:
            self.writer.write(to_arrow(self.partition, self.records))
            self.records, self.spooled_bytes = [], 0

    def finish(self) -> Staged:
        self.hand_over()
        return Staged(self.partition, self.base_offset, tuple(self.writer.finish()))


@dataclass
class Stager:
    """Stages one batch. Leave it through ``finish`` or ``discard``."""

    files: Files
    topic: Topic
    log_end_offsets: Mapping[int, int]
    paths: SegmentPaths
    now_ms: int
    _spools: dict[int, _Spool] = field(default_factory=dict)
    _held_bytes: int = 0
    _count: int = 0
    _written_paths: list[str] = field(default_factory=list)

    def add(self, new: NewRecord) -> None:
        """Take the next record of the batch.

        Raises:
            InvalidRecord: it can't be appended; says which, counted from 1.
        """
        self._count += 1
        size_bytes = self._checked_size_bytes(new)
        spool = self._spool(self._partition_of(new))
        is_log_append_time = self.topic.config.message_timestamp_type == "LogAppendTime"
        spool.records.append(
            Record(
                offset=spool.next_offset,
                key=new.key,
                value=new.value,
                timestamp_ms=self.now_ms if is_log_append_time else new.timestamp_ms,
                timestamp_type=TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
                headers=new.headers,
            )
        )
        spool.next_offset += 1
        spool.spooled_bytes += size_bytes + _RECORD_OVERHEAD_BYTES
        self._held_bytes += size_bytes + _RECORD_OVERHEAD_BYTES
        if spool.spooled_bytes >= _SPOOL_BYTES or len(spool.records) >= _SPOOL_RECORDS:
            spool.hand_over()
        if self._held_bytes >= HELD_BYTES:
            self._let_go()

    def finish(self) -> list[Staged]:
        """Write what waits; the staged segments of every partition that got a record."""
        spools = [spool for _, spool in sorted(self._spools.items())]
        with ThreadPoolExecutor(CLOSING_THREADS) as closing:
            return list(closing.map(_Spool.finish, spools))

    def discard(self) -> None:
        """Delete everything that was staged."""
        for spool in self._spools.values():
            spool.writer.abandon()
        for path in self._written_paths:
            # What can't be deleted is an orphan, for a purge; the error that led here is the one to be told.
            with suppress(OSError):
                self.files.delete(path)

    def _spool(self, partition: int) -> _Spool:
        spool = self._spools.get(partition)
        if spool is None:
            base_offset = self.log_end_offsets[partition]
            writer = SegmentWriter(self.files, self._path_for(partition), self.topic.config.segment_bytes)
            spool = _Spool(partition, base_offset, writer, next_offset=base_offset)
            self._spools[partition] = spool
        return spool

    def _path_for(self, partition: int) -> Callable[[int], str]:
        named = self.paths.for_partition(partition)

        def remembered(base_offset: int) -> str:
            path = named(base_offset)
            self._written_paths.append(path)
            return path

        return remembered

    def _let_go(self) -> None:
        """Write row groups, of the partitions that hold most first, until half of the bound is free."""
        by_size = sorted(self._spools.values(), key=lambda spool: spool.held_bytes, reverse=True)
        self._held_bytes = sum(spool.held_bytes for spool in by_size)
        for spool in by_size:
            if self._held_bytes < HELD_BYTES // 2:
                return
            self._held_bytes -= spool.held_bytes
            spool.hand_over()
            spool.writer.flush()

    def _partition_of(self, new: NewRecord) -> int:
        partitions = self.topic.partitions
        if new.partition is not None:
            if not 0 <= new.partition < partitions:
                raise self._refused(f"partition {new.partition} does not exist: use 0 to {partitions - 1}")
            return new.partition
        if new.key is not None:
            return partition_for_key(new.key, partitions)
        return partition_for_key(self.paths.run_id.encode(), partitions)

    def _checked_size_bytes(self, new: NewRecord) -> int:
        config = self.topic.config
        if new.key is None and config.is_compacted:
            raise self._refused("it has no key, but the topic is compacted; give it one")
        if not -1 <= new.timestamp_ms <= LARGEST_TIMESTAMP_MS:
            raise self._refused(f"timestamp {new.timestamp_ms} is no time in ms between 1970 and 9999, nor -1 for none")
        self._check_distance_to_clock(new.timestamp_ms)
        try:
            headers_bytes = sum(len(name.encode()) + len(value or b"") for name, value in new.headers)
        except UnicodeEncodeError as error:
            raise self._refused(f"a header's name is not text: {error.reason}") from None
        size_bytes = len(new.key or b"") + len(new.value or b"") + headers_bytes
        if size_bytes > config.max_message_bytes:
            raise self._refused(f"it has {size_bytes} bytes, above max.message.bytes={config.max_message_bytes}")
        return size_bytes

    def _check_distance_to_clock(self, timestamp_ms: int) -> None:
        config = self.topic.config
        if timestamp_ms < 0 or config.message_timestamp_type != "CreateTime":
            return
        ahead_ms = timestamp_ms - self.now_ms
        if ahead_ms > config.message_timestamp_after_max_ms:
            limit = f"message.timestamp.after.max.ms={config.message_timestamp_after_max_ms}"
            raise self._refused(f"timestamp {timestamp_ms} lies {ahead_ms} ms after the clock, above {limit}")
        if -ahead_ms > config.message_timestamp_before_max_ms:
            limit = f"message.timestamp.before.max.ms={config.message_timestamp_before_max_ms}"
            raise self._refused(f"timestamp {timestamp_ms} lies {-ahead_ms} ms before the clock, above {limit}")

    def _refused(self, why: str) -> InvalidRecord:
        where = f"topic {self.topic.name}: record {self._count}"
        return InvalidRecord(f"{where} can't be appended: {why}; nothing was appended")


def shifted(files: Files, staged: Staged, base_offset: int, paths: SegmentPaths, segment_bytes: int) -> Staged:
    """Staged segments written again so that they begin at ``base_offset``; the old files are deleted."""
    shift = pa.scalar(base_offset - staged.base_offset, pa.int64())
    position = SCHEMA.get_field_index("offset")
    writer = SegmentWriter(files, paths.for_partition(staged.partition), segment_bytes)
    for segment in staged.segments:
        for table in read_row_groups(files, segment):
            offsets = pc.add(table["offset"], shift)
            writer.write(table.set_column(position, SCHEMA.field(position), offsets).cast(SCHEMA))
    again = Staged(staged.partition, base_offset, tuple(writer.finish()))
    for segment in staged.segments:
        files.delete(segment.path)
    return again
