"""The two passes over a log as tasks, for work on many logs at once: plain data that pickles.

ScanTask    a whole log      -> what is aborted, where it ends, as JSON
LogPart     a run of segments, and what the scan found -> tables
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_log.batches import Damage, LogSegment
from keptlog.sources.kafka_log.reader import Unfit, read_segment
from keptlog.sources.kafka_log.transactions import AbortedTransaction, DoubtfulTransaction, LogScan, scan_log


@dataclass(frozen=True, slots=True)
class Noted:
    """What a broker noted about one of its logs; null or empty where it noted nothing."""

    log_start_offset: int | None
    high_watermark: int | None
    """Null also where what lies above is wanted."""
    epoch_starts: tuple[tuple[int, int], ...]
    """Leader epochs and where they begin, both rising."""
    position: int = 0
    """Up to where the log is here, which the broker did not note."""


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Looks at all batches of one log."""

    segments: tuple[LogSegment, ...]
    noted: Noted
    skip_corrupt: bool

    @property
    def weight(self) -> int:
        """Its bytes."""
        return sum(segment.size_bytes for segment in self.segments)

    def run(self, _attempt: object) -> dict[str, Any]:
        """The scan, fit for JSON.

        Raises:
            LogCorrupt: something is broken before the log's end, and is not to be skipped.
            StorageUnavailable: a file can't be read.
        """
        noted = self.noted
        known = noted.log_start_offset, noted.high_watermark, noted.position
        return asdict(scan_log(self.segments, *known, skip_corrupt=self.skip_corrupt))


def scan_from(result: Mapping[str, Any]) -> LogScan:
    """The scan that a ``ScanTask`` gave."""
    found = {
        "aborted": tuple(AbortedTransaction(**each) for each in result["aborted"]),
        "torn": Damage(**result["torn"]) if result["torn"] else None,
        "corrupt": tuple(Damage(**each) for each in result["corrupt"]),
        "between_segments": tuple((start, end) for start, end in result["between_segments"]),
        "doubtful": tuple(DoubtfulTransaction(**each) for each in result["doubtful"]),
    }
    return LogScan(**{**result, **found})


@dataclass(frozen=True, slots=True)
class LogPart:
    """Neighbouring segments of one log, of which the offsets in [from, end) are to be read."""

    topic_partition: TopicPartition
    """The one here."""
    segments: tuple[LogSegment, ...]
    scan: LogScan
    """What was found, for these offsets (``LogScan.between``)."""
    from_offset: int
    end_offset: int
    skip_corrupt: bool

    @property
    def weight(self) -> int:
        """Its bytes."""
        return sum(segment.size_bytes for segment in self.segments)

    def read(self, skip: Callable[[str, pa.Table | None], None]) -> Iterator[pa.Table]:
        """The committed records as tables without delete horizons; ``skip`` is told what is left out.

        Of records that no table can hold it gets offsets and keys as well; null if what is left out is corrupt.

        Raises:
            LogCorrupt: something is broken, and is not to be skipped.
            InvalidRecord: no table can hold a record, and it is not to be skipped; those before it were given.
            StorageUnavailable: a file can't be read.
        """

        def skipped(damage: Damage | Unfit) -> None:
            # What is broken before the part was told when that was read. But where it ends is not always known exactly.
            # What begins where the part ends is of the next one.
            is_behind = damage.next_offset >= self.end_offset
            if max(damage.end_offset, damage.next_offset + 1) > self.from_offset and not is_behind:
                skip(str(damage), damage.keyed if isinstance(damage, Unfit) else None)

        for segment in self.segments:
            tables = read_segment(
                segment,
                self.topic_partition.partition,
                self.scan.for_segment(segment),
                skipped if self.skip_corrupt else None,
            )
            for table in tables:
                yield _as_never_cleaned(table)


def _as_never_cleaned(table: pa.Table) -> pa.Table:
    """The records as they were before the broker's cleaner saw them (ADR 24)."""
    column = table.schema.get_field_index("delete_horizon")
    field = table.schema.field(column)
    return table.set_column(column, field, pa.nulls(table.num_rows, field.type))
