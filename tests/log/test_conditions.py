"""Which conditions a look finds, and what is told of them from look to look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.assessment import assess
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.erasures.open_erasures import DeadlineCount, OpenErasures
from keptlog.log.segment import Log
from keptlog.log.told.conditions import (
    GIVEN_UP_MS,
    REMEMBERED_MS,
    Condition,
    Event,
    KnownCondition,
    Level,
    Matter,
    Sighting,
    Thresholds,
    after_look,
    erasure_conditions,
    log_conditions,
)
from keptlog.log.told.silent_sensors import silence_condition
from keptlog.log.uncleanable import Uncleanable
from tests.building import HOUR_MS, NOW_MS, config, log, segment

SETTLE_MS = 120_000
MINUTE_MS = 60_000
BAD = Condition(Matter.UNCLEANABLE, "t-0", "t-0 is bad", "t")
SLOW = Condition(Matter.SPARK, "all topics", "no Spark", is_sure=False)
EVERYWHERE = {matter: {"t", ""} for matter in Matter}


def sighting(at_ms: int, *conditions: Condition) -> Sighting:
    return Sighting(at_ms, conditions, EVERYWHERE)


class Told:
    """Somebody who looks again and again, and one way that always delivers."""

    def __init__(self, way: str = "way") -> None:
        self.way = way
        self.known: list[KnownCondition] = []

    def look(self, seen: Sighting, *, is_delivered: bool = True) -> list[Event]:
        self.known = after_look(self.known, seen, SETTLE_MS)
        events = [event for each in self.known if (event := each.event_for(self.way))]
        if is_delivered:
            self.known = [each.once_told(self.way) if each.event_for(self.way) else each for each in self.known]
        return events


def test_what_begins_and_ends_is_told_twice_however_often_somebody_looks() -> None:
    told = Told()
    assert told.look(sighting(0)) == []
    assert told.look(sighting(1, BAD)) == [Event.BEGAN]
    assert [told.look(sighting(at_ms, BAD)) for at_ms in range(2, 9)] == [[]] * 7
    ends = [told.look(sighting(10 + at_ms)) for at_ms in range(0, 3 * SETTLE_MS, 30_000)]
    assert [each for each in ends if each] == [[Event.CLEARED]]


def test_a_topic_that_was_not_looked_at_clears_nothing() -> None:
    told = Told()
    told.look(sighting(0, BAD))
    unseen = Sighting(SETTLE_MS, (), {Matter.UNCLEANABLE: {"another"}, Matter.DEADLINE: {"t"}})
    assert [told.look(replace(unseen, now_ms=SETTLE_MS * n)) for n in range(1, 9)] == [[]] * 8
    assert told.known[0].calm_since_ms is None


def test_a_topic_that_is_gone_takes_its_conditions_along() -> None:
    told = Told()
    told.look(sighting(0, BAD))
    gone = Sighting(1, (), {}, lambda topic: topic == "t")
    assert told.look(gone) == []
    assert told.look(replace(gone, now_ms=1 + SETTLE_MS)) == [Event.CLEARED]


def test_what_may_pass_by_itself_is_told_once_it_lasts() -> None:
    told = Told()
    assert told.look(sighting(0, SLOW)) == []
    assert told.look(sighting(SETTLE_MS - 1, SLOW)) == []
    assert told.look(sighting(SETTLE_MS, SLOW)) == [Event.BEGAN]


def test_what_passed_before_anybody_was_told_leaves_no_trace() -> None:
    told = Told()
    told.look(sighting(0, SLOW))
    assert [told.look(sighting(at_ms)) for at_ms in (1, SETTLE_MS + 1)] == [[], []]
    assert told.known == []


def test_a_condition_that_comes_and_goes_is_told_once() -> None:
    told = Told()
    looks = [
        sighting(at_ms, *([BAD] if at_ms // MINUTE_MS % 2 else []))
        for at_ms in range(MINUTE_MS, 40 * MINUTE_MS, MINUTE_MS)
    ]
    assert [event for each in looks for event in told.look(each)] == [Event.BEGAN]


def test_the_more_often_it_comes_back_the_longer_it_must_be_calm() -> None:
    """Five minutes bad, five minutes good, for a day: not 288 messages."""
    told, events = Told(), []
    for at_ms in range(0, 24 * HOUR_MS, MINUTE_MS):
        is_bad = at_ms // (5 * MINUTE_MS) % 2 == 0
        events += told.look(sighting(at_ms, *([BAD] if is_bad else [])))
    assert 3 <= len(events) <= 6
    assert events[0] is Event.BEGAN


def test_worse_is_told_and_better_is_not() -> None:
    told = Told()
    near = Condition(Matter.DEADLINE, "t-0", "near", "t", Level.NEAR)
    late = replace(near, level=Level.BROKEN, text="late")
    looks = [near, near, late, near, late]
    assert [told.look(sighting(at_ms, each)) for at_ms, each in enumerate(looks)] == [
        [Event.BEGAN],
        [],
        [Event.GOT_WORSE],
        [],
        [],
    ]


def test_what_is_open_is_never_told_and_keeps_what_was_told_from_being_over() -> None:
    told = Told()
    of_log = [Condition(Matter.DEADLINE, "t-0", "t-0", "t", level) for level in Level]
    assert [told.look(sighting(n * SETTLE_MS, of_log[Level.OPEN])) for n in range(3)] == [[]] * 3
    assert told.look(sighting(3 * SETTLE_MS, of_log[Level.NEAR])) == [Event.BEGAN]
    assert [told.look(sighting(n * SETTLE_MS, of_log[Level.OPEN])) for n in range(4, 9)] == [[]] * 5
    assert told.look(sighting(9 * SETTLE_MS, of_log[Level.BROKEN])) == [Event.GOT_WORSE]


def test_what_is_not_delivered_is_told_once_afterwards() -> None:
    told = Told()
    assert [told.look(sighting(at_ms, BAD), is_delivered=False) for at_ms in range(3)] == [[Event.BEGAN]] * 3
    assert told.look(sighting(3, BAD)) == [Event.BEGAN]
    assert told.look(sighting(4, BAD)) == []


def test_an_end_that_is_not_delivered_waits_and_is_given_up_in_the_end() -> None:
    told = Told()
    told.look(sighting(0, BAD))
    told.look(sighting(1))
    later_ms = 1 + SETTLE_MS
    assert told.look(sighting(later_ms), is_delivered=False) == [Event.CLEARED]
    assert told.look(sighting(later_ms + GIVEN_UP_MS - 1), is_delivered=False) == [Event.CLEARED]
    assert told.look(sighting(later_ms + GIVEN_UP_MS)) == []
    assert told.known == []


def test_what_was_over_before_it_could_be_told_is_not_told() -> None:
    told = Told()
    assert told.look(sighting(0, BAD), is_delivered=False) == [Event.BEGAN]
    assert told.look(sighting(1)) == []
    assert told.look(sighting(1 + SETTLE_MS)) == []
    assert told.look(sighting(1 + SETTLE_MS + REMEMBERED_MS)) == []
    assert told.known == []


def test_a_new_way_is_told_what_holds() -> None:
    told = Told()
    told.look(sighting(0, BAD))
    told.way = "another"
    assert told.look(sighting(1, BAD)) == [Event.BEGAN]
    assert told.look(sighting(2, BAD)) == []


YEAR_MS = 365 * 24 * HOUR_MS


def test_a_clock_that_was_ahead_for_one_look_silences_neither_the_end_nor_the_next_beginning() -> None:
    told = Told()
    assert told.look(sighting(0, BAD)) == [Event.BEGAN]
    assert told.look(sighting(YEAR_MS)) == []
    assert told.look(sighting(MINUTE_MS)) == []
    assert told.look(sighting(MINUTE_MS + SETTLE_MS)) == [Event.CLEARED]
    assert told.look(sighting(2 * MINUTE_MS + SETTLE_MS, BAD)) == [Event.BEGAN]


def test_what_a_clock_that_was_ahead_saw_begin_is_told_once_it_lasts_by_the_right_one() -> None:
    told = Told()
    assert told.look(sighting(YEAR_MS, SLOW)) == []
    assert [told.look(sighting(at_ms, SLOW)) for at_ms in (0, SETTLE_MS)] == [[], [Event.BEGAN]]


def test_what_a_clock_that_was_ahead_saw_end_is_forgotten_in_the_usual_time() -> None:
    told = Told()
    told.look(sighting(0, BAD))
    told.look(sighting(1))
    assert told.look(sighting(YEAR_MS)) == [Event.CLEARED]
    told.look(sighting(MINUTE_MS))
    assert told.known != []
    told.look(sighting(MINUTE_MS + REMEMBERED_MS))
    assert told.known == []


LOOKS = st.lists(st.tuples(st.sampled_from(["bad", "ok", "unseen"]), st.booleans(), st.integers(1, 30 * MINUTE_MS)))


@given(LOOKS)
def test_whatever_happens_beginnings_and_ends_take_turns(looks: list[tuple[str, bool, int]]) -> None:
    told, at_ms, delivered = Told(), 0, []
    for what, is_delivered, after_ms in looks:
        at_ms += after_ms
        judged = {} if what == "unseen" else EVERYWHERE
        seen = Sighting(at_ms, (BAD,) if what == "bad" else (), judged)
        events = told.look(seen, is_delivered=is_delivered)
        assert len(events) <= 1
        assert what != "unseen" or all(each is not Event.CLEARED for each in events) or told.known[0].ended_ms
        delivered += events if is_delivered else []
    assert delivered == [Event.BEGAN, Event.CLEARED] * (len(delivered) // 2) + [Event.BEGAN] * (len(delivered) % 2)


LAG_MS = 24 * HOUR_MS
LIMITS = Thresholds()


def found(*logs: Log, now_ms: int = NOW_MS, limits: Thresholds = LIMITS) -> list[tuple[Matter, str, Level]]:
    seen = log_conditions([assess(each, now_ms) for each in logs], BrokerConfig(), now_ms, limits)
    return [(each.matter, each.subject, each.level) for each in seen]


def aged(age_ms: int, **settings: object) -> Log:
    """A log whose only record is of this age, under a maximum lag of a day."""
    settings = {"max_compaction_lag_ms": LAG_MS, "min_cleanable_dirty_ratio": 1} | settings
    return log([segment(0, 9, time_ms=NOW_MS - age_ms)], config(**settings))


def marked(each: Log, attempts: int, action: str = "retry") -> Log:
    mark = Uncleanable("no memory", NOW_MS - HOUR_MS, attempts, NOW_MS + HOUR_MS, action)
    return replace(each, uncleanable=mark)


def test_a_log_that_has_just_become_due_is_not_late() -> None:
    assert found(aged(LAG_MS + 1)) == [(Matter.DEADLINE, "t-0", Level.OPEN)]
    assert found(aged(LAG_MS + LIMITS.late_ms)) == [(Matter.DEADLINE, "t-0", Level.OPEN)]
    assert found(aged(LAG_MS + LIMITS.late_ms + 1)) == [(Matter.DEADLINE, "t-0", Level.BROKEN)]


def test_a_deadline_that_comes_near_is_told_only_where_a_clean_was_due_before() -> None:
    young_ms = LAG_MS - MINUTE_MS
    assert found(aged(young_ms)) == []
    assert found(aged(young_ms, segment_ms=HOUR_MS, min_cleanable_dirty_ratio=0)) == [
        (Matter.DEADLINE, "t-0", Level.NEAR)
    ]
    assert found(marked(aged(young_ms), 1)) == [(Matter.DEADLINE, "t-0", Level.NEAR)]
    assert found(marked(aged(HOUR_MS), 1)) == []


@pytest.mark.parametrize("settings", [{"cleanup_policy": "delete"}, {"max_compaction_lag_ms": 2**63 - 1}])
def test_a_log_that_promises_nothing_is_never_late(settings: dict[str, object]) -> None:
    assert found(aged(900 * LAG_MS, **settings)) == []


def test_lateness_is_judged_by_the_clock_of_the_look_and_not_by_that_of_the_judgement() -> None:
    """A log that waits after a failure is not judged again before it is tried again."""
    waits = marked(aged(LAG_MS + 1), 1)
    seen = list(log_conditions([assess(waits, NOW_MS)], BrokerConfig(), NOW_MS + HOUR_MS, LIMITS))
    assert [each.level for each in seen] == [Level.BROKEN]


def test_a_log_is_uncleanable_after_some_tries_or_one_that_no_other_helps() -> None:
    young = aged(HOUR_MS)
    assert found(marked(young, 2)) == []
    assert found(marked(young, 3)) == [(Matter.UNCLEANABLE, "t-0", Level.BROKEN)]
    assert found(marked(young, 1, "fix_data")) == [(Matter.UNCLEANABLE, "t-0", Level.BROKEN)]
    assert found(marked(young, 1), limits=replace(LIMITS, attempts=1)) == [(Matter.UNCLEANABLE, "t-0", Level.BROKEN)]


def test_with_the_cleaner_off_no_next_try_is_promised_and_a_late_log_says_why() -> None:
    """A clean that is asked for does nothing then, and no sensor asks for one."""
    off = BrokerConfig(log_cleaner_enable=False)
    late = marked(aged(2 * LAG_MS), LIMITS.attempts)
    texts = {each.matter: each.text for each in log_conditions([assess(late, NOW_MS)], off, NOW_MS, LIMITS)}
    assert "next try when log.cleaner.enable=true is in the broker settings" in texts[Matter.UNCLEANABLE]
    assert texts[Matter.DEADLINE].endswith(f"and are not: {CLEANER_DISABLED}")
    near = marked(aged(LAG_MS - MINUTE_MS), 1)
    [condition] = log_conditions([assess(near, NOW_MS)], off, NOW_MS, LIMITS)
    assert condition.text.endswith(CLEANER_DISABLED)


def test_an_erasure_is_told_shortly_before_and_after_its_deadline() -> None:
    def levels(in_ms: int) -> list[Level]:
        deadline_ms = NOW_MS + in_ms
        each = OpenErasures(2, deadline_ms, None, (), (DeadlineCount(deadline_ms, 2),))
        return [found.level for found in erasure_conditions({"t": each}, NOW_MS, LIMITS)]

    assert levels(LIMITS.erasure_near_ms) == []
    assert levels(LIMITS.erasure_near_ms - 1) == [Level.NEAR]
    assert levels(-1) == [Level.BROKEN]
    assert list(erasure_conditions({"t": OpenErasures()}, NOW_MS, LIMITS)) == []
    assert list(erasure_conditions({"t": OpenErasures(1)}, NOW_MS, LIMITS)) == []


def test_sensors_are_silent_after_a_while_and_slow_ones_after_a_longer_one() -> None:
    silent_ms = LIMITS.silence_ms + 1
    assert silence_condition("s", NOW_MS - silent_ms, 30_000, NOW_MS, LIMITS)
    assert silence_condition("s", NOW_MS - silent_ms + 1, 30_000, NOW_MS, LIMITS) is None
    assert silence_condition("s", NOW_MS - silent_ms, HOUR_MS, NOW_MS, LIMITS) is None


def test_a_tick_of_a_clock_that_was_ahead_does_not_stand_for_those_that_are_missing() -> None:
    ahead_ms = LIMITS.silence_ms + 1
    found = silence_condition("s", NOW_MS + ahead_ms, 30_000, NOW_MS, LIMITS)
    assert found
    assert "10 minutes ahead of now" in found.text
    assert not found.is_sure
    assert silence_condition("s", NOW_MS + ahead_ms - 1, 30_000, NOW_MS, LIMITS) is None
    assert silence_condition("s", NOW_MS + ahead_ms, HOUR_MS, NOW_MS, LIMITS) is None
