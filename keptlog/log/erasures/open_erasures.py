"""What can be told of a topic's open erasures without reading one of them: how many, until when, what they wait for.

It is made anew with each change of the erasures and stands in a property of the topic, so that status and sensors know
it of a hundred thousand requests at the price of none. So it must stay small: requests that wait for the same are told
together, and so are deadlines that lie near each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.erasures.erasure import Erasure, ErasureState, ErasureWay

_DEADLINES = 12
_PARTITIONS = 20


class ErasureNeed(StrEnum):
    """What brings an erasure on."""

    SOURCE = "source"
    """A deletion that arrives from the topic's source."""
    REPEAT = "repeat"
    """The request itself, made again: the pass that drops its records has not ended."""
    RETENTION = "retention"
    """The age of the records."""
    CLEAN = "clean"
    """A clean that passes its bounds."""
    EXPIRY = "expiry"
    """A clean that removes its tombstones, once their delete horizon has passed."""
    PURGE = "purge"
    """The purge of what no longer has the records in it."""
    VERIFICATION = "verification"
    """That all files are looked through."""


BY_A_CLEAN = frozenset({ErasureNeed.CLEAN, ErasureNeed.EXPIRY})
"""A clean brings them on; in a log that also goes by its age, retention may come before."""
IN_LOG = BY_A_CLEAN | {ErasureNeed.RETENTION}
"""What is waited for is in the log."""
BY_A_RUN = frozenset({ErasureNeed.PURGE, ErasureNeed.VERIFICATION})
"""The run that brings them on looks how far they are: it lists their storage, or looks all files through."""


@dataclass(frozen=True, slots=True)
class NeedyErasures:
    """Open erasures of one topic with the same need."""

    need: str
    count: int
    earliest_deadline_ms: int | None
    """Null if none has a deadline."""
    since_ms: int
    """Since when the one that has it longest has it; for a purge, when the records left the log."""
    partitions: tuple[int, ...] = ()
    """Where there are tombstones; empty for all, or for too many to be named."""
    newest_since_ms: int | None = None
    """Of those that wait for a verification: since when the last one does. Who is kept open may wait for long."""
    latest_deadline_ms: int | None = None
    """Of those that wait for a verification; null if none has a deadline. The earliest may be long past."""
    is_any_dropped: bool = False
    """Of those that wait for a verification: whether one was dropped whole ``here``, and its watermarks with it."""
    first_asked_ms: int | None = None
    """Of those that wait for what is in the log: when the first was asked for, by the clock that asked. Its tombstone
    has that time, while ``since_ms`` is dated by whoever looked."""

    @property
    def in_log_since_ms(self) -> int:
        """What the first one waits for has come into the log by then, as records are dated there."""
        return max(self.since_ms, self.first_asked_ms or 0)


@dataclass(frozen=True, slots=True)
class DeadlineCount:
    """So many open erasures have this deadline, or one between this and the one before."""

    deadline_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class OpenErasures:
    """The open erasures of one topic."""

    count: int = 0
    earliest_deadline_ms: int | None = None
    next_ms: int | None = None
    """When the clock alone can first bring one of them on; null if only data or a pass can."""
    needs: tuple[NeedyErasures, ...] = ()
    deadlines: tuple[DeadlineCount, ...] = ()
    """Earliest first."""
    ended_count: int = 0
    """Not open any more, and still remembered."""

    def has(self, need: ErasureNeed) -> bool:
        """Whether at least one has this need."""
        return any(each.need == need for each in self.needs)

    def ahead_ms(self, now_ms: int) -> int | None:
        """``next_ms``, if that is still to come; null if not, or if there is none."""
        return self.next_ms if self.next_ms is not None and self.next_ms > now_ms else None

    def is_overdue(self, now_ms: int) -> bool:
        """Whether at least one is open although its deadline has passed."""
        return self.earliest_deadline_ms is not None and self.earliest_deadline_ms < now_ms

    def delay_ms(self, now_ms: int) -> int:
        """By how much the latest of them is later than its deadline; 0 if all are in time."""
        return max(now_ms - self.earliest_deadline_ms, 0) if self.earliest_deadline_ms is not None else 0

    def overdue_count(self, now_ms: int) -> int:
        """How many are overdue; of many different deadlines, those that certainly are, and one at least if one is."""
        if not self.is_overdue(now_ms):
            return 0
        passed = bisect_left(self.deadlines, now_ms, key=lambda each: each.deadline_ms)
        return max(sum(each.count for each in self.deadlines[:passed]), 1)


_NEED_OF_WAY = {ErasureWay.HERE: ErasureNeed.REPEAT, ErasureWay.RETENTION: ErasureNeed.RETENTION}
_NEED_OF_STATE = {
    ErasureState.REQUESTED: ErasureNeed.SOURCE,
    ErasureState.COMPACTED: ErasureNeed.PURGE,
    ErasureState.UNREFERENCED: ErasureNeed.PURGE,
    ErasureState.DELETED: ErasureNeed.VERIFICATION,
}


def open_erasures(erasures: Iterable[Erasure], next_ms: int | None) -> OpenErasures:
    """The summary of a topic's erasures; ``next_ms`` is of those that are open."""
    erasures = list(erasures)
    still_open = [each for each in erasures if each.is_open]
    ended_count = len(erasures) - len(still_open)
    if not still_open:
        return OpenErasures(ended_count=ended_count)
    deadlines = sorted(each.deadline_ms for each in still_open if each.deadline_ms is not None)
    by_need: dict[ErasureNeed, list[Erasure]] = {}
    for each in still_open:
        by_need.setdefault(need_of(each), []).append(each)
    return OpenErasures(
        len(still_open),
        min(deadlines, default=None),
        next_ms,
        tuple(_together(need, by_need[need]) for need in ErasureNeed if need in by_need),
        tuple(_counts(deadlines)),
        ended_count,
    )


def need_of(erasure: Erasure) -> ErasureNeed:
    """What brings an open erasure on."""
    if erasure.state is ErasureState.TOMBSTONED:
        return _NEED_OF_WAY.get(ErasureWay(erasure.way), ErasureNeed.CLEAN)
    if erasure.state is ErasureState.COMPACTED and erasure.gone is None:
        return ErasureNeed.EXPIRY
    return _NEED_OF_STATE[erasure.state]


def _together(need: ErasureNeed, erasures: list[Erasure]) -> NeedyErasures:
    deadlines = [each.deadline_ms for each in erasures if each.deadline_ms is not None]
    partitions: set[int] = set()
    is_verification, is_in_log = need is ErasureNeed.VERIFICATION, need in IN_LOG
    if need in BY_A_CLEAN:
        partitions = {bound.partition for each in erasures for bound in each.bounds if bound.has_tombstones}
    return NeedyErasures(
        need.value,
        len(erasures),
        min(deadlines, default=None),
        min(_since_ms(each) for each in erasures),
        tuple(sorted(partitions)) if len(partitions) <= _PARTITIONS else (),
        max(_since_ms(each) for each in erasures) if is_verification else None,
        max(deadlines, default=None) if is_verification else None,
        is_verification and any(map(_is_dropped, erasures)),
        min(each.requested_ms for each in erasures) if is_in_log else None,
    )


def _is_dropped(erasure: Erasure) -> bool:
    """Whether its records were dropped here, by itself or by a later one, and no tombstone of it has come."""
    is_here = erasure.way == ErasureWay.HERE or bool(erasure.dropped_by)
    return is_here and not any(each.has_tombstones for each in erasure.bounds)


def _since_ms(erasure: Erasure) -> int:
    if erasure.gone and not erasure.has_reached(ErasureState.DELETED):
        return erasure.gone.at_ms
    return erasure.reached[-1].at_ms if erasure.reached else erasure.requested_ms


def _counts(deadlines: list[int]) -> Iterable[DeadlineCount]:
    """Deadlines in order, each with its count; of many, neighbours under the latest of them."""
    counts = list(Counter(deadlines).items())
    size = -(-len(counts) // _DEADLINES)
    for first in range(0, len(counts), max(size, 1)):
        share = counts[first : first + size]
        yield DeadlineCount(share[-1][0], sum(count for _, count in share))
