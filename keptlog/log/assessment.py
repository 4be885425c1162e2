"""Which logs to clean now, in which order, and when to look at the others again.

A log is due for one of three reasons, each the name of a sensor:

1. **max compaction lag**: a cleanable record is older than ``max.compaction.lag.ms``. It is late: longest delay first.
2. **dirty ratio**: the cleanable ratio is strictly above ``min.cleanable.dirty.ratio``. Dirtiest first.
3. **tombstone expiry**: a stamped tombstone's delete horizon has passed. Kafka waits for new data to clean, so that an
   idle log keeps its tombstones for ever (KAFKA-8522); here they are due on their own. Earliest horizon first. What a
   registered reader holds (``holds``) is not due until its time is up.

A log whose clean failed is left alone until it is to be tried again (``uncleanable``). One that is not compacted is
never due or late, whatever the broker's settings say: Kafka's cleaner does not look at it.

Lateness goes before dirtiness. Kafka takes the highest ratio whatever is late, and starves deadlines that way
(``LogCleanerManager.grabFilthiestCompactedLog``).

Whatever is not due now becomes due by new data or by the clock. ``due_ms`` is the first time at which the clock alone
makes it due, and then it is. ``good_until_ms`` is when the clock changes anything at all that a judgement says, also of
a log that is due or waits, so that who looks again and again need not judge it before. Only by how much it is late
grows with the clock until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.holds import Holding
from keptlog.log.roll import closing_ms, oldest_ms
from keptlog.log.sections import Sections, expirable, first_undecided, sections_of
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.words.iso_time import has_date


class Trigger(StrEnum):
    """Why a log is cleaned."""

    MAX_COMPACTION_LAG = "max_compaction_lag"
    DIRTY_RATIO = "dirty_ratio"
    TOMBSTONE_EXPIRY = "tombstone_expiry"
    REQUESTED = "requested"
    """Someone asked for it by name; the ratio and the lag are not consulted."""
    RETENTION = "retention"
    """Segments are older than the log may be, or lie below its start; keys have no say."""


# Requests and retention are not here: no judgement gives them.
_URGENCY = {
    Trigger.MAX_COMPACTION_LAG: 0,
    Trigger.DIRTY_RATIO: 1,
    Trigger.TOMBSTONE_EXPIRY: 2,
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """One log judged at one time. Delays and times in ms; ratio in [0, 1]."""

    log: Log
    sections: Sections
    now_ms: int
    trigger: Trigger | None
    cleanable_ratio: float
    max_compaction_delay_ms: int
    """By how much the oldest dirty record is later than the maximum lag allows; 0 if it is in time."""
    earliest_uncompacted_ms: int | None
    """Timestamp of the oldest record that was never cleaned, active segment included; null if nothing ever will be."""
    earliest_delete_horizon_ms: int | None
    """Of the clean section: a tombstone that became dirty again, by a reset checkpoint, goes by being compacted."""
    earliest_expiry_ms: int | None
    """When the first of these tombstones goes if no reader reads on: at its horizon, or later if one holds it."""
    due_ms: int | None
    """When time alone makes this log due; null if only new data can, or a reader who reads on."""

    @property
    def deadline_ms(self) -> int | None:
        """When the oldest record that was never cleaned is late; null if there is none, or it never will be."""
        oldest_ms = self.earliest_uncompacted_ms
        late_ms = None if oldest_ms is None else oldest_ms + self.log.config.max_compaction_lag_ms
        return late_ms if late_ms is not None and has_date(late_ms) else None

    @property
    def late_from_ms(self) -> int | None:
        """Since when the oldest dirty record is later than the maximum lag allows; null if it is in time."""
        return self.now_ms - self.max_compaction_delay_ms if self.max_compaction_delay_ms else None

    @property
    def left_alone_until_ms(self) -> int | None:
        """Before when not even new records make it due: its clean failed. Null if they may at once."""
        mark = self.log.uncleanable
        return mark.retry_at_ms if mark and mark.is_waiting(self.now_ms) else None

    @property
    def good_until_ms(self) -> int | None:
        """When the clock first changes anything that is said here but how late the log is; null if it never does.

        A reader who reads on may change it before.
        """
        log, sections = self.log, self.sections
        moments = [None if self.trigger else self.due_ms, self.earliest_expiry_ms]
        if mark := log.uncleanable:
            moments += [mark.believed_from_ms, mark.retry_at_ms]
        # It is late, and then comes before others, from the moment after its deadline on.
        moments.append(None if self.deadline_ms is None else self.deadline_ms + 1)
        moments.extend(_moving_ms(log, sections))
        closed_times = _stamped_times(sections.cleanable + sections.uncleanable)
        if closed_times and log.config.is_compacted:
            moments.append(min(closed_times) + log.config.max_compaction_lag_ms + 1)
        return min((ms for ms in moments if ms is not None and ms > self.now_ms), default=None)

    @property
    def delete_expired_ms(self) -> int:
        """For how long the first stamped tombstone has been removable; 0 if it is not yet."""
        return max(self.now_ms - self.earliest_expiry_ms, 0) if self.earliest_expiry_ms is not None else 0

    @property
    def holdings(self) -> list[Holding]:
        """The readers for whom tombstones past their horizon wait now, whoever may do so longest first.

        Where nothing is compacted no clean takes them, whoever reads on, and retention waits for nobody.
        """
        if not self.log.config.is_compacted:
            return []
        return self.log.holds.in_force(expirable(self.log, self.sections), self.now_ms)

    @property
    def dirty_version(self) -> str:
        """A few characters that change whenever the dirty section does, or its mark."""
        sections, mark = self.sections, self.log.uncleanable
        version = f"{sections.first_dirty_offset}-{sections.first_uncleanable_offset}-{self.log.log_end_offset}"
        return f"{version}-uncleanable-{mark.attempts}" if mark else version

    @property
    def urgency(self) -> tuple[int, float, float]:
        """Sort key: the smallest is cleaned first."""
        rank = _URGENCY[self.trigger] if self.trigger else len(_URGENCY)
        if self.trigger is Trigger.TOMBSTONE_EXPIRY:
            return rank, -self.delete_expired_ms, 0.0
        return rank, -self.max_compaction_delay_ms, -self.cleanable_ratio


_SAID = tuple(name for name, what in vars(Assessment).items() if isinstance(what, property))


def ask_all(assessment: Assessment) -> None:
    """Let a judgement say once all that it can: what it can't say is met here, and not where all logs are sorted."""
    for name in _SAID:
        getattr(assessment, name)


def assess(log: Log, now_ms: int, active: Sequence[Segment] | None = None) -> Assessment:
    """Judge one log; ``active`` is for ``sections_of``."""
    sections = sections_of(log, now_ms, active)
    if not log.config.is_compacted:
        return Assessment(
            log=log,
            sections=sections,
            now_ms=now_ms,
            trigger=None,
            cleanable_ratio=sections.cleanable_ratio,
            max_compaction_delay_ms=0,
            earliest_uncompacted_ms=None,
            earliest_delete_horizon_ms=None,
            earliest_expiry_ms=None,
            due_ms=None,
        )
    stamped = expirable(log, sections)
    horizons_ms = [ms for s in stamped if (ms := s.earliest_delete_horizon_ms) is not None]
    # Most logs have none, and then there is nobody to be asked what he holds.
    expiries_ms = [ms for s in stamped if (ms := log.holds.expiry_ms(s)) is not None] if horizons_ms else []
    expiry_ms = min(expiries_ms, default=None)
    closed_times = _stamped_times(sections.cleanable + sections.uncleanable)
    trigger = None if _waits_after_failure(log, now_ms) else _trigger(log, sections, expiry_ms, now_ms)
    return Assessment(
        log=log,
        sections=sections,
        now_ms=now_ms,
        trigger=trigger,
        cleanable_ratio=sections.cleanable_ratio,
        max_compaction_delay_ms=_delay_ms(log, closed_times, now_ms),
        earliest_uncompacted_ms=min(closed_times + _stamped_times(sections.active), default=None),
        earliest_delete_horizon_ms=min(horizons_ms, default=None),
        earliest_expiry_ms=expiry_ms,
        due_ms=now_ms if trigger else _due_ms(log, sections, expiry_ms, now_ms),
    )


def in_order_of_urgency(assessments: Iterable[Assessment]) -> list[Assessment]:
    """The assessments that are due, most urgent first; equal ones by name, so that the order is always the same."""
    due = [assessment for assessment in assessments if assessment.trigger]
    return sorted(due, key=lambda assessment: (assessment.urgency, assessment.log.topic_partition))


def _stamped_times(segments: Iterable[Segment]) -> list[int]:
    """The first timestamp of each segment, without 0 and -1, Kafka's "no timestamp" when it measures a lag.

    Where such a record hides the others' first timestamp, their largest stands for it: rather late than never.
    """
    return [time_ms for segment in segments if (time_ms := oldest_ms(segment)) > 0]


def _waits_after_failure(log: Log, now_ms: int) -> bool:
    return log.uncleanable is not None and log.uncleanable.is_waiting(now_ms)


def _delay_ms(log: Log, closed_times: Sequence[int], now_ms: int) -> int:
    latest_in_time_ms = now_ms - log.config.max_compaction_lag_ms
    return max(latest_in_time_ms - min(closed_times, default=latest_in_time_ms), 0)


def _trigger(log: Log, sections: Sections, expiry_ms: int | None, now_ms: int) -> Trigger | None:
    """Why a log is due that does not wait after a failure."""
    closed_times = _stamped_times(sections.cleanable + sections.uncleanable)
    if _delay_ms(log, closed_times, now_ms) > 0 and sections.cleanable:
        return Trigger.MAX_COMPACTION_LAG
    if sections.cleanable_ratio > log.config.min_cleanable_dirty_ratio:
        return Trigger.DIRTY_RATIO
    return Trigger.TOMBSTONE_EXPIRY if expiry_ms is not None and expiry_ms <= now_ms else None


def _due_ms(log: Log, sections: Sections, expiry_ms: int | None, now_ms: int) -> int | None:
    """The first moment at which a log is due if nothing but the clock goes on, if there is one with a date.

    The clock does two things to a dirty section. It closes the active segment, and it lets the minimum lag pass of what
    is closed, from the front. Each moment is calculated: a home has very many logs, and to judge a log as of each
    moment costs many times what one judgement does.
    """
    closed = sections.cleanable + sections.uncleanable
    moments = [] if expiry_ms is None else [expiry_ms]
    moments += _compactable_ms(log, sections, closed, sections.active)
    if sections.active:
        closes_ms = closing_ms(sections.active, log.config)
        moments += [max(closes_ms, ms) for ms in _compactable_ms(log, sections, closed + sections.active, ())]
    if not moments:
        return None
    # What waits after a failure may be due but for that.
    first_ms = max(min(moments), now_ms)
    if log.uncleanable and _waits_after_failure(log, first_ms):
        first_ms = log.uncleanable.retry_at_ms
    return first_ms if first_ms > now_ms and has_date(first_ms) else None


def _compactable_ms(
    log: Log, sections: Sections, closed: Sequence[Segment], active: Sequence[Segment]
) -> Iterator[int]:
    """When a dirty section that is closed up to ``active`` is late, and when enough of it may be cleaned; if ever."""
    decided = closed[: first_undecided(closed, active, log)]
    if not decided:
        return
    lag_ms = log.config.min_compaction_lag_ms
    if times := _stamped_times(closed):
        old_enough_ms = decided[0].largest_timestamp_ms + lag_ms if lag_ms > 0 else 0
        yield max(min(times) + log.config.max_compaction_lag_ms + 1, old_enough_ms)
    cleanable_bytes, clean_bytes = 0, total_bytes(sections.clean)
    minimum = log.config.min_cleanable_dirty_ratio
    for count, segment in enumerate(decided, 1):
        cleanable_bytes += segment.size_bytes
        both_bytes = clean_bytes + cleanable_bytes
        if both_bytes and cleanable_bytes / both_bytes > minimum:
            yield max(each.largest_timestamp_ms for each in decided[:count]) + lag_ms if lag_ms > 0 else 0
            return


def _moving_ms(log: Log, sections: Sections) -> list[int]:
    """When the clock moves a segment to another section: it closes the active one, or a closed one is old enough."""
    moments = []
    if sections.active:
        moments.append(closing_ms(sections.active, log.config))
    if sections.uncleanable:
        moments.append(sections.uncleanable[0].largest_timestamp_ms + log.config.min_compaction_lag_ms)
    return moments
