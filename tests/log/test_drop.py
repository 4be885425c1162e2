"""What is planned to drop a key's records from a log, and what its outcome must be."""

from __future__ import annotations

import dataclasses

import pytest

from keptlog.errors import InvalidConfig, InvariantViolated
from keptlog.log.drop import DropResult, drop_step, verify_drop
from keptlog.log.plan import describe_step
from keptlog.log.search import KeyHits
from keptlog.log.segment import Log
from tests.building import NOW_MS, log, segment

A, B = b"hash of a", b"hash of b"


def ingested() -> Log:
    made = log([segment(0, 9), segment(10, 19), segment(20, 29)], start=5, checkpoint=10)
    return dataclasses.replace(made, is_ingested=True)


def outcome(*, left: int = 8, hits: tuple[KeyHits, ...] | None = None) -> DropResult:
    """Of ten records at [10, 20) two are dropped, at 12 and 15."""
    step = drop_step(ingested(), {A: 16, B: 25}, NOW_MS)
    replaced = dataclasses.replace(step.segments[1], path="new", record_count=left)
    told = (KeyHits(A, 0, 2, 12, 15, has_value=True),) if hits is None else hits
    return DropResult(step, (step.segments[1],), (replaced,), told)


def test_a_drop_takes_in_all_that_lies_below_the_end_active_and_below_the_log_start() -> None:
    step = drop_step(ingested(), {A: 16, B: 21}, NOW_MS)
    assert [each.base_offset for each in step.segments] == [0, 10, 20]
    assert (step.end_offset, step.checkpoint, step.log_start_offset) == (21, 10, 5)
    assert [each.base_offset for each in drop_step(ingested(), {A: 16}, NOW_MS).segments] == [0, 10]


def test_of_a_log_without_a_source_nothing_is_dropped() -> None:
    with pytest.raises(InvalidConfig, match=r"t-0 has no source.*append a tombstone"):
        drop_step(log([segment(0, 9)]), {A: 5}, NOW_MS)


def test_a_drop_says_what_it_does_and_shows_no_hash() -> None:
    step = drop_step(ingested(), {A: 16, B: 21}, NOW_MS)
    told = "t-0: drop the records of 2 keys below offset 21 from 3 segments (300 B)"
    assert describe_step(step) == told
    assert "hash of" not in repr(step)


def test_a_sound_outcome_is_let_through() -> None:
    verify_drop(outcome())
    verify_drop(DropResult(drop_step(ingested(), {}, NOW_MS), (), (), ()))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (outcome(left=7), r"10 records went in and 7 came out, but 2 were to be dropped \(G1\)"),
        (outcome(left=9), r"10 records went in and 9 came out, but 2 were to be dropped \(G1\)"),
        (outcome(hits=(KeyHits(b"other", 0, 2, 12, 15, has_value=True),)), r"nobody has asked for \(G1\)"),
        (outcome(hits=(KeyHits(A, 0, 2, 12, 16, has_value=True),)), r"offset 16 would be dropped.*below 16 .*\(G4\)"),
        (
            dataclasses.replace(outcome(), added=(segment(10, 12, name="x"), segment(12, 16, name="y"))),
            r"would overlap .* \(G2\)",
        ),
        (dataclasses.replace(outcome(), added=(segment(30, 37),)), r"outside of the planned \[0, 29\] \(G3\)"),
        (dataclasses.replace(outcome(), removed=(segment(40, 49),)), r"outside of the plan .* \(G4\)"),
        (
            dataclasses.replace(outcome(), removed=(dataclasses.replace(segment(10, 19), unkeyed_count=1),)),
            r"1 record without a key went in and 0 came out \(G1\)",
        ),
    ],
)
def test_an_outcome_that_breaks_a_guarantee_is_refused(wrong: DropResult, why: str) -> None:
    with pytest.raises(InvariantViolated, match=why):
        verify_drop(wrong)
