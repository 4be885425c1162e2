"""What to bring in from a source, and what must not be brought in silently.

A source is a topic somewhere else, with Kafka's offsets: a broker's, or that in a log directory. Records keep their
offsets, so the log end offset here *is* the position at the source; what is to be read lies between it and the last
stable offset there:

    here    [ 0 ............... 120 )
    there        [ 40 ................... 200 )        read [120, 200)

A topic-partition that is seen for the first time is read from its log start there. Otherwise the position must lie
inside of what is there. If it does not, records are lost or the offsets mean something else now, and the
topic-partition is **stopped**, with the reason and the choice:

    here    [ 0 ... 120 )                              retention there was faster than we were: [120, 150) is lost
    there                    [ 150 ...... 200 )

    here    [ 0 ............... 120 )                  the topic was created anew, or its log was cut off
    there   [ 0 ... 30 )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from keptlog.errors import InvalidConfig
from keptlog.log.segment import Segment
from keptlog.log.topic_partition import MAX_PARTITIONS


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """Where a topic's records come from; stored with it. A topic has at most one source."""

    topic: str
    """Its name there."""
    topic_id: str | None = None
    """Kafka's UUID in base64, which tells a topic from a later one of the same name; null where nobody knows it."""
    bootstrap: str | None = None
    """The broker's address, for those who come back by themselves; null for a directory."""

    def __str__(self) -> str:
        at = f" at {self.bootstrap}" if self.bootstrap else ""
        return f"topic {self.topic}{at}" + (f" (id {self.topic_id})" if self.topic_id else "")

    def may_be(self, other: SourceIdentity) -> bool:
        """Whether nothing that is known of both says that they are two topics."""
        known_ids = {self.topic_id, other.topic_id} - {None}
        return self.topic == other.topic and len(known_ids) < 2

    def updated(self, found: SourceIdentity) -> SourceIdentity:
        """What is stored once ``found`` was read: an id that was not known is kept, the newest address counts."""
        return SourceIdentity(self.topic, self.topic_id or found.topic_id, found.bootstrap or self.bootstrap)


@dataclass(frozen=True, slots=True)
class StoredSource:
    """What a topic here remembers of where its records come from."""

    source: SourceIdentity | None
    """Null if it has none: its records were appended, or it has none yet."""
    positions: tuple[int | None, ...]
    """The log end offset of each partition; null if nothing was ever read or appended there."""


@dataclass(frozen=True, slots=True)
class SourceLog:
    """One topic-partition as it is at its source: committed records have offsets in [log start, end)."""

    partition: int
    log_start_offset: int
    end_offset: int
    """The last stable offset."""


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic as it is at its source, partition by partition."""

    source: SourceIdentity
    logs: tuple[SourceLog, ...]
    is_whole: bool = True
    """Whether these are all of its partitions; of the others, which are elsewhere, a plan says nothing."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What to read of one topic-partition: the offsets in [from, end), which may hold fewer records, or none."""

    partition: int
    position: int | None
    """The log end offset that this was planned from; null if the topic-partition was never read before."""
    from_offset: int
    end_offset: int

    @property
    def is_first(self) -> bool:
        return self.position is None


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would do to one topic. Its ``stopped`` topic-partitions, with the reason, it leaves alone."""

    topic: str
    """The topic here."""
    source: SourceIdentity
    partitions: int
    ranges: tuple[OffsetRange, ...]
    stopped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What was read and staged of one range. The log ends at ``range.end_offset`` once it is committed."""

    range: OffsetRange
    segments: tuple[Segment, ...]


def plan_ingest(
    topic: str,
    stored: SourceIdentity | None,
    positions: Sequence[int | None],
    found: SourceTopic,
    *,
    skip_lost: bool = False,
) -> IngestPlan:
    """What to read, from the positions of all partitions here, none if the topic is new.

    ``skip_lost`` goes on where the source begins, although records before it were never read.

    Raises:
        InvalidConfig: the topic here has another source, or records of its own; or no topic has such a partition.
    """
    _require_one_source(topic, stored, positions, found.source)
    logs = {log.partition: log for log in found.logs}
    for partition in logs:
        if partition >= MAX_PARTITIONS:
            raise InvalidConfig(
                f"topic {found.source.topic} has a partition {partition} at its source: a topic here has 0 to "
                f"{MAX_PARTITIONS - 1}; leave it out, or rename it if that is not its number"
            )
    if stored is not None and not stored.may_be(found.source):
        why = _why_another_topic(topic, stored, found.source)
        partitions = [number for number in range(len(positions)) if found.is_whole or number in logs]
        return IngestPlan(topic, found.source, len(positions), (), dict.fromkeys(partitions, why))
    ranges: list[OffsetRange] = []
    stopped: dict[int, str] = {}
    partition_count = max([len(positions), *(partition + 1 for partition in logs)])
    for partition in range(partition_count):
        position = positions[partition] if partition < len(positions) else None
        log = logs.get(partition)
        if log is None and not found.is_whole:
            continue
        if why_stopped := _why_stopped(topic, position, log, skip_lost=skip_lost):
            stopped[partition] = why_stopped
        elif log and (position is None or position < log.end_offset):
            from_offset = max(position or 0, log.log_start_offset)
            ranges.append(OffsetRange(partition, position, from_offset, log.end_offset))
    return IngestPlan(topic, found.source, partition_count, tuple(ranges), stopped)


def _require_one_source(
    topic: str, stored: SourceIdentity | None, positions: Sequence[int | None], source: SourceIdentity
) -> None:
    """Whether a topic here may come from there, by the names.

    Raises:
        InvalidConfig: it has another source, or records of its own.
    """
    if stored is None and any(positions):
        raise InvalidConfig(
            f"topic {topic} has records of its own, whose offsets are not those of {source.topic}: "
            f"ingest it into another topic (--into {topic}-ingested)"
        )
    if stored is not None and stored.topic != source.topic:
        raise InvalidConfig(
            f"topic {topic} comes from {stored.topic}, not from {source.topic}: ingest it into another topic (--into)"
        )


def _why_another_topic(topic: str, stored: SourceIdentity, source: SourceIdentity) -> str:
    """Why nothing must be read of a topic that has the name of the stored one, and another id."""
    return (
        f"{source.topic} was deleted and created again (its id was {stored.topic_id} and is {source.topic_id}), so "
        f"that its offsets mean other records now: ingest it into another topic (--into {topic}-2), or delete the "
        f"one here first (keptlog topic delete {topic})"
    )


def _why_stopped(topic: str, position: int | None, log: SourceLog | None, *, skip_lost: bool) -> str | None:
    """Why nothing must be read at a position; null if it may be."""
    if position is None:
        return None
    if log is None:
        return "its source does not have this partition any more: look there"
    if position > log.end_offset:
        return (
            f"it ends at offset {position} here and at {log.end_offset} at its source, which was cut off, created "
            f"again, or is an older copy: ingest it into another topic (--into {topic}-2), or delete the one here "
            f"first (keptlog topic delete {topic})"
        )
    if position < log.log_start_offset and not skip_lost:
        return (
            f"offsets {position} to {log.log_start_offset - 1} are no longer at its source, which begins at "
            f"{log.log_start_offset}: go on without those records (--skip-lost), or restore them there first"
        )
    return None
