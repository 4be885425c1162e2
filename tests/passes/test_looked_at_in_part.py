"""What can't be looked at for a while is not over: what was seen of it before goes on, and its time too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.ingest.lag import LagScan, TopicLag
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic, StoredSource, plan_ingest
from keptlog.log.told.conditions import KnownCondition, Sighting, after_look
from keptlog.passes.watch import ingest_evidence

MINUTE_MS = 60_000
HANGS = SourceLog(1, 0, 5, high_watermark=1006)
CUT_OFF = SourceLog(1, 0, 3)
NO_ANSWER = {1: "t-1: no broker answers"}


def scan(now_ms: int, log: SourceLog | None, failed: Mapping[int, str] | None = None) -> LagScan:
    """Of a topic of two partitions: of one nothing is wrong."""
    logs = {0: SourceLog(0, 0, 10)} | ({1: log} if log else {})
    there = SourceTopic(SourceIdentity("t", "id", "b:1"), tuple(logs.values()), is_whole=log is not None)
    plan = plan_ingest("t", StoredSource(there.source, (10, 5)), there)
    topic = TopicLag("t", "location", (10, 5), plan, logs, now_ms, failed=failed or {})
    return LagScan(now_ms, (topic,), (), answered=frozenset({"b:1"}))


def without_topic(now_ms: int, why: KeptlogError) -> LagScan:
    return LagScan(now_ms, (), (), answered=frozenset({"b:1"}), missing={"t": why})


def told(scans: Mapping[int, LagScan]) -> list[tuple[int, str, str]]:
    """By minute, what people are told of looks at these minutes."""
    known: list[KnownCondition] = []
    events = []
    for minute, each in scans.items():
        seen = Sighting(minute * MINUTE_MS).with_evidence(ingest_evidence(each))
        known = after_look(known, seen, 2 * MINUTE_MS)
        new = [(one, event) for one in known if (event := one.event_for("log"))]
        events += [(minute, str(event), one.subject) for one, event in new]
        known = [one.once_told("log") for one in known]
    return events


def test_a_transaction_hangs_on_while_its_broker_is_silent() -> None:
    def at(minute: int) -> LagScan:
        return scan(minute * MINUTE_MS, None, NO_ANSWER) if 20 <= minute < 30 else scan(minute * MINUTE_MS, HANGS)

    events = told({minute: at(minute) for minute in range(60)})
    assert [each for each in events if "transaction" in each[2]] == [(16, "began", "t-1 behind an open transaction")]


def test_a_broker_that_is_silent_now_and_then_does_not_keep_the_alarm_back() -> None:
    def at(minute: int) -> LagScan:
        return scan(minute * MINUTE_MS, None, NO_ANSWER) if minute % 12 > 8 else scan(minute * MINUTE_MS, HANGS)

    events = told({minute: at(minute) for minute in range(60)})
    assert [each for each in events if "transaction" in each[2]] == [(16, "began", "t-1 behind an open transaction")]


def test_a_log_that_was_looked_at_and_has_none_ends_it_though_its_note_is_damaged() -> None:
    damaged = {1: "t-1: its note is damaged"}
    scans = {minute: scan(minute * MINUTE_MS, HANGS, damaged) for minute in range(17)}
    scans |= {minute: scan(minute * MINUTE_MS, SourceLog(1, 0, 5), damaged) for minute in range(17, 20)}
    assert (19, "cleared", "t-1 behind an open transaction") in told(scans)


@pytest.mark.parametrize("log", [HANGS, CUT_OFF])
@pytest.mark.parametrize("why", [InvalidConfig("t: not authorized"), StorageUnavailable("t: no leader")])
def test_a_topic_that_may_not_be_looked_at_now_is_not_known_to_be_fine(log: SourceLog, why: KeptlogError) -> None:
    scans = {minute: scan(minute * MINUTE_MS, log) for minute in range(17)}
    scans |= {minute: without_topic(minute * MINUTE_MS, why) for minute in range(17, 30)}
    scans |= {minute: scan(minute * MINUTE_MS, log) for minute in range(30, 40)}
    assert [event for _, event, subject in told(scans) if subject.startswith("t-1")] == ["began"]


def test_a_topic_that_is_not_there_any_more_has_none_that_hangs() -> None:
    scans = {minute: scan(minute * MINUTE_MS, HANGS) for minute in range(17)}
    scans |= {minute: without_topic(minute * MINUTE_MS, UnknownTopic("t: no such topic")) for minute in range(17, 20)}
    assert (19, "cleared", "t-1 behind an open transaction") in told(scans)
