"""What becomes of one record when its log is cleaned: the rule that all else in keptlog serves.

The simplest story: of all records of a key, the latest stays and the others are *superseded*. Four complications.

A **tombstone** may be the latest. It stays too, or a reader who saw the old value would never learn of the deletion.
Its first clean stamps a delete horizon (now + ``delete.retention.ms``); a later clean at or after the horizon removes
it. Two passes at least, also when the retention is 0:

    offset  key  value      first clean            clean after the horizon
    0       a    1          -                      -
    1       b    1          b    1                 b    1
    2       a    null       a    null  horizon     -

By then all older records of the key are gone: they were superseded in the clean that stamped it, or before. Registered
readers may hold it longer (``holds``).

A record **beyond the end** of the clean (``offset >= end_offset``) was not looked at and stays as it is.

"Latest" is told by the topic's compaction strategy. By offset it is the last one; by timestamp or by header the latest
may be an older record, or one that is long gone and left a watermark (``strategy``, ``watermark``). Either way one
offset is the latest of its key, and every other record of the key is superseded.

A record **without a key** can't be kept "per key". Appends refuse it; what came in before the topic was compacted goes.

Kafka: ``Cleaner.shouldRetainRecord`` and ``MemoryRecords.filterTo``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.record import LARGEST_TIMESTAMP_MS, Record


class Verdict(StrEnum):
    """What becomes of one record."""

    KEPT = "kept"
    STAMPED = "stamped"
    """A tombstone, kept, and given its delete horizon by this clean."""
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    """A tombstone whose delete horizon has passed."""
    UNKEYED = "unkeyed"

    @property
    def is_retained(self) -> bool:
        return self in {Verdict.KEPT, Verdict.STAMPED}


@dataclass(frozen=True, slots=True)
class CleanBounds:
    """What one clean judges: the offsets it looked at, and the clock it goes by for its whole length."""

    end_offset: int
    """Exclusive; the first dirty offset after this clean."""
    now_ms: int
    delete_retention_ms: int
    due_horizon_ms: int | None = None
    """Tombstones of this delete horizon or an earlier one go: earlier than now where readers hold them. Null is now."""

    @property
    def new_delete_horizon_ms(self) -> int:
        """The horizon of tombstones that this clean is the first to meet; one of "never" ends with the calendar."""
        return min(self.now_ms + self.delete_retention_ms, LARGEST_TIMESTAMP_MS)


def verdict(record: Record, latest_offset: int | None, bounds: CleanBounds) -> Verdict:
    """Judge one record; ``latest_offset`` is that of its key in the offset map, null if the map lacks the key.

    It is -1 for a key of which no record is the latest.
    """
    if record.offset >= bounds.end_offset:
        return Verdict.KEPT
    if record.key is None:
        return Verdict.UNKEYED
    if latest_offset is not None and record.offset != latest_offset:
        return Verdict.SUPERSEDED
    if not record.is_tombstone:
        return Verdict.KEPT
    if record.delete_horizon_ms is None:
        return Verdict.STAMPED
    due_ms = bounds.now_ms if bounds.due_horizon_ms is None else bounds.due_horizon_ms
    return Verdict.EXPIRED if is_expired(record, due_ms) else Verdict.KEPT


def is_expired(record: Record, now_ms: int) -> bool:
    """Whether a record is a tombstone whose delete horizon has passed; Kafka removes it from ``now >= horizon`` on."""
    return record.is_tombstone and record.delete_horizon_ms is not None and now_ms >= record.delete_horizon_ms
