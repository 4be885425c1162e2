"""What waits behind an open transaction is told as that, and as wrong only once the same one stays open for long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keptlog.log.source import SourceLog
from keptlog.log.told.conditions import (
    GIVEN_UP_MS,
    Condition,
    Event,
    KnownCondition,
    Level,
    Matter,
    Sighting,
    after_look,
)
from keptlog.log.told.open_transaction import HANGS_AFTER_MS, hanging_condition, why_waiting
from keptlog.log.topic_partition import TopicPartition

NAME = TopicPartition("users", 0)
MINUTE_MS = 60_000


def waits(from_offset: int, to_offset: int) -> SourceLog:
    return SourceLog(0, 0, from_offset, high_watermark=to_offset)


def look(known: Sequence[KnownCondition], now_ms: int, log: SourceLog) -> list[KnownCondition]:
    condition = hanging_condition(NAME, log)
    found = (condition,) if condition else ()
    return after_look(known, Sighting(now_ms, found, {Matter.INGEST: {"users"}}), 2 * MINUTE_MS)


def seen(*logs: SourceLog) -> list[KnownCondition]:
    """What is remembered after a look a minute."""
    known: list[KnownCondition] = []
    for minute, log in enumerate(logs):
        known = look(known, minute * MINUTE_MS, log)
    return known


def test_what_waits_is_counted_from_the_last_stable_offset_on() -> None:
    assert why_waiting(waits(5, 1006)) == (
        "a transaction is open from offset 5 on; 1001 offsets, up to 1005, can't be read before it ends"
    )


@pytest.mark.parametrize("log", [SourceLog(0, 0, 5), waits(5, 5), waits(5, 4)])
def test_nothing_waits_in_a_log_without_an_open_transaction(log: SourceLog) -> None:
    assert (log.waiting, why_waiting(log), hanging_condition(NAME, log)) == (0, None, None)


def test_of_a_log_that_begins_inside_of_one_what_is_there_still_waits() -> None:
    assert SourceLog(0, 15, 10, high_watermark=20).waiting == 5


def test_that_one_is_open_is_nothing_wrong_by_itself() -> None:
    condition = hanging_condition(NAME, waits(5, 6))
    assert condition is not None
    assert condition.level == Level.OPEN
    [known] = look([], 0, waits(5, 6))
    assert (known.holds, known.event_for("log")) == (False, None)


def test_one_that_stays_open_for_longer_than_any_may_is_told_and_cleared_once_it_ended() -> None:
    minutes = HANGS_AFTER_MS // MINUTE_MS
    growing = [waits(5, 6 + minute) for minute in range(minutes + 1)]
    [almost] = seen(*growing[:-1])
    assert not almost.holds
    [hangs] = seen(*growing)
    assert (hangs.holds, hangs.event_for("log"), hangs.subject) == (
        True,
        Event.BEGAN,
        "users-0 behind an open transaction",
    )
    known = [hangs.once_told("log")]
    for minute in range(minutes + 1, minutes + 5):
        known = look(known, minute * MINUTE_MS, SourceLog(0, 0, 90))
    assert [each.event_for("log") for each in known] == [Event.CLEARED]


def test_short_ones_one_behind_the_other_are_never_told() -> None:
    assert not any(each.holds for each in seen(*(waits(minute, minute + 3) for minute in range(60))))


def in_it(log_start: int) -> SourceLog:
    """The log after retention has taken the beginning of the transaction; Kafka moves its last stable offset too."""
    return SourceLog(0, log_start, log_start, high_watermark=10_000)


def test_a_log_start_that_moves_through_one_neither_ends_it_nor_begins_another() -> None:
    known = seen(*(in_it(100 * (minute // 10)) for minute in range(17)))
    assert [(each.holds, each.since_ms, each.event_for("log")) for each in known] == [(True, 0, Event.BEGAN)]
    before = seen(*[waits(5, 1006)] * 17, in_it(105))
    assert [(each.holds, each.since_ms) for each in before] == [(True, 0)]
    assert "open at offset 105, where the log begins; 9895 offsets" in before[0].text


def test_the_next_one_behind_one_that_hung_ends_that_and_has_its_own_time() -> None:
    [hangs] = seen(*[waits(5, 1006)] * 17)
    known, events = [hangs.once_told("log")], []
    for minute in range(17, 17 + 20):
        known = look(known, minute * MINUTE_MS, waits(1006, 1007))
        told = [(minute, event) for each in known if (event := each.event_for("log"))]
        events += told
        known = [each.once_told("log") for each in known] if told else known
    # Two minutes of calm end the first, and the second begins to be seen behind them.
    assert events == [(19, Event.CLEARED), (36, Event.BEGAN)]


def test_the_end_of_one_that_hung_is_told_also_on_a_way_that_was_down_while_the_next_ones_came() -> None:
    [hangs] = seen(*[waits(5, 1006)] * 17)
    known, events = [hangs.once_told("log")], []
    for minute in range(17, 40):
        known = look(known, minute * MINUTE_MS, waits(1000 + minute, 2000 + minute))
        events += [each.event_for("log") for each in known]
    assert Event.CLEARED in events[-5:]


def told_on_both(log: SourceLog) -> list[KnownCondition]:
    """What is remembered once it was seen for 17 minutes, and told by two ways."""
    return [each.once_told("log").once_told("mail") for each in seen(*[log] * 17)]


def short_ones(known: list[KnownCondition], minutes: range) -> list[KnownCondition]:
    """What is remembered after a short transaction a minute, where all is told by one way and nothing by the other."""
    for minute in minutes:
        known = look(known, minute * MINUTE_MS, waits(10_000 + minute, 20_000 + minute))
        known = [each.once_told("log") if each.event_for("log") else each for each in known]
    return known


@pytest.mark.parametrize("begins", range(60, 90, 7))
def test_one_that_hangs_is_told_in_time_though_the_end_of_another_could_not_be_told_everywhere(begins: int) -> None:
    known, events = short_ones(told_on_both(waits(5, 1006)), range(17, begins)), []
    for minute in range(begins, begins + 17):
        known = look(known, minute * MINUTE_MS, waits(50_000, 60_000))
        events += [(minute - begins, event) for each in known if (event := each.event_for("log"))]
    assert events == [(HANGS_AFTER_MS // MINUTE_MS, Event.BEGAN)]
    # Where nothing could be told, the end comes before the beginning.
    assert [(each.offset, each.event_for("mail")) for each in known] == [(5, Event.CLEARED), (50_000, Event.BEGAN)]
    told = [each.once_told("mail") for each in known]
    assert [(each.offset, each.told["mail"]) for each in told] == [(5, 0), (50_000, 2)]
    assert len({each.id for each in told}) == 2


def test_an_end_that_can_be_told_nowhere_is_forgotten_though_others_come_and_go() -> None:
    known = short_ones(told_on_both(waits(5, 1006)), range(17, 60))
    assert [each.event_for("mail") for each in known if each.offset == 5] == [Event.CLEARED]
    known = look(known, 60 * MINUTE_MS + GIVEN_UP_MS, waits(9, 10))
    assert [each.offset for each in known] == [9]


def test_one_that_is_back_where_it_was_is_the_same_one() -> None:
    known = told_on_both(waits(5, 1006))
    for minute in range(17, 21):
        known = look(known, minute * MINUTE_MS, SourceLog(0, 0, 90))
    known = look(known, 21 * MINUTE_MS, waits(5, 1006))
    assert [(each.returns, each.ended_ms, each.since_ms) for each in known] == [(1, None, 21 * MINUTE_MS)]


def test_what_is_wrong_at_once_needs_no_time() -> None:
    condition = Condition(Matter.INGEST, "users-0", "text", "users")
    [known] = after_look([], Sighting(0, (condition,), {Matter.INGEST: {"users"}}), 0)
    assert (known.level, known.holds) == (Level.BROKEN, True)
