"""From records on their way in to staged segments: checked, given a partition and an offset, written, not yet visible.

Records of any order and number go in. What waits is bounded, and what was written is remembered, by the writers that a
batch has for all of its partitions together (``keptlog.table.changes.partition_writers``).

Offsets are inside the files, so they are chosen before the commit: from the log end offset as it was read. If another
append takes them first, ``shifted`` writes the staged segments again with the next free ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.log.given.given import whole_number
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.given.partitioner import partition_for_key
from keptlog.log.record import LARGEST_TIMESTAMP_MS, NewRecord, Record, TimestampType, type_problem
from keptlog.log.segment import Segment, total_bytes
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_reader import read_row_groups
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.changes.partition_writers import PartitionWriters, SegmentPaths
from keptlog.table.commits.topics import Topic


@dataclass(frozen=True, slots=True)
class StagedPartition:
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


@dataclass
class Stager:
    """Stages one batch. Leave it through ``finish`` or ``discard``."""

    files: Files
    topic: Topic
    log_end_offsets: Mapping[int, int]
    paths: SegmentPaths
    now_ms: int
    _count: int = 0
    _next_offsets: dict[int, int] = field(default_factory=dict)
    _writers: PartitionWriters = field(init=False)

    def __post_init__(self) -> None:
        self.now_ms = passed_now_ms(self.now_ms)
        self._writers = PartitionWriters(self.files, self.paths, self.topic.config.segment_bytes)

    def add(self, new: NewRecord) -> None:
        """Take the next record of the batch.

        Raises:
            InvalidRecord: it can't be appended; says which, counted from 1.
        """
        self._count += 1
        size_bytes = self._checked_size_bytes(new)
        partition = self._partition_of(new)
        offset = self._next_offsets.get(partition, self.log_end_offsets[partition])
        is_log_append_time = self.topic.config.message_timestamp_type == "LogAppendTime"
        record = Record(
            offset=offset,
            key=new.key,
            value=new.value,
            timestamp_ms=self.now_ms if is_log_append_time else new.timestamp_ms,
            timestamp_type=TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
            headers=new.headers,
        )
        self._writers.spool(partition, record, size_bytes)
        self._next_offsets[partition] = offset + 1

    def finish(self) -> list[StagedPartition]:
        """Write what waits; the staged segments of every partition that got a record."""
        return [
            StagedPartition(partition, self.log_end_offsets[partition], segments)
            for partition, segments in self._writers.finish().items()
        ]

    def discard(self) -> None:
        """Delete everything that was staged."""
        self._writers.discard()

    def _partition_of(self, new: NewRecord) -> int:
        partitions = self.topic.partitions
        if new.partition is not None:
            partition = self._number(new.partition, "partition")
            if not 0 <= partition < partitions:
                raise self._refused(f"partition {partition} does not exist: use 0 to {partitions - 1}")
            return partition
        if new.key is not None:
            return partition_for_key(new.key, partitions)
        return partition_for_key(self.paths.run_id.encode(), partitions)

    def _checked_size_bytes(self, new: NewRecord) -> int:
        config = self.topic.config
        problem = type_problem(new)
        if problem:
            raise self._refused(problem)
        if new.key is None and config.is_compacted:
            raise self._refused("it has no key, but the topic is compacted; give it one")
        if not -1 <= self._number(new.timestamp_ms, "timestamp") <= LARGEST_TIMESTAMP_MS:
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

    def _number(self, value: object, what: str) -> int:
        try:
            return whole_number(value, f"its {what}")
        except InvalidConfig as error:
            raise self._refused(str(error)) from None

    def _refused(self, why: str) -> InvalidRecord:
        where = f"topic {self.topic.name}: record {self._count}"
        return InvalidRecord(f"{where} can't be appended: {why}; nothing was appended")


def shifted(
    files: Files, staged: StagedPartition, base_offset: int, paths: SegmentPaths, segment_bytes: int
) -> StagedPartition:
    """Staged segments written again so that they begin at ``base_offset``; the old files are deleted.

    If it fails, the old ones are still there, and nothing else. An old one that can't be deleted is left for a purge.
    """
    shift = pa.scalar(base_offset - staged.base_offset, pa.int64())
    position = SCHEMA.get_field_index("offset")
    writer = SegmentWriter(files, paths.for_partition(staged.partition), segment_bytes)
    try:
        for segment in staged.segments:
            for table in read_row_groups(files, segment):
                offsets = pc.add(table["offset"], shift)
                writer.write(table.set_column(position, SCHEMA.field(position), offsets).cast(SCHEMA))
        again = StagedPartition(staged.partition, base_offset, tuple(writer.finish()))
    except BaseException:
        writer.abandon()
        raise
    discard(files, [segment.path for segment in staged.segments])
    return again
