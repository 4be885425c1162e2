"""What can be done to one log, as data: ``Compact``, ``Expire``, ``Retain`` or ``Drop``.

    log       [ clean ][ clean ][ clean ][ cleanable ][ cleanable ][ active ]
    Compact   <------------------- inputs ------------------------>             mapped: the cleanable ones
    Expire             <- input ->                                              mapped: none
    Retain    <- old ->                                                         nothing is read or written
    Drop      <------------------- inputs ---------------------------------->   mapped: none

- **Compact**: map the keys of the cleanable section, then judge all segments from the log start to its end.
- **Expire**: no clean is due, or one in legs whose turn is next, but tombstones are past their horizon; only the
  segments that hold them are read.
- **Retain**: old segments go whole (``retention``). It is planned and run by itself, for it has its own times, and a
  log that was compacted a moment ago is another log.
- **Drop**: every record of some keys below an offset goes, in whatever section it lies, because somebody has asked that
  they be erased here. No checkpoint moves, for nothing is cleaned by it.

Each has what it needs and no more. All of them name their inputs and the state that they were planned from: the stored
checkpoint, the log start and the watermarks, and which readers hold tombstones (``holds``). The commit refuses a step
if one of them is no longer so (``StalePlan``); of the holds, if a tombstone would go that is held now.

One complication, of large logs only. A commit takes ``keptlog.cleaner.commit.max.bytes`` of segments at most, so a
compact step with more is done in **legs**: neighbouring segments, in offset order, a commit each. The map is that of
the whole step, and the checkpoint moves with the last leg.

    leg 1 [ clean ][ clean ]   leg 2 [ clean ][ cleanable ]   leg 3 [ cleanable ]  + checkpoint

Between two legs the log is whole: what is gone is superseded by records that are still there. An expire step depends
on nothing behind it, so of a large log it is planned no larger than that, and the next pass has the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from keptlog.log.assessment import Trigger
from keptlog.log.holds import NO_HOLDS, Holds
from keptlog.log.offset_map import UNBOUNDED, MapCapacity
from keptlog.log.segment import Segment
from keptlog.log.strategy import Strategy
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.verdict import CleanBounds

ANY_BYTES = 2**63 - 1
"""Bounds no commit."""
_NEVER_MS = -1
"""Earlier than every delete horizon."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Clean one log up to an offset. Offsets ``end_offset`` are exclusive; times are ms."""

    topic_partition: TopicPartition
    trigger: Trigger
    segments: tuple[Segment, ...]
    """Inputs in offset order: all segments from the log start to ``end_offset``."""
    first_dirty_offset: int
    end_offset: int
    """The checkpoint after the commit."""
    checkpoint: int | None
    """As it was stored; null if the log was never cleaned."""
    log_start_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    strategy: Strategy
    cleanable_ratio: float
    earliest_uncompacted_ms: int | None
    map_capacity: MapCapacity = UNBOUNDED
    watermark_retention_ms: int = 0
    watermarks_path: str | None = None
    """The log's watermarks as the plan found them; null if there are none."""
    ends_early: bool = False
    """Whether the offset map was full before the planned end; another pass goes on from there."""
    holds: Holds = NO_HOLDS
    """For which readers tombstones wait, as the plan found it."""
    commit_max_bytes: int = ANY_BYTES
    """Of inputs in one commit; a segment is never divided."""
    leaves_tombstones: bool = False
    """Whether those past their horizon are left to an expire step.

    By version a tombstone may beat records behind it. Those go in a later leg, and it must not go before them.
    """
    topic_id: str | None = field(default=None, compare=False)
    """That of the log."""
    kind: Literal["compact"] = field(default="compact", init=False)

    @property
    def bounds(self) -> CleanBounds:
        return CleanBounds(self.end_offset, self.now_ms, self.delete_retention_ms)

    def bounds_in(self, segment: Segment) -> CleanBounds:
        """The same for the records of one of its segments, where readers may hold tombstones."""
        return dataclasses.replace(self.bounds, due_horizon_ms=due_horizon_ms(self, segment))

    @property
    def dirty(self) -> tuple[Segment, ...]:
        """The inputs that hold a dirty record; the first of them may hold clean ones too."""
        return tuple(s for s in self.segments if s.last_offset >= self.first_dirty_offset)

    @property
    def legs(self) -> list[tuple[Segment, ...]]:
        """The inputs of each commit, in offset order: one leg, unless they are more than a commit takes."""
        return in_legs(self.segments, self.commit_max_bytes)

    def ended_at(self, end_offset: int) -> Compact:
        """The step as it is carried out when its offset map is full: it ends here, and what lies behind is not in it.

        Returns itself if that is where it was planned to end.
        """
        if end_offset == self.end_offset:
            return self
        segments = tuple(s for s in self.segments if s.base_offset < end_offset)
        return dataclasses.replace(self, end_offset=end_offset, segments=segments, ends_early=True)

    def for_task(self) -> Compact:
        """What a task has to know that is given its segments apart: all but the segments.

        The last stays, for it is rewritten whatever it holds. A large log has ten thousand, for each of many tasks.
        """
        return dataclasses.replace(self, segments=self.segments[-1:])

    def must_rewrite(self, segment: Segment) -> bool:
        """Whether a segment is rewritten even if nothing in it changes.

        A checkpoint may only move in a commit that removes a live file of its log (invariant I1): the last dirty one.
        """
        return segment == self.segments[-1]


@dataclass(frozen=True, slots=True)
class Expire:
    """Remove the tombstones of one log's clean section that are past their delete horizon. Times are ms."""

    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    """Inputs in offset order, no neighbours in general: those that hold such a tombstone."""
    first_dirty_offset: int
    """Where the clean section ends."""
    checkpoint: int | None
    """As it was stored; the commit does not move it."""
    log_start_offset: int
    now_ms: int
    segment_bytes: int
    strategy: Strategy
    cleanable_ratio: float
    watermark_retention_ms: int = 0
    watermarks_path: str | None = None
    """The log's watermarks as the plan found them; null if there are none."""
    holds: Holds = NO_HOLDS
    """For which readers tombstones wait, as the plan found it."""
    topic_id: str | None = field(default=None, compare=False)
    """That of the log."""
    trigger: Literal[Trigger.TOMBSTONE_EXPIRY] = field(default=Trigger.TOMBSTONE_EXPIRY, init=False)
    kind: Literal["expire"] = field(default="expire", init=False)

    @property
    def end_offset(self) -> int:
        """Exclusive; nothing at or behind it is touched."""
        return self.first_dirty_offset


@dataclass(frozen=True, slots=True)
class Retain:
    """Remove the oldest segments of one log, and move its log start offset."""

    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    """What goes, in offset order, from the log's first segment on."""
    new_log_start_offset: int
    """After the commit."""
    checkpoint: int | None
    """As it was stored; null if the log was never cleaned."""
    log_start_offset: int
    now_ms: int
    watermarks_path: str | None = None
    """The log's watermarks as the plan found them; null if there are none."""
    topic_id: str | None = field(default=None, compare=False)
    """That of the log."""
    trigger: Literal[Trigger.RETENTION] = field(default=Trigger.RETENTION, init=False)
    kind: Literal["retain"] = field(default="retain", init=False)


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove every record of some keys from one log, each key below an offset of its own, and its watermarks."""

    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    """Inputs in offset order: all segments that may hold such a record, the active ones and what lies below the log
    start included."""
    end_offsets: Mapping[bytes, int] = field(repr=False)
    """Keyed hash of a key to where its records begin to count as new; exclusive."""
    checkpoint: int | None
    """As it was stored; the commit does not move it."""
    log_start_offset: int
    now_ms: int
    segment_bytes: int
    watermarks_path: str | None = None
    """The log's watermarks as the plan found them; null if there are none."""
    topic_id: str | None = field(default=None, compare=False)
    """That of the log."""
    trigger: Literal[Trigger.REQUESTED] = field(default=Trigger.REQUESTED, init=False)
    kind: Literal["drop"] = field(default="drop", init=False)

    @property
    def end_offset(self) -> int:
        """Exclusive; nothing at or behind it is touched."""
        return max(self.end_offsets.values(), default=0)


CleanStep = Compact | Expire
"""What a clean carries out: it judges records and rewrites segments."""
Step = Compact | Expire | Retain | Drop


def in_legs(segments: Iterable[Segment], max_bytes: int) -> list[tuple[Segment, ...]]:
    """Neighbours in legs of at most so many bytes, or of one segment that has more. No segments are one leg of none.

    sizes 40 50 30 90 120 10, at most 100: [40, 50] [30] [90] [120] [10]
    """
    legs: list[list[Segment]] = [[]]
    leg_bytes = 0
    for segment in segments:
        if legs[-1] and leg_bytes + segment.size_bytes > max_bytes:
            legs.append([])
            leg_bytes = 0
        legs[-1].append(segment)
        leg_bytes += segment.size_bytes
    return [tuple(leg) for leg in legs]


def due_horizon_ms(step: CleanStep, segment: Segment) -> int:
    """Which tombstones of one of its segments a step removes: those whose delete horizon is this or earlier."""
    if isinstance(step, Compact) and step.leaves_tombstones:
        return _NEVER_MS
    return step.holds.due_horizon_ms(segment, step.now_ms)


def has_due_tombstone(step: CleanStep, segment: Segment) -> bool:
    """Whether a step may remove a tombstone of one of its segments by its horizon."""
    return segment.has_expired_tombstone(due_horizon_ms(step, segment))


def overruns_readers(step: CleanStep, segment: Segment) -> bool:
    """Whether a tombstone may go that a reader has not met: its time was up."""
    return has_due_tombstone(step, segment) and bool(step.holds.behind(segment))
