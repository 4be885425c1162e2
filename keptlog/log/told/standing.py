"""How a log stands, in the few numbers that ``keptlog status`` tells of it, without its segments.

A judgement needs all segments of a log; of a hundred thousand logs that is half a million. What people are told of it
needs a dozen numbers, and they hold for a while:

    judged          told again, from the numbers alone          good until: judged anew
      |------------------------------------------------------------|
      now_ms                                                        the clock closes a segment, a log becomes late, …

So they may be put aside, under the metadata location at which the log was judged (``keptlog.table.reading.standings``).
What grows with the clock is not among them, but its beginning: since when a log is late, and not by how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import NamedTuple, Protocol

from keptlog.log.assessment import Assessment
from keptlog.log.segment import total_bytes
from keptlog.log.told.health import Rank, rank_of
from keptlog.log.told.metrics import LastPass, Tally, tally_of
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable


class LogStanding(NamedTuple):
    """One log, from a judgement on until it is no longer good."""

    topic_partition: TopicPartition
    log_start_offset: int
    first_dirty_offset: int
    log_end_offset: int
    segments: int
    clean_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float
    trigger: str | None
    later_due_ms: int | None
    """When time alone could make it due; null if nothing but new records can, or if it is due."""
    late_from_ms: int | None
    earliest_uncompacted_ms: int | None
    deadline_ms: int | None
    uncleanable: Uncleanable | None
    tally: Tally

    def due_ms(self, now_ms: int) -> int | None:
        """When it is due: now, if it is."""
        return now_ms if self.trigger else self.later_due_ms

    def delay_ms(self, now_ms: int) -> int:
        """By how much its oldest dirty record is later than the maximum lag allows; 0 if it is in time."""
        return 0 if self.late_from_ms is None else max(now_ms - self.late_from_ms, 0)

    def rank(self, now_ms: int) -> Rank:
        """Sort key: the smallest is the worst."""
        is_failed, is_due = self.uncleanable is not None, self.trigger is not None
        # As in ``worst_of``: the tally has no ratio of a log that no clean comes to.
        ratio = self.cleanable_ratio if self.tally.uncleanable else self.tally.largest_ratio
        return rank_of(self.deadline_ms, ratio, self.topic_partition, now_ms, (is_failed, is_due))


@dataclass(frozen=True, slots=True)
class Term:
    """From when until when judgements of some logs are good; without an end, for as long as nothing is committed."""

    from_ms: int
    until_ms: int | None

    def has(self, now_ms: int) -> bool:
        """Whether they are good at this time; a clock that was set back has not judged them."""
        return self.from_ms <= now_ms and (self.until_ms is None or now_ms < self.until_ms)


def standing_of(assessment: Assessment, last: LastPass | None) -> LogStanding:
    """The numbers of a judgement, and of what the log's last pass cost."""
    log, sections = assessment.log, assessment.sections
    return LogStanding(
        log.topic_partition,
        log.log_start_offset,
        sections.first_dirty_offset,
        log.log_end_offset,
        len(log.segments),
        total_bytes(sections.clean),
        total_bytes(sections.cleanable),
        assessment.cleanable_ratio,
        assessment.trigger.value if assessment.trigger else None,
        None if assessment.trigger else assessment.due_ms,
        assessment.late_from_ms,
        assessment.earliest_uncompacted_ms,
        assessment.deadline_ms,
        log.uncleanable,
        tally_of(assessment, last),
    )


def term_of(assessments: Iterable[Assessment], now_ms: int) -> Term:
    """For how long what was judged at this time is good, of all of these logs."""
    ends_ms = [until_ms for each in assessments if (until_ms := each.good_until_ms) is not None]
    return Term(now_ms, min(ends_ms, default=None))


class Ranked(Protocol):
    """Logs of one topic, the worst first; as they rank at one time of their term they do at each."""

    @property
    def worst(self) -> LogStanding | None:
        """The first of them, null if there are none."""

    def standings(self) -> Iterable[LogStanding]:
        """All of them."""


def worst_standings(topics: Iterable[Ranked], now_ms: int, limit: int) -> list[LogStanding]:
    """At most ``limit`` logs of all topics, the worst first. Of most topics nothing is asked but the worst log."""
    ranked = [_one_by_one(topic, now_ms) for topic in topics]
    return [standing for _, standing in islice(merge(*ranked, key=lambda each: each[0]), limit)]


def _one_by_one(topic: Ranked, now_ms: int) -> Iterator[tuple[Rank, LogStanding]]:
    if topic.worst is not None:
        yield topic.worst.rank(now_ms), topic.worst
        yield from ((each.rank(now_ms), each) for each in islice(topic.standings(), 1, None))
