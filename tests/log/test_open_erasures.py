"""What is told of open erasures without reading one, and when a pass has to be asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ErasureWay, GoneSince, ReachedState
from keptlog.log.erasures.erasure_schedule import ALLOWANCE_MS, VERIFIED_WITHIN_MS, PassTimes, ask_ms
from keptlog.log.erasures.open_erasures import ErasureNeed, NeedyErasures, OpenErasures, need_of, open_erasures
from tests.building import HOUR_MS, NOW_MS, config

GONE = GoneSince(7, NOW_MS + 5)


def erasure(
    *states: ErasureState,
    way: ErasureWay = ErasureWay.TOMBSTONE,
    deadline_ms: int | None = None,
    gone: GoneSince | None = None,
) -> Erasure:
    """One that has reached these states, a ms after one another."""
    reached = tuple(ReachedState(each.value, NOW_MS + index) for index, each in enumerate(states))
    bounds = (ErasureBound(3, 5, 6), ErasureBound(4, 9, 9))
    return Erasure("r", way.value, NOW_MS, deadline_ms, "", "f", ("a" * 64,), bounds, gone=gone, reached=reached)


REQUESTED, TOMBSTONED, COMPACTED = ErasureState.REQUESTED, ErasureState.TOMBSTONED, ErasureState.COMPACTED
UNREFERENCED, DELETED, VERIFIED = ErasureState.UNREFERENCED, ErasureState.DELETED, ErasureState.VERIFIED


@pytest.mark.parametrize(
    ("found", "need"),
    [
        (erasure(REQUESTED, way=ErasureWay.SOURCE), ErasureNeed.SOURCE),
        (erasure(TOMBSTONED), ErasureNeed.CLEAN),
        (erasure(TOMBSTONED, way=ErasureWay.SOURCE), ErasureNeed.CLEAN),
        (erasure(TOMBSTONED, way=ErasureWay.HERE), ErasureNeed.REPEAT),
        (erasure(TOMBSTONED, way=ErasureWay.RETENTION), ErasureNeed.RETENTION),
        (erasure(COMPACTED), ErasureNeed.EXPIRY),
        (erasure(COMPACTED, gone=GONE), ErasureNeed.PURGE),
        (erasure(UNREFERENCED, gone=GONE), ErasureNeed.PURGE),
        (erasure(DELETED, gone=GONE), ErasureNeed.VERIFICATION),
    ],
)
def test_each_state_needs_something_to_be_brought_on(found: Erasure, need: ErasureNeed) -> None:
    assert need_of(found) is need


def test_those_with_the_same_need_are_told_together_and_what_has_ended_is_only_counted() -> None:
    summary = open_erasures(
        [
            erasure(REQUESTED, TOMBSTONED, deadline_ms=NOW_MS + 9),
            erasure(TOMBSTONED, deadline_ms=NOW_MS + 5),
            erasure(COMPACTED, gone=GONE),
            erasure(DELETED, VERIFIED),
        ],
        NOW_MS + 3,
    )
    assert summary.needs == (
        NeedyErasures("clean", 2, NOW_MS + 5, NOW_MS, (3,), first_asked_ms=NOW_MS),
        NeedyErasures("purge", 1, None, GONE.at_ms),
    )
    assert (summary.count, summary.ended_count, summary.earliest_deadline_ms) == (3, 1, NOW_MS + 5)
    assert open_erasures([erasure(VERIFIED)], None) == OpenErasures(ended_count=1)


def test_what_is_in_the_log_is_as_old_as_the_clock_that_asked_says_whoever_has_looked_since() -> None:
    """A tombstone keeps its time, and the state is dated by the look."""
    ahead = replace(erasure(TOMBSTONED), requested_ms=NOW_MS + 2000)
    for found, way in ((ahead, ErasureWay.TOMBSTONE), (replace(ahead, id="s"), ErasureWay.RETENTION)):
        (needy,) = open_erasures([replace(found, way=way.value)], None).needs
        assert (needy.since_ms, needy.in_log_since_ms) == (NOW_MS, NOW_MS + 2000)
    (needy,) = open_erasures([ahead, erasure(TOMBSTONED)], None).needs
    assert needy.in_log_since_ms == NOW_MS
    (needy,) = open_erasures([replace(ahead, reached=erasure(COMPACTED).reached, gone=GONE)], None).needs
    assert needy.in_log_since_ms == needy.since_ms


def test_of_those_that_wait_for_a_verification_the_latest_deadline_is_told_too() -> None:
    found = [erasure(DELETED, deadline_ms=deadline_ms) for deadline_ms in (NOW_MS + 5, None, NOW_MS + 9)]
    (needy,) = open_erasures([*found, erasure(VERIFIED, deadline_ms=NOW_MS + 99)], None).needs
    assert (needy.earliest_deadline_ms, needy.latest_deadline_ms) == (NOW_MS + 5, NOW_MS + 9)
    (needy,) = open_erasures([erasure(DELETED)], None).needs
    assert (needy.earliest_deadline_ms, needy.latest_deadline_ms) == (None, None)


def test_of_those_that_wait_for_a_verification_it_is_told_whether_one_was_dropped_here() -> None:
    """A tombstone that came from the source leaves a watermark, whoever has dropped the rest."""
    here = replace(erasure(DELETED, way=ErasureWay.HERE), bounds=(ErasureBound(3, 6, 6),))
    later = replace(here, way=ErasureWay.SOURCE.value, dropped_by=("r2",))
    both = replace(later, bounds=(*later.bounds, ErasureBound(3, 2, 3, "a" * 64)))
    for found, is_dropped in ((here, True), (later, True), (both, False), (erasure(DELETED), False)):
        (needy,) = open_erasures([erasure(DELETED), found], None).needs
        assert needy.is_any_dropped is is_dropped
    (needy,) = open_erasures([replace(here, reached=erasure(COMPACTED).reached, gone=GONE)], None).needs
    assert not needy.is_any_dropped


@given(st.lists(st.integers(0, 300), min_size=1, max_size=100), st.integers(0, 301))
def test_overdue_erasures_are_never_told_where_there_are_none_and_always_where_there_are(
    deadlines: list[int], now_ms: int
) -> None:
    summary = open_erasures([erasure(TOMBSTONED, deadline_ms=each) for each in deadlines], None)
    overdue = sum(each < now_ms for each in deadlines)
    assert summary.overdue_count(now_ms) <= overdue
    assert bool(summary.overdue_count(now_ms)) == bool(overdue)
    assert len(summary.deadlines) <= 12
    if len(set(deadlines)) <= 12:
        assert summary.overdue_count(now_ms) == overdue


CONFIG = config(delete_retention_ms=HOUR_MS, file_delete_delay_ms=2 * HOUR_MS)
TIMES = PassTimes(clean_ms=1000, purge_ms=100, verification_ms=10)


@pytest.mark.parametrize(
    ("need", "takes_ms"),
    [
        (ErasureNeed.CLEAN, 3 * HOUR_MS + 4 * ALLOWANCE_MS + 2 * (2 * 1000 + 110)),
        (ErasureNeed.EXPIRY, 2 * HOUR_MS + 3 * ALLOWANCE_MS + 2 * 1110),
        (ErasureNeed.PURGE, 2 * ALLOWANCE_MS + 220),
        (ErasureNeed.VERIFICATION, ALLOWANCE_MS + 20),
    ],
)
def test_a_pass_is_asked_for_so_early_that_all_behind_it_can_follow(need: ErasureNeed, takes_ms: int) -> None:
    needy = NeedyErasures(need.value, 1, NOW_MS, NOW_MS - 1)
    assert ask_ms(needy, CONFIG, TIMES) == NOW_MS - takes_ms


@pytest.mark.parametrize("need", [ErasureNeed.SOURCE, ErasureNeed.REPEAT, ErasureNeed.RETENTION])
def test_what_no_pass_brings_on_is_not_asked_for(need: ErasureNeed) -> None:
    assert ask_ms(NeedyErasures(need.value, 1, NOW_MS, NOW_MS), CONFIG, TIMES) is None


def test_without_a_deadline_only_the_verification_has_a_time() -> None:
    needy = NeedyErasures(ErasureNeed.PURGE.value, 1, None, NOW_MS)
    assert ask_ms(needy, CONFIG, TIMES) is None
    assert ask_ms(replace(needy, need=ErasureNeed.VERIFICATION.value), CONFIG, TIMES) == NOW_MS + VERIFIED_WITHIN_MS
    far = replace(needy, need=ErasureNeed.VERIFICATION.value, earliest_deadline_ms=NOW_MS + 9 * VERIFIED_WITHIN_MS)
    assert ask_ms(far, CONFIG, TIMES) == NOW_MS + VERIFIED_WITHIN_MS
