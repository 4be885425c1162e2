"""Logs that were cut off below the position at their source, and have grown up to it again, and no further.

    here     position 120, reached under epoch 7
    there    epoch 7 [ 0 ... 100 )  epoch 9 [ 100 ... 120 )      nothing is to be read, and [100, 120) has other records

Nobody reads there, so no reader would notice. That a leader is later than the one of the position is the only sign; it
is none of anything wrong, as leaders change. So where only the broker can tell, the plan is **unsure** of it until its
pass asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from keptlog.log.cut_off import why_refilled
from keptlog.log.source import IngestPlan, OffsetRange, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition


def without_refilled(
    plan: IngestPlan, stored: StoredSource, found: SourceTopic, *, skip_lost: bool = False
) -> IngestPlan:
    """The plan with such logs stopped, and unsure of those that the source is to be asked about.

    ``skip_lost`` goes on whatever was lost: the later leaders are remembered instead, so that nobody asks again.
    """
    led_anew = _led_anew(plan, stored, found)
    if skip_lost:
        remembered = (replace(each, position_epoch=None) for each in led_anew)
        return replace(plan, ranges=tuple(sorted((*plan.ranges, *remembered), key=lambda each: each.partition)))
    logs = {log.partition: log for log in found.logs}
    unsure: list[OffsetRange] = []
    ends: dict[TopicPartition, int | None] = {}
    for each in led_anew:
        end = logs[each.partition].end_of_epoch(stored.leader_epochs[each.partition])
        if end is None:
            unsure.append(each)
        else:
            ends[TopicPartition(plan.topic, each.partition)] = end
    return replace(without_cut_off(replace(plan, unsure=led_anew), ends, ()), unsure=tuple(unsure))


def without_cut_off(
    plan: IngestPlan, ends: Mapping[TopicPartition, int | None], unanswered: Collection[TopicPartition]
) -> IngestPlan:
    """The plan with what it was unsure of stopped, where the log was cut off below the position; ``ends`` has where.

    Of what is ``unanswered`` nothing is done.
    """
    stopped = dict(plan.stopped)
    left_alone: set[int] = set()
    for each in plan.unsure:
        name, position = TopicPartition(plan.topic, each.partition), each.from_offset
        end = ends.get(name, position)
        if end is None or end < position:
            stopped[each.partition] = why_refilled(name, position, end, plan.kept)
        if each.partition in stopped or name in unanswered:
            left_alone.add(each.partition)
    ranges = tuple(each for each in plan.ranges if each.partition not in left_alone)
    return replace(plan, ranges=ranges, stopped=stopped, unsure=())


def _led_anew(plan: IngestPlan, stored: StoredSource, found: SourceTopic) -> tuple[OffsetRange, ...]:
    """Empty ranges at the positions where logs end under a later leader than that of the position, with both epochs."""
    ranges: list[OffsetRange] = []
    for log in found.logs:
        partition, end = log.partition, log.end_offset
        position = stored.position(partition)
        before, now = stored.leader_epochs.get(partition), log.leader_epoch
        if not position or position != end or partition in plan.stopped:
            continue
        if before is not None and now is not None and now > before:
            ranges.append(OffsetRange(partition, position, position, end, before, now))
    return tuple(ranges)
