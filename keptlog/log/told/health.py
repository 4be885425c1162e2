"""How logs stand beside each other: totals, which one is worst, and what the topic of some of them is to expect.

A judgement stays what it was while neither a commit nor a rule changes it, so it may be old. What time alone moves is
compared with the clock here: a log is late from its deadline on, whoever judged it before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from heapq import nsmallest

from keptlog.log.assessment import Assessment
from keptlog.log.segment import total_bytes
from keptlog.log.topic_partition import TopicPartition

_NEVER_MS = 2**63

Rank = tuple[int, bool, bool, int, float, TopicPartition]


@dataclass(frozen=True, slots=True)
class Totals:
    """Over some logs."""

    logs: int
    due: int
    late: int
    uncleanable: int
    largest_late_ms: int
    """By how much the latest log is past its deadline; 0 if none is."""
    earliest_deadline_ms: int | None
    earliest_due_ms: int | None
    """When the clock alone could first make one due; null if only new records can."""
    records: int
    bytes: int
    dirty_records: int
    cleanable_bytes: int
    waiting_bytes: int
    """Dirty, and not cleanable yet."""


def late_ms(assessment: Assessment, now_ms: int) -> int:
    """By how much a log is past its deadline; 0 if it is in time, or has none."""
    return 0 if assessment.deadline_ms is None else max(now_ms - assessment.deadline_ms, 0)


def totals_of(assessments: Iterable[Assessment], now_ms: int) -> Totals:
    """The numbers of these logs together."""
    judged = list(assessments)
    late = [late_ms(each, now_ms) for each in judged]
    segments = [segment for each in judged for segment in each.log.segments]
    return Totals(
        logs=len(judged),
        due=sum(each.trigger is not None for each in judged),
        late=sum(ms > 0 for ms in late),
        uncleanable=sum(each.log.uncleanable is not None for each in judged),
        largest_late_ms=max(late, default=0),
        earliest_deadline_ms=min((each.deadline_ms for each in judged if each.deadline_ms is not None), default=None),
        earliest_due_ms=min((each.due_ms for each in judged if each.due_ms is not None), default=None),
        records=sum(segment.record_count for segment in segments),
        bytes=total_bytes(segments),
        dirty_records=sum(segment.record_count for each in judged for segment in each.sections.dirty),
        cleanable_bytes=sum(total_bytes(each.sections.cleanable) for each in judged),
        waiting_bytes=sum(total_bytes(each.sections.uncleanable + each.sections.active) for each in judged),
    )


def worst_of(assessments: Collection[Assessment], now_ms: int, limit: int) -> list[Assessment]:
    """At most ``limit`` logs: late ones first, then uncleanable and due ones, then by deadline and ratio."""

    def rank(each: Assessment) -> Rank:
        is_failed, is_due = each.log.uncleanable is not None, each.trigger is not None
        # As dirty as it is, a log that no clean comes to is worse than none that one comes to.
        ratio = each.cleanable_ratio if each.log.config.is_compacted else 0.0
        return rank_of(each.deadline_ms, ratio, each.log.topic_partition, now_ms, (is_failed, is_due))

    return nsmallest(limit, assessments, key=rank)


def rank_of(
    deadline_ms: int | None, ratio: float, name: TopicPartition, now_ms: int, failed_and_due: tuple[bool, bool]
) -> Rank:
    """Sort key of a log: the smallest is the worst."""
    is_failed, is_due = failed_and_due
    known_ms = _NEVER_MS if deadline_ms is None else deadline_ms
    return min(known_ms - now_ms, 0), not is_failed, not is_due, known_ms, -ratio, name
