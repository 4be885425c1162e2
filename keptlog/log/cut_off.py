"""What whoever ingests a log may do that was cut off at its source, or whose topic was created again there.

To truncate the log here is advised where that may be done. Below the log start and where a clean has been it is always
refused, and so it is in a topic whose keys were erased: they would come back with what is read again. So they would in
a topic that takes the place of this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keptlog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Kept:
    """What of a topic here no truncation takes away."""

    has_erasures: bool = False
    """Whether keys were erased in it."""
    below: Mapping[int, int] = field(default_factory=dict)
    """By partition, the offset below which a log is not truncated, if that is known."""

    def may_truncate(self, partition: int, offset: int) -> bool:
        """Whether a truncation to this offset is not refused for what is kept."""
        return not self.has_erasures and offset >= self.below.get(partition, 0)


NOTHING_KEPT = Kept()


def erase_again(topic: str, kept: Kept) -> str:
    """What follows the advice to read everything again."""
    if not kept.has_erasures:
        return ""
    return (
        f"; keys were erased in topic {topic}, and come back with what is read again: erase there too what is at its "
        "source still (keptlog erase)"
    )


def why_refilled(log: TopicPartition, position: int, end_offset: int | None, kept: Kept) -> str:
    """Why a log must not be gone on with that was cut off below the position, and the choice.

    ``end_offset`` is where it was cut off; null if nobody tells. The position itself it can't be.
    """
    last = position - 1 if end_offset is None else end_offset
    cut_off = "" if end_offset is None else f" and ended at offset {end_offset}"
    truncate = (
        f"remove what it lacked here too, and read on (keptlog truncate {log} "
        f"{'OFFSET' if end_offset is None else end_offset}), "
    )
    return (
        f"below offset {position} there are other records at its source than were read, because a leader took over "
        f"that lacked some{cut_off}: {truncate if kept.may_truncate(log.partition, last) else ''}ingest it into "
        f"another topic (--into {log.topic}-again), delete the one here first (keptlog topic delete {log.topic}), or "
        f"keep what was read and go on at offset {position} (--skip-lost){erase_again(log.topic, kept)}"
    )


def why_beyond(log: TopicPartition, position: int, end_offset: int, kept: Kept) -> str:
    """The same of a log that ends before the position."""
    again, delete = f"ingest it into another topic (--into {log.topic}-again)", "delete the one here first"
    delete += f" (keptlog topic delete {log.topic})"
    choice = f"{again}, or {delete}"
    if kept.may_truncate(log.partition, end_offset):
        choice = f"{again}, {delete}, or remove what lies beyond here and read on (keptlog truncate {log} {end_offset})"
    return (
        f"it ends at offset {position} here and at {end_offset} at its source, which was cut off, created again, or is "
        f"an older copy: {choice}{erase_again(log.topic, kept)}"
    )
