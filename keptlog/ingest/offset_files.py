"""Brings in files whose rows have offsets, and keeps those: what a sink has left of a topic, or an archive of one.

The topic is then ingested from a source, as if a broker had been read: the log end offset is the position, a later
``keptlog ingest`` goes on from there, and a second run of the same files finds all of its rows below it.

    here     [ 0 .............. 120 )
    files                 [ 90 ........... 200 )        rows below 120 are there already: refused, or skipped if asked
                                                        to; the others go in, and the log ends at 200

Offsets must rise within each partition, over all files in their order. They may have gaps, as compaction leaves them,
so nobody can tell a gap from a file that was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.log.record import TimestampType
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.sources.files import FileSet
from keptlog.storage.schema import SCHEMA, US_PER_MS
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.staging import HELD_BYTES, SegmentPaths
from keptlog.table.store import LogStore
from keptlog.table.topics import MAX_PARTITIONS

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one partition got: records at offsets in [first, last], behind the position at which it stood before.

    ``skipped`` rows were there already. Without records the offsets are null.
    """

    partition: int
    position: int | None
    skipped: int
    segments: tuple[Segment, ...]

    @property
    def first_offset(self) -> int | None:
        return self.segments[0].base_offset if self.segments else None

    @property
    def last_offset(self) -> int | None:
        return self.segments[-1].last_offset if self.segments else None

    @property
    def records(self) -> int:
        return sum(segment.record_count for segment in self.segments)

    @property
    def bytes(self) -> int:
        return total_bytes(self.segments)

    def as_arrived(self) -> Arrival:
        """For the commit: a partition that is new here begins at its first offset, any other at its position."""
        first, last = self.segments[0].base_offset, self.segments[-1].last_offset
        from_offset = first if self.position is None else self.position
        return Arrival(OffsetRange(self.partition, self.position, from_offset, last + 1), self.segments)


@dataclass
class _Incoming:
    """One partition while its rows come in."""

    partition: int
    position: int | None
    writer: SegmentWriter
    last_offset: int = -1
    skipped: int = 0

    def first_bad(self, offsets: Longs, *, skip_existing: bool) -> tuple[int, str] | None:
        """The first of some more offsets that can't follow, and why."""
        before = np.concatenate([[self.last_offset], offsets[:-1]])
        falls = offsets <= before
        is_below = np.zeros(len(offsets), np.bool_) if skip_existing else offsets < (self.position or 0)
        bad = np.flatnonzero(falls | is_below)
        if not len(bad):
            return None
        index = int(bad[0])
        if falls[index]:
            return index, (
                f"offset {offsets[index]} of partition {self.partition} does not rise, {before[index]} came before it: "
                "give the files in the order of their offsets"
            )
        return index, (
            f"offset {offsets[index]} of partition {self.partition} is there already, the log ends at {self.position}: "
            "leave out what is there (--skip-existing)"
        )

    def take(self, rows: pa.RecordBatch, offsets: Longs) -> None:
        """Stage rows that were checked, but for those that are there."""
        start = int(np.searchsorted(offsets, self.position or 0))
        self.skipped += start
        self.last_offset = int(offsets[-1])
        self.writer.write(_as_records(rows.slice(start), self.partition))


@dataclass
class FileIngest:
    """One set of files on its way into one topic. ``new_id`` never returns the same text twice."""

    store: LogStore
    topic: str
    source: SourceIdentity
    run_id: str
    new_id: Callable[[], str]
    skip_existing: bool = False
    _incoming: dict[int, _Incoming] = field(default_factory=dict)
    _written_paths: list[str] = field(default_factory=list)

    def run(self, files: FileSet) -> list[Ingested]:
        """Stage all rows, then commit them together; what each partition got, that has a row in the files.

        Raises:
            InvalidConfig: the topic has records of its own or comes from elsewhere, or the files have no offsets.
            InvalidRecord: what is wrong with the row at the files' place; nothing was ingested.
            StalePlan, CommitStateUnknown, StorageUnavailable: the commit did not land, or nobody knows.
        """
        described = self.store.describe_topic(self.topic)
        positions = self._positions()
        paths = SegmentPaths(described.data_location, self.run_id, self.new_id)

        def incoming(partition: int) -> _Incoming:
            if partition not in self._incoming:
                path_for = self._remembered(paths.for_partition(partition))
                writer = SegmentWriter(self.store.files, path_for, described.config.segment_bytes)
                self._incoming[partition] = _Incoming(partition, positions.get(partition), writer)
            return self._incoming[partition]

        try:
            for rows in files.batches():
                self._take(rows, files, incoming, needs_key=described.config.is_compacted)
            ingested = [
                Ingested(number, each.position, each.skipped, tuple(each.writer.finish()))
                for number, each in sorted(self._incoming.items())
            ]
        except BaseException:
            self._discard()
            raise
        arrived = [each.as_arrived() for each in ingested if each.segments]
        if arrived:
            partitions = max(described.partitions, arrived[-1].range.partition + 1)
            self.store.ingest(self.topic, arrived, self.source, partitions, self.run_id)
        return ingested

    def _positions(self) -> dict[int, int | None]:
        stored = self.store.source_of(self.topic)
        if stored.source is None and any(position is not None for position in stored.positions):
            raise InvalidConfig(
                f"topic {self.topic} has records of its own, whose offsets are not those of the files: "
                "create another topic for them, or append them without their offsets (leave out --column offset=…)"
            )
        if stored.source and not stored.source.may_be(self.source):
            raise InvalidConfig(
                f"topic {self.topic} comes from {stored.source.topic}, not from {self.source.topic}: "
                f"if the files do too, say --source-topic {stored.source.topic}; else create another topic for them"
            )
        return dict(enumerate(stored.positions))

    def _take(
        self, rows: pa.RecordBatch, files: FileSet, incoming: Callable[[int], _Incoming], *, needs_key: bool
    ) -> None:
        before = files.place.number
        partitions = _partitions(rows, files.reading.partition)
        offsets = rows.column("offset").to_numpy()
        places = {int(number): np.flatnonzero(partitions == number) for number in np.unique(partitions)}
        bad = _bad_rows(rows, partitions, needs_key=needs_key)
        for number, at in places.items():
            if 0 <= number < MAX_PARTITIONS:
                found = incoming(number).first_bad(offsets[at], skip_existing=self.skip_existing)
                bad += [(int(at[found[0]]), found[1])] if found else []
        if bad:
            index, why = min(bad)
            files.place.number = before + index + 1
            raise InvalidRecord(f"{why}; nothing was appended")
        for number, at in places.items():
            incoming(number).take(rows if len(places) == 1 else rows.take(pa.array(at)), offsets[at])
        self._let_go()

    def _let_go(self) -> None:
        """Write row groups until what waits, of all partitions together, is bounded."""
        by_size = sorted((each.writer for each in self._incoming.values()), key=lambda writer: writer.waiting_bytes)
        held_bytes = sum(writer.waiting_bytes for writer in by_size)
        while held_bytes >= HELD_BYTES:
            held_bytes -= by_size[-1].waiting_bytes
            by_size.pop().flush()

    def _remembered(self, path_for: Callable[[int], str]) -> Callable[[int], str]:
        def remembered(base_offset: int) -> str:
            path = path_for(base_offset)
            self._written_paths.append(path)
            return path

        return remembered

    def _discard(self) -> None:
        for each in self._incoming.values():
            each.writer.abandon()
        for path in self._written_paths:
            self.store.files.delete(path)


def _partitions(rows: pa.RecordBatch, otherwise: int | None) -> Longs:
    """The partition of each row; -1 where nothing tells."""
    told: Longs = rows.column("partition").fill_null(-1 if otherwise is None else otherwise).to_numpy()
    return told


def _bad_rows(rows: pa.RecordBatch, partitions: Longs, *, needs_key: bool) -> list[tuple[int, str]]:
    """The first row of each kind that no topic takes, and why."""

    def first(is_bad: npt.NDArray[np.bool_], why: str) -> list[tuple[int, str]]:
        found = np.flatnonzero(is_bad)
        return [(int(found[0]), why)] if len(found) else []

    is_keyless = pc.is_null(rows.column("key")).to_numpy(zero_copy_only=False)
    return [
        *first(partitions < 0, "it has no partition: name its column (--column partition=NAME), or say --partition N"),
        *first(partitions >= MAX_PARTITIONS, f"its partition does not exist: use 0 to {MAX_PARTITIONS - 1}"),
        *first(is_keyless & needs_key, "it has no key, but the topic is compacted; give it one"),
    ]


def _as_records(rows: pa.RecordBatch, partition: int) -> pa.Table:
    """Rows of one partition as a table of ``SCHEMA``."""
    time = SCHEMA.field("timestamp").type
    count = rows.num_rows
    columns = [
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        rows.column("offset"),
        pc.multiply(rows.column("timestamp"), US_PER_MS).cast(time),
        pa.repeat(pa.scalar(int(TimestampType.CREATE_TIME), pa.int32()), count),
        *(rows.column(name) for name in ("key", "value", "headers")),
        pa.nulls(count, time),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
