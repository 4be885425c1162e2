"""Tombstones wait for registered readers: who holds which, until when at most, and what is due all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.assessment import Trigger, assess
from keptlog.log.clean import clean
from keptlog.log.holds import Hold, Holding, Holds, valid_hold_max_ms, valid_reader_name
from keptlog.log.plan import make_plan, plan_step, why_left_alone
from keptlog.log.record import Record
from keptlog.log.reference import ReferenceLog, ReferenceReader
from keptlog.log.result import Overrun
from keptlog.log.segment import Log
from keptlog.log.steps import Compact, Expire
from keptlog.log.told.explain import explain
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import LONG_MAX
from tests.building import NOW_MS, Clean, config, log, segment

HORIZON_MS = NOW_MS - 100
SEGMENTS = [segment(0, 9, horizon_ms=HORIZON_MS), segment(10, 19, horizon_ms=HORIZON_MS)]


def held_by(*holds: Hold, erasure_end_ms: int | None = None) -> Log:
    return log(SEGMENTS, checkpoint=20, holds=Holds(holds, erasure_end_ms))


def test_a_tombstone_waits_for_a_reader_who_has_not_met_it() -> None:
    step = plan_step(assess(held_by(Hold("search", 10, 1000)), NOW_MS))
    assert isinstance(step, Expire)
    assert step.segments == (SEGMENTS[0],)
    assert plan_step(assess(held_by(Hold("search", 0, 1000)), NOW_MS)) is None
    step = plan_step(assess(held_by(Hold("search", 20, 1000)), NOW_MS))
    assert step
    assert step.segments == tuple(SEGMENTS)


def test_a_position_inside_of_a_segment_counts_as_its_beginning() -> None:
    assert plan_step(assess(held_by(Hold("search", 9, 1000)), NOW_MS)) is None


@pytest.mark.parametrize("passed_ms", [1000, 1001])
def test_after_the_bound_it_goes_whoever_is_behind(passed_ms: int) -> None:
    judged = held_by(Hold("search", 0, 1000), Hold("fast", 20, 5000))
    before = assess(judged, HORIZON_MS + 999)
    assert (before.trigger, before.due_ms, before.delete_expired_ms) == (None, HORIZON_MS + 1000, 0)
    after = assess(judged, HORIZON_MS + passed_ms)
    assert (after.trigger, after.delete_expired_ms) == (Trigger.TOMBSTONE_EXPIRY, passed_ms - 1000)
    step = plan_step(after)
    assert step
    assert step.segments == tuple(SEGMENTS)


def test_the_reader_who_may_hold_longest_decides() -> None:
    assert assess(held_by(Hold("a", 0, 1000), Hold("b", 5, 300), Hold("c", 0, 2000)), NOW_MS).due_ms == (
        HORIZON_MS + 2000
    )


def test_nothing_is_held_past_the_deadline_of_an_erasure() -> None:
    hold = Hold("search", 0, LONG_MAX)
    held = assess(held_by(hold, erasure_end_ms=NOW_MS + 1), NOW_MS)
    assert (held.trigger, held.due_ms) == (None, NOW_MS + 1)
    assert assess(held_by(hold, erasure_end_ms=NOW_MS), NOW_MS).trigger is Trigger.TOMBSTONE_EXPIRY
    early = assess(replace(held_by(hold, erasure_end_ms=HORIZON_MS - 5)), HORIZON_MS - 1)
    assert (early.trigger, early.due_ms) == (None, HORIZON_MS)


def test_a_hold_for_ever_is_never_due_by_the_clock() -> None:
    assert assess(held_by(Hold("search", 0, LONG_MAX)), NOW_MS).due_ms is None


def test_a_time_of_zero_holds_nothing() -> None:
    assert assess(held_by(Hold("search", 0, 0)), NOW_MS).trigger is Trigger.TOMBSTONE_EXPIRY


def test_who_holds_is_told_with_the_time_at_most() -> None:
    judged = assess(held_by(Hold("fast", 20, 9999), Hold("search", 5, 1000), Hold("late", 0, 2000)), NOW_MS)
    assert judged.holdings == [
        Holding(Hold("late", 0, 2000), HORIZON_MS, HORIZON_MS + 2000),
        Holding(Hold("search", 5, 1000), HORIZON_MS, HORIZON_MS + 1000),
    ]
    told = (
        f"tombstones wait since {iso_time(HORIZON_MS)} for reader late, whose position is 0; "
        f"the first of them until {iso_time(HORIZON_MS + 2000)} at most"
    )
    assert told in explain(judged).rules
    assert why_left_alone(judged) == f"clean: nothing was appended since its last clean; {told}"
    assert make_plan([judged], NOW_MS).left_alone == {"t-0": why_left_alone(judged)}
    overdue = assess(held_by(Hold("search", 0, 50)), NOW_MS)
    assert explain(overdue).verdict == "tombstones to be removed now: the time that readers had passed 50 ms ago"
    assert overdue.holdings == []
    for_ever = assess(held_by(Hold("search", 0, LONG_MAX)), NOW_MS)
    assert why_left_alone(for_ever).endswith("the first of them without an end")


@pytest.mark.parametrize("policy", [("delete",), ()])
def test_where_nothing_is_compacted_no_tombstone_waits_for_a_reader(policy: tuple[str, ...]) -> None:
    """They were told to wait for him until a time, at which nothing took them, and his lag was blamed for it."""
    kept = held_by(Hold("late", 0, 2000))
    judged = assess(replace(kept, config=replace(kept.config, cleanup_policy=policy)), NOW_MS)
    assert judged.holdings == []
    told = [why_left_alone(judged), *explain(judged).rules]
    assert not [each for each in told if "reader" in each]


def test_a_compaction_leaves_what_is_held_and_its_step_says_so() -> None:
    holds = Holds((Hold("search", 10, 1000),))
    judged = log([*SEGMENTS, segment(20, 29, time_ms=NOW_MS - 10_000)], config(segment_ms=1), checkpoint=20)
    step = plan_step(assess(replace(judged, holds=holds), NOW_MS), requested=True)
    assert isinstance(step, Compact)
    assert step.holds == holds
    assert [step.bounds_in(each).due_horizon_ms for each in step.segments] == [NOW_MS, NOW_MS - 1000, NOW_MS - 1000]


def test_what_goes_although_a_reader_is_behind_is_counted() -> None:
    stamped = [Record(n, b"%d" % n, None, 1, delete_horizon_ms=HORIZON_MS) for n in range(20)]
    parts = [stamped[:10], stamped[10:]]
    for step in (Clean(20, 20, now_ms=NOW_MS).expiry(SEGMENTS), Clean(20, 20, now_ms=NOW_MS).step(SEGMENTS)):
        patient, late = (replace(step, holds=Holds((Hold("r", 10, ms),))) for ms in (101, 100))
        held, gone = clean(patient, parts), clean(late, parts)
        assert (held.counts.expired, held.overrun, held.records) == (10, (), tuple(stamped[10:]))
        assert (gone.counts.expired, gone.overrun) == (20, (Overrun(10, 19, 10),))


def test_the_specification_holds_and_tells() -> None:
    reference = ReferenceLog(readers={"slow": ReferenceReader(50), "fast": ReferenceReader(1000, position=9)})
    reference.clean_records = [Record(4, b"a", None, 1, delete_horizon_ms=100)]
    assert not reference.expire(149)
    assert reference.expire(150)
    assert (reference.readers["slow"].missed, reference.readers["fast"].missed) == ([4], [])


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a/b", "a b", "x" * 201])
def test_a_name_that_no_folder_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match="reader name"):
        valid_reader_name(name)


@pytest.mark.parametrize("time_ms", [-1, LONG_MAX + 1])
def test_a_hold_that_is_no_time_is_refused(time_ms: int) -> None:
    assert valid_hold_max_ms(LONG_MAX) == LONG_MAX
    with pytest.raises(InvalidConfig, match="hold-max-ms"):
        valid_hold_max_ms(time_ms)
