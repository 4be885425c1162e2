"""Brings in files whose rows have offsets, and keeps those: what a sink has left of a topic, or an archive of one.

The topic is then ingested from a source, as if a broker had been read: the log end offset is the position, a later
``keptlog ingest`` goes on from there, and a second run of the same files finds all of its rows below it.

    here     [ 0 .............. 120 )
    files                 [ 90 ........... 200 )        rows below 120 are there already: refused, or skipped if asked
                                                        to; the others go in, and the log ends at 200

Offsets must rise within each partition, over all files in their order. They may have gaps, as compaction leaves them,
so nobody can tell a gap from a file that was forgotten.

This is no ``Source`` (``keptlog.ingest.source``): up to where files go, and whether they may come in, is known only
when the last row was read, so there is nothing to survey and to cut before. They are read once, in this process and
without Spark, and come in whole or not at all. So rows are staged as an append stages records, with the same writers
(``keptlog.table.changes.partition_writers``), and committed as an ingest commits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.log.record import TimestampType
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity, StoredSource
from keptlog.log.topic_partition import MAX_PARTITIONS
from keptlog.storage.schema import SCHEMA, US_PER_MS
from keptlog.table.changes.partition_writers import PartitionWriters, SegmentPaths
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.metadata.lineage import require_own

if TYPE_CHECKING:
    from keptlog.sources.files import FileSet
    from keptlog.table.store import LogStore

Longs = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
"""Indices of rows in a batch."""
_OF_PARTITION = re.compile("partition=([0-9]{1,9})")
"""A folder as Spark and Kafka Connect call it."""


@dataclass(frozen=True, slots=True)
class FileIntake:
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

    def as_arrival(self, truncations: int) -> Arrival:
        """For the commit: a partition that is new here begins at its first offset, any other at its position."""
        first, last = self.segments[0].base_offset, self.segments[-1].last_offset
        from_offset = first if self.position is None else self.position
        return Arrival(
            OffsetRange(self.partition, self.position, from_offset, last + 1, truncations=truncations), self.segments
        )


@dataclass
class _PartitionOrder:
    """How far one partition has come while its rows come in."""

    partition: int
    position: int | None
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

    def advance(self, rows: pa.RecordBatch, offsets: Longs) -> pa.RecordBatch:
        """Rows that were checked, without those that are there."""
        start = int(np.searchsorted(offsets, self.position or 0))
        self.skipped += start
        self.last_offset = int(offsets[-1])
        return rows.slice(start)


@dataclass
class FileIngest:
    """One set of files on its way into one topic. ``new_id`` never returns the same text twice."""

    store: LogStore
    topic: str
    source: SourceIdentity
    run_id: str
    new_id: Callable[[], str]
    skip_existing: bool = False

    def ingest(self, files: FileSet) -> list[FileIntake]:
        """Stage all rows, then commit them together; what each partition got, that has a row in the files.

        Raises:
            InvalidConfig: the topic has records of its own or comes from elsewhere, or the files have no offsets.
            InvalidRecord: what is wrong with the row at the files' place; nothing was ingested.
            StalePlan, CommitStateUnknown, StorageUnavailable: the commit did not land, or nobody knows.
        """
        require_own(self.store.load_table(self.topic))
        topic = self.store.describe_topic(self.topic)
        paths = SegmentPaths(topic.data_location, self.run_id, self.new_id)
        writers = PartitionWriters(self.store.files, paths, topic.config.segment_bytes)
        stored = self._stored()
        positions = dict(enumerate(stored.positions))
        staging = _Staging(positions, writers, topic.config.is_compacted, self.skip_existing)
        intakes = staging.stage(files)
        counts = stored.truncations
        arrivals = [each.as_arrival(counts.get(each.partition, 0)) for each in intakes if each.segments]
        if arrivals:
            partitions = max(topic.partitions, arrivals[-1].range.partition + 1)
            paths_of = [segment.path for each in arrivals for segment in each.segments]
            with discarded_if_refused(self.store.files, lambda: paths_of):
                self.store.ingest(topic, arrivals, self.source, partitions, self.run_id)
        return intakes

    def _stored(self) -> StoredSource:
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
        return stored


@dataclass
class _Staging:
    """The rows of a set of files on their way to staged segments."""

    positions: Mapping[int, int | None]
    writers: PartitionWriters
    needs_key: bool
    skip_existing: bool
    orders: dict[int, _PartitionOrder] = field(default_factory=dict)

    def stage(self, files: FileSet) -> list[FileIntake]:
        """What every partition with a row in the files gets; nothing is left of it if a row is bad."""
        try:
            for rows in files.batches():
                self._take(rows, files)
            segments = self.writers.finish()
        except BaseException:
            self.writers.discard()
            raise
        return [
            FileIntake(number, order.position, order.skipped, segments[number])
            for number, order in sorted(self.orders.items())
        ]

    def _take(self, rows: pa.RecordBatch, files: FileSet) -> None:
        """Stage a batch, or refuse it at its first bad row."""
        partitions = _partitions(rows, files.reading.partition)
        offsets = rows.column("offset").to_numpy()
        places = {int(number): np.flatnonzero(partitions == number) for number in np.unique(partitions)}
        untold = _why_untold(files.place.file, files.reading.partition)
        bad = _bad_rows(rows, partitions, untold, needs_key=self.needs_key) + self._out_of_order(offsets, places)
        if bad:
            index, why = min(bad)
            files.place.number += index + 1
            raise InvalidRecord(f"{why}; nothing was appended")
        for number, at in places.items():
            own = rows if len(places) == 1 else rows.take(pa.array(at))
            fresh = self.orders[number].advance(own, offsets[at])
            self.writers.write(number, _as_records(fresh, number))

    def _out_of_order(self, offsets: Longs, places: Mapping[int, Places]) -> list[tuple[int, str]]:
        """The first row of each partition whose offset can't follow, and why."""
        bad: list[tuple[int, str]] = []
        for number, at in places.items():
            if 0 <= number < MAX_PARTITIONS:
                order = self.orders.setdefault(number, _PartitionOrder(number, self.positions.get(number)))
                found = order.first_bad(offsets[at], skip_existing=self.skip_existing)
                bad += [(int(at[found[0]]), found[1])] if found else []
        return bad


def _partitions(rows: pa.RecordBatch, otherwise: int | None) -> Longs:
    """The partition of each row; -1 where nothing tells."""
    told: Longs = rows.column("partition").fill_null(-1 if otherwise is None else otherwise).to_numpy()
    return told


def _why_untold(path: str, otherwise: int | None) -> str | None:
    """What is wrong with a row that names no partition; null if it has the one that was said.

    Spark and Kafka Connect leave the column out where folders are called so: rows of all such folders would land in the
    one log, whose offsets those of the others are not. A number that no partition has means something else, as a day.
    """
    folders = (_OF_PARTITION.fullmatch(part) for part in reversed(Path(path).parts[:-1]))
    numbers = (int(folder[1]) for folder in folders if folder)
    found = next((number for number in numbers if number < MAX_PARTITIONS), None)
    if found is not None and found != otherwise:
        said = "it has no partition" if otherwise is None else f"it is not of partition {otherwise}"
        todo = (
            f"append each such folder by itself, this one with --partition {found}; or, where that is no partition of "
            "the source's topic (a year, say), rename the folder"
        )
        return f"{said}, its folder is partition={found}: {todo}"
    if otherwise is None:
        return "it has no partition: name its column (--column partition=NAME), or say --partition N"
    return None


def _bad_rows(rows: pa.RecordBatch, partitions: Longs, untold: str | None, *, needs_key: bool) -> list[tuple[int, str]]:
    """The first row of each kind that no topic takes, and why; ``untold`` is that of one without a partition."""

    def first(is_bad: npt.NDArray[np.bool_], why: str) -> list[tuple[int, str]]:
        found = np.flatnonzero(is_bad)
        return [(int(found[0]), why)] if len(found) else []

    is_keyless = pc.is_null(rows.column("key")).to_numpy(zero_copy_only=False)
    return [
        *(first(pc.is_null(rows.column("partition")).to_numpy(zero_copy_only=False), untold) if untold else ()),
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
