"""A log remembers where it ended after each truncation, so that whoever had read beyond that finds out."""

from __future__ import annotations

import itertools

import pytest

from keptlog.log.truncations import NO_TRUNCATIONS, Truncated, Truncations


def after(*end_offsets: int) -> Truncations:
    truncations = NO_TRUNCATIONS
    for end_offset in end_offsets:
        truncations = truncations.with_one_to(end_offset)
    return truncations


def test_a_log_that_was_never_truncated_says_so() -> None:
    assert NO_TRUNCATIONS.count == 0
    assert NO_TRUNCATIONS.end_below(10**9, since=0) is None


@pytest.mark.parametrize(("position", "since", "end"), [(151, 0, 150), (150, 0, None), (0, 0, None), (200, 1, None)])
def test_only_who_was_beyond_the_end_and_did_not_know_of_it_missed_something(
    position: int, since: int, end: int | None
) -> None:
    assert after(150).end_below(position, since=since) == end


def test_what_is_below_a_later_truncation_too_is_told_by_that_alone() -> None:
    assert after(100, 150, 120) == Truncations((Truncated(1, 100), Truncated(3, 120)))
    assert after(100, 150, 120, 0) == Truncations((Truncated(4, 0),))


def test_the_lowest_end_of_all_later_truncations_is_told() -> None:
    for ends in itertools.product(range(4), repeat=4):
        for since, position in itertools.product(range(5), range(5)):
            lowest = min((end for end in ends[since:] if end < position), default=None)
            assert after(*ends).count == 4
            assert after(*ends).end_below(position, since=since) == lowest
