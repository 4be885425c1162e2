"""What an ingest did, for those who tell it: the command line and Dagster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keptlog.errors import KeptlogError
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.source import Arrival, OffsetRange
from keptlog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Intake:
    """What one topic-partition got; its log ends at the end of ``range`` now."""

    topic_partition: TopicPartition
    range: OffsetRange
    segments: tuple[Segment, ...]
    skipped: tuple[str, ...]
    """What was broken at the source, or no table can hold, and is left out, a line each."""
    unfit: tuple[str, ...] = ()
    """The lines of these that are about whole records, which no table can hold."""
    reconciled: int = 0
    """Of the tombstones, those of keys that are gone at the source without one."""
    cut_short_by: KeptlogError | None = None
    """Why ``range`` ends before what was planned; null if it does not."""

    @property
    def records(self) -> int:
        return sum(segment.record_count for segment in self.segments)

    @property
    def tombstones(self) -> int:
        return sum(segment.tombstone_count for segment in self.segments)

    @property
    def unkeyed(self) -> int:
        return sum(segment.unkeyed_count for segment in self.segments)

    @property
    def broken(self) -> list[str]:
        """Of what is left out, the lines about that of which nobody knows what is in there."""
        return without_unfit(self.skipped, self.unfit)

    @property
    def bytes(self) -> int:
        """Of the files that were written."""
        return total_bytes(self.segments)

    def as_arrival(self, is_compacted: bool | None) -> Arrival:  # noqa: FBT001  # the answer of ``Source.confirm``
        """For the commit. Whether it is compacted there now says nothing of the time since an end that is older."""
        is_as_of_now = is_compacted is not None and self.cut_short_by is None
        was_compacted = not is_as_of_now and self.range.was_compacted
        return Arrival(self.range, self.segments, bool(is_compacted) or was_compacted)


def without_unfit(skipped: Iterable[str], unfit: Iterable[str]) -> list[str]:
    """Lines about what is left out, without those about whole records."""
    whole = set(unfit)
    return [line for line in skipped if line not in whole]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a run did. A topic-partition may be in both: some of it landed, and then something failed."""

    run_id: str
    created: tuple[str, ...]
    """The topics that were seen for the first time."""
    committed: tuple[Intake, ...]
    failed: dict[str, KeptlogError]
    """Topic-partition, or topic if none of it could be begun, to the error; nothing of it is lost."""
    warnings: tuple[str, ...] = ()
    """What stopped nothing and should be known, a line each."""
