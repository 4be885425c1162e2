"""A segment: one immutable run of records of one log, and the log that it is part of.

On the lake a segment is one Parquet data file. All that the rules need to know of it stands in Iceberg's file metrics,
so that a log is judged and a clean is planned without reading one record.

                log start                first dirty                          log end
                    |                        |                                   |
    segments        [ 0..9 ] [10..31] [40..52] [53..60] [61..77] [78..90] [91..93]
    base_offset       ^0       ^10      ^40      ^53

Offsets inside a segment may have gaps: what was cleaned away leaves its offset behind, unused for ever. So may those of
a log that is ingested, before any clean: a broker's own cleaner was there, or transactions left their markers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter

from keptlog.log.config import TopicConfig
from keptlog.log.holds import NO_HOLDS, Holds
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.truncations import NO_TRUNCATIONS, Truncations
from keptlog.log.uncleanable import Uncleanable
from keptlog.log.words.contradiction import contradiction


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment as its file metrics describe it. ``last_offset`` is inclusive; counts and sizes are of the file."""

    path: str
    base_offset: int
    last_offset: int
    first_timestamp_ms: int
    """The smallest timestamp: never later than that of the first record, so no lag is ever judged too late."""
    largest_timestamp_ms: int
    record_count: int
    size_bytes: int
    tombstone_count: int = 0
    unkeyed_count: int = 0
    stamped_count: int = 0
    """Tombstones whose delete horizon is set."""
    earliest_delete_horizon_ms: int | None = None

    def has_expired_tombstone(self, now_ms: int) -> bool:
        """Whether a tombstone of this segment may be removed at ``now_ms`` (Kafka removes at ``now >= horizon``)."""
        return self.earliest_delete_horizon_ms is not None and self.earliest_delete_horizon_ms <= now_ms


@dataclass(frozen=True, slots=True)
class Log:
    """One topic-partition as it stands in one table snapshot: its segments in offset order, and its state.

    ``checkpoint`` is the stored first dirty offset; null means never cleaned. ``last_stable_offset`` bounds what may be
    cleaned where a source knows of transactions that are still open; null means that all is decided.
    """

    topic_partition: TopicPartition
    config: TopicConfig
    segments: tuple[Segment, ...]
    log_start_offset: int
    log_end_offset: int
    checkpoint: int | None = None
    last_stable_offset: int | None = None
    uncleanable: Uncleanable | None = None
    """Why its last clean failed; null if it did not."""
    watermarks_path: str | None = None
    """The file with the watermarks of its deleted keys (``watermark``); null if there are none."""
    cleaning_to: int | None = None
    """Where a clean in legs ends that is not over (``steps``), or a checkpoint was that a repair gave up.

    It counts if it is above the checkpoint. What lies below was closed, and is no longer as it was appended.
    """
    was_cleaned: bool = False
    """Whether a clean has been over it that left its numbers, however the topic is cleaned now."""
    last_was_expiry: bool = False
    """Whether the last pass over it only expired tombstones; known where records have versions (``plan``)."""
    is_ingested: bool = False
    """Its offsets are those of a source, and have gaps where it has."""
    was_adopted: bool = False
    """A repair has taken its files as another program had left them, with gaps anywhere (ADR 27).

    No longer once a clean has ended behind which no segment is missing (``swap``).
    """
    may_be_adopted: bool = False
    """Whether an older keptlog may have done that: it did not note it, and any repair or clean in legs looks alike.

    It ends in the same way.
    """
    truncations: Truncations = NO_TRUNCATIONS
    """Behind which offsets it may have other records than it had."""
    holds: Holds = NO_HOLDS
    """For which readers its tombstones wait."""
    topic_id: str | None = field(default=None, compare=False)
    """Tells its topic from a later one of the same name; null where nobody has looked at the topic itself."""

    def __post_init__(self) -> None:
        for earlier, later in pairwise(self.segments):
            if later.base_offset <= earlier.last_offset:
                raise contradiction(
                    f"{self.topic_partition}: segment {later.path} begins at offset {later.base_offset}, inside of "
                    f"{earlier.path} which ends at {earlier.last_offset}"
                )


_SIZE_BYTES = attrgetter("size_bytes")


def total_bytes(segments: Iterable[Segment]) -> int:
    """Size of all segments together, in bytes of their files."""
    return sum(map(_SIZE_BYTES, segments))
