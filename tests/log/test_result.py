"""A wrong outcome is never committed: each kind of it is refused, and the guarantee is named."""

from dataclasses import replace

import pytest

from keptlog.errors import InvariantViolated
from keptlog.log.assessment import assess
from keptlog.log.plan import plan_step
from keptlog.log.result import Counts, RewriteResult, verify
from tests.building import HOUR_MS, NOW_MS, config, log, segment

OLD_MS = NOW_MS - 24 * HOUR_MS
A, B, C = (segment(base, base + 9, time_ms=OLD_MS) for base in (0, 10, 20))


@pytest.fixture
def good() -> RewriteResult:
    """Segments A (clean), B and C (dirty): B and C are rewritten, 20 records into 12."""
    step = plan_step(assess(log([A, B, C], config(segment_ms=HOUR_MS), checkpoint=10), NOW_MS))
    assert step is not None
    return RewriteResult(
        step=step,
        removed=(B, C),
        added=(replace(segment(10, 29, name="-new"), record_count=12),),
        counts=Counts(kept=21, stamped=1, superseded=6, expired=1, unkeyed=1),
        map_keys=12,
        winners_found=12,
    )


def test_a_right_outcome_is_accepted(good: RewriteResult) -> None:
    verify(good)


def test_an_outcome_that_changes_nothing_is_accepted_and_empty(good: RewriteResult) -> None:
    unchanged = replace(good, removed=(), added=(), counts=Counts(kept=30))
    verify(unchanged)
    assert unchanged.is_empty
    assert not good.is_empty


def test_an_outcome_may_leave_nothing_of_its_inputs(good: RewriteResult) -> None:
    verify(replace(good, removed=(C,), added=(), counts=Counts(kept=20, expired=10)))


def test_new_segments_may_lie_anywhere_in_the_planned_range_and_hold_one_record(good: RewriteResult) -> None:
    added = tuple(
        replace(segment(first, last, name="-new"), record_count=count)
        for first, last, count in ((0, 0, 1), (1, 20, 11), (21, 25, 10))
    )
    verify(replace(good, removed=(A, B, C), added=added))


def refused(outcome: RewriteResult, message: str) -> None:
    with pytest.raises(InvariantViolated, match=message) as caught:
        verify(outcome)
    assert str(caught.value).startswith("t-0: ")
    assert "nothing was committed" in str(caught.value)


def test_a_record_that_was_not_judged_is_missed(good: RewriteResult) -> None:
    refused(replace(good, counts=replace(good.counts, kept=20)), r"29 records judged but the segments hold 30 \(G1\)")


def test_a_record_that_was_judged_twice_is_noticed(good: RewriteResult) -> None:
    refused(replace(good, counts=replace(good.counts, kept=22)), r"31 records judged but the segments hold 30")


def test_a_record_that_was_to_stay_but_was_not_written_is_missed(good: RewriteResult) -> None:
    added = replace(good.added[0], record_count=11)
    refused(replace(good, added=(added,)), r"20 records went in and 11 came out, but 8 were to be removed \(G1\)")


def test_a_record_that_was_to_go_but_was_written_is_noticed(good: RewriteResult) -> None:
    added = replace(good.added[0], record_count=13)
    refused(replace(good, added=(added,)), r"20 records went in and 13 came out, but 8 were to be removed")


@pytest.mark.parametrize("found", [11, 13])
def test_a_latest_record_that_was_not_met_or_met_twice_is_noticed(good: RewriteResult, found: int) -> None:
    refused(
        replace(good, winners_found=found),
        rf"the offset map has 12 keys but of {found} the latest record was met \(G1\)",
    )


def test_a_segment_that_was_not_planned_is_not_replaced(good: RewriteResult) -> None:
    foreign = segment(30, 39)
    outcome = replace(good, removed=(B, foreign))
    refused(outcome, r"a segment outside of the plan would be replaced \(G4\)")


def test_a_new_segment_may_not_overlap_one_that_is_kept(good: RewriteResult) -> None:
    added = replace(good.added[0], base_offset=9)
    refused(replace(good, added=(added,)), r"would overlap .* at offset 9 \(G2\)")


@pytest.mark.parametrize("begin", [15, 20])
def test_two_new_segments_may_not_overlap(good: RewriteResult, begin: int) -> None:
    first = replace(segment(10, 20, name="-first"), record_count=6)
    second = replace(segment(begin, 29, name="-second"), record_count=6)
    refused(
        replace(good, added=(first, second)),
        rf"{begin}-29-second.parquet would overlap 10-20-first.parquet at offset {begin}",
    )


def test_a_new_segment_may_not_reach_beyond_what_was_planned(good: RewriteResult) -> None:
    added = replace(good.added[0], last_offset=30)
    refused(replace(good, added=(added,)), r"has offsets \[10, 30\] outside of the planned \[0, 29\] \(G3\)")


def test_a_new_segment_may_not_begin_before_what_was_planned() -> None:
    step = plan_step(assess(log([B, C], config(segment_ms=HOUR_MS), start=5), NOW_MS))
    assert step is not None
    added = replace(segment(8, 29, name="-new"), record_count=20)
    outcome = RewriteResult(step, (B, C), (added,), Counts(kept=20), map_keys=20, winners_found=20)
    refused(outcome, r"has offsets \[8, 29\] outside of the planned \[10, 29\] \(G3\)")


def test_a_new_segment_may_not_end_before_it_begins(good: RewriteResult) -> None:
    refused(replace(good, added=(replace(good.added[0], last_offset=9),)), r"has offsets \[10, 9\] outside")


def test_the_numbers_of_an_outcome(good: RewriteResult) -> None:
    assert (good.segments_kept, good.bytes_written, good.bytes_rewritten) == (1, 100, 200)
    assert (good.counts.retained, good.counts.removed, good.counts.total) == (22, 8, 30)
    assert (good.malformed, Counts().total) == (0, 0)
    assert good.counts + Counts(kept=1, unkeyed=2) == Counts(22, 1, 6, 1, 3)
