"""What waits behind an open transaction is told as that, and as wrong only once the same one stays open for long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keptlog.log.source import SourceLog
from keptlog.log.told.conditions import Condition, Event, KnownCondition, Level, Matter, Sighting, after_look
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


def test_what_is_wrong_at_once_needs_no_time() -> None:
    condition = Condition(Matter.INGEST, "users-0", "text", "users")
    [known] = after_look([], Sighting(0, (condition,), {Matter.INGEST: {"users"}}), 0)
    assert (known.level, known.holds) == (Level.BROKEN, True)
