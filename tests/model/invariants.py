"""The guarantees G1..G6 as functions: each takes what a reader sees, and fails with the record that breaks it.

``written`` is all that was ever appended to a log, in offset order; ``before`` and ``after`` are what a reader saw
around one step; ``log`` is what he sees now. ``rank`` is the order of a key's records by the topic's strategy. What was
deleted from the head of a log is no business of G1 and G5, and is left out of what they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from keptlog.log.plan import CleanPlan
from keptlog.log.record import Record
from keptlog.log.steps import Compact

Rank = Callable[[Record], tuple[int, int, int]]


def by_offset(record: Record) -> tuple[int, int, int]:
    return 0, 0, record.offset


def g1_the_latest_record_of_every_key_is_kept(
    written: Sequence[Record], log: Sequence[Record], rank: Rank = by_offset
) -> None:
    """A tombstone may be gone, but then with everything older of its key."""
    kept = {record.offset for record in log}
    latest: dict[bytes, Record] = {}
    for record in written:
        if record.key is not None:
            latest[record.key] = max(record, latest.get(record.key, record), key=rank)
    for key, last in latest.items():
        older = [record for record in log if record.key == key and record.offset < last.offset]
        is_forgotten = last.is_tombstone and not older
        assert last.offset in kept or is_forgotten, f"G1: the latest record of {key!r} is lost: {last}"


def g2_order_never_changes(log: Sequence[Record]) -> None:
    for earlier, later in pairwise(log):
        assert earlier.offset < later.offset, f"G2: {later} is read after {earlier}"


def g3_an_offset_never_changes(written: Sequence[Record], log: Sequence[Record]) -> None:
    """Whatever is read at an offset is what was appended there; only a delete horizon may have been added."""
    appended_at = {record.offset: record for record in written}
    for record in log:
        appended = appended_at.get(record.offset)
        assert replace(record, delete_horizon_ms=None) == appended, f"G3: {record} was appended as {appended}"


def g4_the_uncleanable_section_is_untouched(
    before: Sequence[Record], after: Sequence[Record], first_uncleanable_offset: int
) -> None:
    expected = [record for record in before if record.offset >= first_uncleanable_offset]
    found = [record for record in after if record.offset >= first_uncleanable_offset]
    assert found == expected, f"G4: the records from offset {first_uncleanable_offset} on changed"


def g5_a_tombstone_stays_until_its_horizon(
    written: Sequence[Record],
    before: Sequence[Record],
    after: Sequence[Record],
    now_ms: int,
    rank: Rank = by_offset,
) -> None:
    """It goes earlier only for a later record of its key, and never while one remains that came before it."""
    left = {record.offset for record in after}
    for tombstone in before:
        if not tombstone.is_tombstone or tombstone.key is None or tombstone.offset in left:
            continue
        if any(record.key == tombstone.key and rank(record) > rank(tombstone) for record in written):
            continue
        horizon_ms = tombstone.delete_horizon_ms
        assert horizon_ms is not None, f"G5: {tombstone} went without a horizon"
        assert horizon_ms <= now_ms, f"G5: {tombstone} went before its horizon"
        older = [record for record in after if record.key == tombstone.key and record.offset < tombstone.offset]
        assert not older, f"G5: {tombstone} went before {older}"


def g6_cleaning_again_changes_nothing(plan_again: CleanPlan) -> None:
    """Right after a clean nothing is left to compact; a tombstone whose horizon is now may still go."""
    again = [step for step in plan_again.steps if isinstance(step, Compact)]
    assert not again, f"G6: {again} is to be compacted right after a clean"
