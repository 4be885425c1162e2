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

A log that was cut off and has grown past the position again looks as if nothing had happened: a leader that lacked some
records took over (an unclean election, ADR 33). Its **leader epochs** tell. They rise with each leader, so the offsets
up to the first later epoch are those that were there under the epoch of then:

    here     position 120, reached under epoch 7
    there    epoch 7 [ 0 ... 100 )  epoch 9 [ 100 ... 200 )      7 ends at 100: what is here from there on is lost there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.errors import InvalidConfig
from keptlog.log.broker_addresses import share_a_broker
from keptlog.log.cut_off import NOTHING_KEPT, Kept, erase_again, why_beyond, why_refilled
from keptlog.log.segment import Segment
from keptlog.log.topic_partition import MAX_PARTITIONS, TopicPartition

NO_PARTITION = "its source does not have this partition any more: look there"


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

    def was_elsewhere(self, bootstrap: str | None) -> bool:
        """Whether it was last at brokers of which ``bootstrap`` names none: they may be those of another cluster."""
        return bool(self.bootstrap and bootstrap) and not share_a_broker(self.bootstrap or "", bootstrap or "")

    def is_surely(self, other: SourceIdentity) -> bool:
        """Whether an id that both have says that they are one topic, wherever each of them was."""
        return self.topic_id is not None and (self.topic, self.topic_id) == (other.topic, other.topic_id)

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
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    """By partition, the leader epoch that its log had there when the position was reached, where it is known."""
    as_of_ms: Mapping[int, int] = field(default_factory=dict)
    """By partition, when all that was there was here, where it is known (``keptlog.log.lost_deletions``)."""
    truncations: Mapping[int, int] = field(default_factory=dict)
    """By partition, how many truncations its log here has had, if any (``keptlog.log.truncations``)."""
    compacted: frozenset[int] = frozenset()
    """Partitions that were compacted there since then, as far as that was said."""
    kept: Kept = field(default=NOTHING_KEPT, compare=False)
    """What of the topic here no truncation takes away; says nothing of its source."""

    def position(self, partition: int) -> int | None:
        """Of one partition; null as above, and for one that is not here."""
        return self.positions[partition] if partition < len(self.positions) else None


@dataclass(frozen=True, slots=True)
class SourceLog:
    """One topic-partition as it is at its source: committed records have offsets in [log start, end)."""

    partition: int
    log_start_offset: int
    end_offset: int
    """The last stable offset; never before the log start, whatever is told."""
    leader_epoch: int | None = None
    """The latest one of the log, if it is known."""
    epoch_starts: tuple[tuple[int, int], ...] | None = None
    """Leader epochs and where they begin, both rising; null where only the broker can be asked."""
    as_of_ms: int | None = None
    """When it was like this, if that was not just now: the time of a copy."""
    high_watermark: int | None = None
    """Up to where offsets wait for an open transaction to end; null if none do."""

    def __post_init__(self) -> None:
        # A broker deletes records up to the high watermark, so also in the middle of an open transaction, and then says
        # that it begins behind its last stable offset. Also, start and end are two answers: retention may come between.
        object.__setattr__(self, "end_offset", max(self.log_start_offset, self.end_offset))

    @property
    def waiting(self) -> int:
        """How many offsets can't be read before an open transaction ends."""
        return max((self.high_watermark or 0) - self.end_offset, 0)

    def end_of_epoch(self, epoch: int) -> int | None:
        """Up to where the log is what it was under this epoch; null where only the broker can tell."""
        if self.epoch_starts is None:
            return None
        return min([start for later, start in self.epoch_starts if later > epoch], default=self.end_offset)

    def ends_as_of_ms(self, looked_ms: int) -> int:
        """As of when it ends where it does, for somebody who began to look at this time."""
        return looked_ms if self.as_of_ms is None else min(self.as_of_ms, looked_ms)


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic as it is at its source, partition by partition."""

    source: SourceIdentity
    logs: tuple[SourceLog, ...]
    is_whole: bool = True
    """Whether these are all of its partitions; of the others, which are elsewhere, a plan says nothing."""
    is_compacted: bool | None = None
    """Null where nobody asked, or it is not said."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What to read of one topic-partition: the offsets in [from, end), which may hold fewer records, or none."""

    partition: int
    position: int | None
    """The log end offset that this was planned from; null if the topic-partition was never read before."""
    from_offset: int
    end_offset: int
    position_epoch: int | None = None
    """The leader epoch under which the position was reached, if the source is still to be asked whether that holds."""
    end_epoch: int | None = None
    """That of the end, to be remembered."""
    position_as_of_ms: int | None = None
    """When all that was there was here, as far as that is known; of a first range, when it began to be read."""
    end_as_of_ms: int | None = None
    """The same once the range is here, to be remembered."""
    truncations: int = 0
    """How many the log here had had: what was truncated is read again, over the same offsets."""
    was_compacted: bool = False
    """Whether it was compacted there since ``position_as_of_ms``, as far as that is remembered."""

    @property
    def is_first(self) -> bool:
        return self.position is None

    @property
    def reads_something(self) -> bool:
        return self.from_offset < self.end_offset


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What an ingest would do to one topic. Its ``stopped`` topic-partitions, with the reason, it leaves alone."""

    topic: str
    """The topic here."""
    source: SourceIdentity
    partitions: int
    ranges: tuple[OffsetRange, ...]
    stopped: Mapping[int, str] = field(default_factory=dict)
    unsure: tuple[OffsetRange, ...] = ()
    """Where nothing is to be read, and the source is to be asked whether it was cut off (``keptlog.log.refilled``)."""
    kept: Kept = NOTHING_KEPT
    """What of the topic here no truncation takes away."""

    @property
    def names(self) -> list[TopicPartition]:
        """All topic-partitions, here or there."""
        return [TopicPartition(self.topic, number) for number in range(self.partitions)]

    @property
    def lags(self) -> dict[int, int]:
        """By partition that something is to be read of, how many offsets; some may hold no record."""
        return {each.partition: each.end_offset - each.from_offset for each in self.ranges}


@dataclass(frozen=True, slots=True)
class Arrival:
    """What was read and staged of one range. The log ends at ``range.end_offset`` once it is committed."""

    range: OffsetRange
    segments: tuple[Segment, ...]
    is_compacted: bool = False
    """Whether it was compacted there since ``range.end_as_of_ms``, to be remembered."""


def plan_ingest(topic: str, known: StoredSource, found: SourceTopic, *, skip_lost: bool = False) -> IngestPlan:
    """What to read, from the positions of all partitions here, none if the topic is new.

    ``skip_lost`` goes on where the source begins, although records before it were never read.

    Raises:
        InvalidConfig: the topic here has another source, or records of its own; or no topic has such a partition.
    """
    stored, positions = known.source, known.positions
    _require_one_source(topic, stored, positions, found.source)
    logs = {log.partition: log for log in found.logs}
    for partition in logs:
        if partition >= MAX_PARTITIONS:
            raise InvalidConfig(
                f"topic {found.source.topic} has a partition {partition} at its source: a topic here has 0 to "
                f"{MAX_PARTITIONS - 1}; leave it out, or rename it if that is not its number"
            )
    if stored is not None and not stored.may_be(found.source):
        why = _why_another_topic(topic, stored, found.source) + erase_again(topic, known.kept)
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
        why_stopped = _why_stopped(TopicPartition(topic, partition), position, log, known.kept)
        if not (why_stopped or skip_lost):
            why_stopped = _why_lost(position, log, found.source)
        if why_stopped:
            stopped[partition] = _perhaps_elsewhere(stored, found.source) + why_stopped
        elif log and (position is None or position < log.end_offset):
            from_offset = max(position or 0, log.log_start_offset)
            ranges.append(OffsetRange(partition, position, from_offset, log.end_offset, None, log.leader_epoch))
    return IngestPlan(topic, found.source, partition_count, tuple(ranges), stopped, kept=known.kept)


def with_leader_epochs(plan: IngestPlan, stored: StoredSource, found: SourceTopic) -> IngestPlan:
    """The plan without ranges whose log was cut off below the position, and has grown past it again.

    Where only the broker can tell, the range says which epoch it is to be asked for.
    """
    logs = {log.partition: log for log in found.logs}
    ranges: list[OffsetRange] = []
    stopped = dict(plan.stopped)
    for each in plan.ranges:
        epoch = stored.leader_epochs.get(each.partition)
        if epoch is None or each.position is None or each.from_offset != each.position:
            ranges.append(each)
            continue
        end = logs[each.partition].end_of_epoch(epoch)
        if end is None:
            ranges.append(replace(each, position_epoch=epoch))
        elif end < each.position:
            name = TopicPartition(plan.topic, each.partition)
            stopped[each.partition] = why_refilled(name, each.position, end, stored.kept)
        else:
            ranges.append(each)
    return replace(plan, ranges=tuple(ranges), stopped=stopped)


def with_truncations(plan: IngestPlan, stored: StoredSource) -> IngestPlan:
    """The plan with how many truncations the logs here have had."""
    ranges = (replace(each, truncations=stored.truncations.get(each.partition, 0)) for each in plan.ranges)
    return replace(plan, ranges=tuple(ranges))


def with_later_ends(plan: IngestPlan, found: SourceTopic, looked_ms: int) -> IngestPlan:
    """The plan, in what its logs hold by a later look; what could not be seen then is left out.

    ``looked_ms`` is no later than that look, which comes before the reading of what is planned.
    """
    logs = {log.partition: log for log in found.logs}
    stopped = dict(plan.stopped)
    ranges: list[OffsetRange] = []
    for each in plan.ranges:
        log, name = logs.get(each.partition), TopicPartition(plan.topic, each.partition)
        why_stopped = log and _why_stopped(name, each.position, log, plan.kept)
        why_stopped = why_stopped or _why_lost(each.position, log, found.source)
        if log is None and found.is_whole:
            stopped[each.partition] = NO_PARTITION
        elif why_stopped:
            stopped[each.partition] = why_stopped
        elif log and log.end_offset >= each.end_offset:
            ranges.append(_as_by_then(each, log, looked_ms))
        elif log:
            ranges.append(each)
    return replace(plan, ranges=tuple(ranges), stopped=stopped)


def _as_by_then(planned: OffsetRange, log: SourceLog, looked_ms: int) -> OffsetRange:
    """A range in what its log holds by a later look, which ends no earlier than it did."""
    return replace(
        planned,
        from_offset=max(planned.from_offset, log.log_start_offset),
        end_offset=log.end_offset,
        end_epoch=log.leader_epoch if log.end_offset > planned.end_offset else planned.end_epoch,
        position_as_of_ms=looked_ms if planned.is_first else planned.position_as_of_ms,
        end_as_of_ms=log.ends_as_of_ms(looked_ms),
    )


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
    if stored.was_elsewhere(source.bootstrap):
        return (
            f"{source} is not the topic that was read before: that one has the id {stored.topic_id}, and was last at "
            f"{stored.bootstrap}. If it still is there, leave out --bootstrap. If it is not, or was deleted and "
            f"created again, ingest this one into another topic (--into {topic}-again)"
        )
    return (
        f"{source.topic} was deleted and created again, or this is another cluster (its id was {stored.topic_id} and "
        f"is {source.topic_id}), so that its offsets mean other records now: ingest it into another topic (--into "
        f"{topic}-again), or delete the one here first (keptlog topic delete {topic})"
    )


def _perhaps_elsewhere(stored: SourceIdentity | None, source: SourceIdentity) -> str:
    """What comes before an advice that would cost what is whole, if the topic there is another one than is here."""
    if stored is None or not stored.was_elsewhere(source.bootstrap) or stored.is_surely(source):
        return ""
    return f"it was last at {stored.bootstrap}: if it still is there, leave out --bootstrap. If it is not, "


def _why_stopped(name: TopicPartition, position: int | None, log: SourceLog | None, kept: Kept) -> str | None:
    """Why nothing must be read at a position, whatever may be lost; null if it may be."""
    if position is None:
        return None
    if log is None:
        return NO_PARTITION
    return why_beyond(name, position, log.end_offset, kept) if position > log.end_offset else None


def _why_lost(position: int | None, log: SourceLog | None, source: SourceIdentity) -> str | None:
    """The same where records were never read."""
    if position is None or log is None or position >= log.log_start_offset:
        return None
    # Nobody can put records back at their offsets into a broker's log; into a directory one can.
    backup = "take them from a copy of its log directory, if there is one (keptlog import kafka-logs),"
    others = backup if source.bootstrap else "restore them there"
    return (
        f"offsets {position} to {log.log_start_offset - 1} are no longer at its source, which begins at "
        f"{log.log_start_offset}: go on without those records (--skip-lost), or {others} first"
    )
