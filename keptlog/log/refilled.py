"""Logs that were cut off below the position at their source, and have grown up to it again, and no further.

    here     position 120, reached under epoch 7
    there    epoch 7 [ 0 ... 100 )  epoch 9 [ 100 ... 120 )      nothing is to be read, and [100, 120) has other records

Nobody reads there, so no reader would notice. That a leader is later than the one of the position is the only sign.
"""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.source import IngestPlan, SourceLog, SourceTopic, StoredSource, why_refilled
from keptlog.log.topic_partition import TopicPartition


def has_later_leader(stored: StoredSource, log: SourceLog) -> bool:
    """Whether a log ends at the position, under a later leader than that of the position."""
    before, now = stored.leader_epochs.get(log.partition), log.leader_epoch
    return stored.position(log.partition) == log.end_offset and before is not None and now is not None and now > before


def without_refilled(plan: IngestPlan, stored: StoredSource, found: SourceTopic) -> IngestPlan:
    """The plan, with such logs stopped as far as it is known where their later leaders began."""
    stopped = dict(plan.stopped)
    for log in found.logs:
        if log.partition in stopped or not has_later_leader(stored, log):
            continue
        end = log.end_of_epoch(stored.leader_epochs[log.partition])
        if end is not None and end < log.end_offset:
            stopped[log.partition] = why_refilled(TopicPartition(plan.topic, log.partition), log.end_offset, end)
    return replace(plan, stopped=stopped)
