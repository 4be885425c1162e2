"""When erasures can next be further, for all of those that one look has found.

There may be thousands of them, of a topic with very many logs and segments. So a log is divided once, and not for each
request; then a request costs its own bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ErasureWay
from keptlog.log.retention import goes_by_age_to, retention_of, too_old_ms
from keptlog.log.roll import closing_ms
from keptlog.log.sections import sections_of
from keptlog.log.segment import Log, Segment

_BASE_OFFSET, _LAST_OFFSET = attrgetter("base_offset"), attrgetter("last_offset")
_at_ms = attrgetter("at_ms")


class Until(NamedTuple):
    """The time of what comes next."""

    at_ms: int
    setting: str | None = None
    """By which it is so late; null if by none."""
    is_by_age: bool = False
    """Whether retention takes what is waited for a clean to pass or to take, before one can."""


_Wait = tuple[ErasureBound, Until | None]
"""What is waited for, and when a clean brings it; null where none does."""


@dataclass(frozen=True)
class NextTimes:
    """What is told of a topic's erasures as its logs are now."""

    logs: Mapping[int, Log]
    """By partition."""
    now_ms: int
    _cleans: dict[int, CleanTimes] = field(default_factory=dict, init=False, repr=False)
    _retentions: dict[int, _RetentionTimes] = field(default_factory=dict, init=False, repr=False)

    def of(self, erasure: Erasure) -> Until | None:
        """The earliest time at which its next state can be reached, past if it waits for a pass.

        Null if only data can, or if nothing takes what it waits for, as the topic is set now.

        Raises:
            KeyError: it waits for retention in a partition that is not there.
        """
        since_ms = erasure.reached[-1].at_ms if erasure.reached else erasure.requested_ms
        # A look dates what it finds by the clock, a little after the time as of which it was asked.
        at_ms = min(since_ms, self.now_ms)
        match erasure.state:
            case ErasureState.REQUESTED:
                return None if erasure.waiting or not erasure.bounds else Until(at_ms)
            case ErasureState.TOMBSTONED:
                return self._last(erasure, at_ms, self._passed(erasure))
            case ErasureState.COMPACTED if erasure.gone is None:
                return self._last(erasure, at_ms, self._horizons(erasure, since_ms))
            case ErasureState.COMPACTED:
                deleted_ms = erasure.gone.at_ms + self._delay_ms if erasure.gone else at_ms
                return max(Until(at_ms), Until(deleted_ms, "file.delete.delay.ms"), key=_at_ms)
            case ErasureState.UNREFERENCED | ErasureState.DELETED:
                return Until(at_ms)
            case ErasureState.VERIFIED:
                return None

    def _last(self, erasure: Erasure, at_ms: int, waits: list[_Wait]) -> Until | None:
        """When the last bound is passed, or its tombstones are gone, by a clean or by retention; null if never."""
        untils = [self._or_retained(*each) for each in waits]
        found = [each for each in untils if each]
        if len(found) < len(untils):
            return None
        until = max([Until(at_ms), *found], key=_at_ms)
        cleaned_ms = [each.at_ms for _, each in waits if each]
        is_sooner = until.at_ms < max(cleaned_ms) if cleaned_ms else bool(waits)
        return until._replace(is_by_age=is_sooner and erasure.way != ErasureWay.RETENTION)

    @cached_property
    def _delay_ms(self) -> int:
        return max((log.config.file_delete_delay_ms for log in self.logs.values()), default=0)

    def _passed(self, erasure: Erasure) -> list[_Wait]:
        """Each bound that has to be passed, and when a clean can pass it."""
        if erasure.way == ErasureWay.RETENTION:
            return [(each, None) for each in erasure.bounds]
        to_be_cleaned = [each for each in erasure.to_be_cleaned if each.partition in self.logs]
        return [(each, self._cleaned(each)) for each in to_be_cleaned]

    def _cleaned(self, bound: ErasureBound) -> Until | None:
        """When a clean can pass a bound; null where none comes, as the topic is set now."""
        is_compacted = self.logs[bound.partition].config.is_compacted
        return self._clean_times(bound.partition).passes(bound.end_offset) if is_compacted else None

    def _horizons(self, erasure: Erasure, compacted_ms: int) -> list[_Wait]:
        """Each bound with tombstones, and when these expire by a clean.

        Where no segment says so, ``delete.retention.ms`` after the clean was seen.
        """
        horizons: list[_Wait] = []
        for bound in erasure.bounds:
            log = self.logs.get(bound.partition)
            if log is None or not bound.has_tombstones:
                continue
            told = [each.earliest_delete_horizon_ms for each in covering(log, bound) if each.earliest_delete_horizon_ms]
            horizon_ms = max(told, default=compacted_ms + log.config.delete_retention_ms)
            until = Until(horizon_ms, "delete.retention.ms") if log.config.is_compacted else None
            horizons.append((bound, until))
        return horizons

    def _or_retained(self, bound: ErasureBound, cleaned: Until | None) -> Until | None:
        """When what lies below a bound goes: by then, or with retention, which needs no closed segment; null if never.

        Of one way only the other is left, as in a topic that was compacted and is not any more.
        """
        times = self._retention_times(bound.partition)
        if cleaned is None and times.ages.below(bound.end_offset) is None:
            return Until(0)  # it is gone
        taken = times.takes(bound.end_offset)
        return min((each for each in (cleaned, taken) if each), key=_at_ms, default=None)

    def _clean_times(self, partition: int) -> CleanTimes:
        if partition not in self._cleans:
            self._cleans[partition] = CleanTimes.of(self.logs[partition], self.now_ms)
        return self._cleans[partition]

    def _retention_times(self, partition: int) -> _RetentionTimes:
        if partition not in self._retentions:
            self._retentions[partition] = _RetentionTimes.of(self.logs[partition], self.now_ms)
        return self._retentions[partition]


@dataclass(frozen=True, slots=True)
class CleanTimes:
    """When a clean can first pass offsets of one log, if nothing more is appended."""

    active_from: int | None
    """Where the active segment begins; null if there is none."""
    closes: Until
    """When the clock closes it."""
    lag_ms: int
    dirty: _Youngest

    @classmethod
    def of(cls, log: Log, now_ms: int) -> CleanTimes:
        """As the log is now."""
        sections = sections_of(log, now_ms)
        active, lag_ms = sections.active, log.config.min_compaction_lag_ms
        active_from = active[0].base_offset if active else None
        closes = Until(closing_ms(active, log.config) if active else 0, log.config.max_segment_setting)
        return cls(active_from, closes, lag_ms, _Youngest.of(sections.dirty if lag_ms > 0 else ()))

    def passes_ms(self, end_offset: int) -> int:
        """When it can pass this offset; past if it can now."""
        return self.passes(end_offset).at_ms

    def passes(self, end_offset: int) -> Until:
        """The same, with the setting that keeps it from it for longest."""
        moments = [Until(0)]
        if self.active_from is not None and self.active_from < end_offset:
            moments.append(self.closes)
        youngest_ms = self.dirty.below(end_offset)
        if youngest_ms is not None:
            moments.append(Until(youngest_ms + self.lag_ms, "min.compaction.lag.ms"))
        return max(moments, key=_at_ms)


@dataclass(frozen=True, slots=True)
class _RetentionTimes:
    """When retention can take all that lies below an offset of one log, if nothing more is appended."""

    taken: int
    """So many segments, the first ones, it takes now."""
    retention_ms: int
    by_age_to: int
    """What begins from here on never goes by its age; what is below does, whatever follows it."""
    ages: _Youngest

    @classmethod
    def of(cls, log: Log, now_ms: int) -> _RetentionTimes:
        taken, ages = len(retention_of(log, now_ms).old), _Youngest.of(log.segments)
        return cls(taken, log.config.retention_ms, goes_by_age_to(log), ages)

    def takes(self, end_offset: int) -> Until | None:
        """Past if it can now; null if nothing is there, if it never does, or if nobody knows."""
        if 0 < bisect_left(self.ages.bases, end_offset) <= self.taken:
            return Until(0)
        youngest_ms = self.ages.below(end_offset)
        if end_offset > self.by_age_to or youngest_ms is None:
            return None
        return Until(too_old_ms(youngest_ms, self.retention_ms), "retention.ms")


@dataclass(frozen=True, slots=True)
class _Youngest:
    """The largest timestamp of all segments that begin below an offset."""

    bases: Sequence[int]
    largest_ms: Sequence[int]

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> _Youngest:
        """These are in the order of their offsets."""
        largest_ms = accumulate((each.largest_timestamp_ms for each in segments), max)
        return cls([each.base_offset for each in segments], list(largest_ms))

    def below(self, end_offset: int) -> int | None:
        """Null if none begins there."""
        count = bisect_left(self.bases, end_offset)
        return self.largest_ms[count - 1] if count else None


def covering(log: Log, bound: ErasureBound) -> Sequence[Segment]:
    """The live segments that may hold the tombstones of a bound."""
    first = bisect_left(log.segments, bound.base_offset, key=_LAST_OFFSET)
    end = bisect_left(log.segments, bound.end_offset, key=_BASE_OFFSET)
    return [each for each in log.segments[first:end] if each.tombstone_count]
