"""What is remembered of a deleted key, so that a late record of an older version does not bring it back.

By offset nothing is needed: whatever comes after a tombstone is newer. By timestamp or by header a record may arrive
late, with a version below that of the tombstone, when the tombstone itself has expired and is gone:

    offset  key  version
    4       a    9        tombstone, stamped, expired, removed; leaves the watermark (a, 9)
    ...
    70      a    6        late: it would be the only record of its key; the watermark says that it lost

A watermark stands among the records of its key as one of that version at no offset: it wins against lower versions and
against none, and loses a tie, for the later record wins ties. Once a record has won against it, the record itself
guards the key, and the watermark goes.

It can't stay for ever, or deleted keys would be kept for ever: it goes ``keptlog.watermark.retention.ms`` after the
tombstone has gone, with a compaction, or with a purge if none is due. What is cleaned later is taken for new, though it
may have come before: nobody looks what still waits (ADR 11). An expiry forgets none, for it judges no late record. The
tombstone may have gone long after its delete horizon, because a reader held it or nobody cleaned: until then it guarded
its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keptlog.log.record import Record
from keptlog.log.strategy import Order, Strategy

NO_OFFSET = -1
"""The offset in a watermark's order: where it wins, no record of the key survives."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """The version of a deleted key. It means something only under the strategy that it was made by."""

    key: bytes
    version: int
    expires_ms: int

    @property
    def order(self) -> Order:
        return True, self.version, NO_OFFSET

    def is_expired(self, now_ms: int) -> bool:
        return now_ms >= self.expires_ms


def watermark_of(tombstone: Record, strategy: Strategy, retention_ms: int, now_ms: int) -> Watermark | None:
    """What a tombstone that goes now, by its horizon, leaves behind; null if it has no version to guard."""
    version = strategy.version_of(tombstone)
    if version is None or tombstone.key is None or tombstone.delete_horizon_ms is None:
        return None
    return Watermark(tombstone.key, version, now_ms + retention_ms)


def watermarks_after(
    before: Iterable[Watermark],
    new: Iterable[Watermark],
    latest: Mapping[bytes, Order],
    now_ms: int,
    *,
    is_expiry: bool,
) -> list[Watermark]:
    """The watermarks of a log after a pass, in the order of their keys.

    ``new`` are those of the tombstones that the pass removed, ``latest`` the order of the latest record that the pass
    knows of each key: a watermark that lost against it is not needed any more.
    """
    in_time = (mark for mark in before if is_expiry or not mark.is_expired(now_ms))
    kept = {mark.key: mark for mark in in_time if latest.get(mark.key, mark.order) <= mark.order}
    kept |= {mark.key: mark for mark in new if not mark.is_expired(now_ms)}
    return [kept[key] for key in sorted(kept)]
