"""What is said of an active segment: which rule keeps it, when it is closed, and how to close it sooner."""

from __future__ import annotations

from keptlog.log.active import why_active
from keptlog.log.assessment import assess
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log
from tests.building import HOUR_MS, NOW_MS, config, log, segment

DAY_MS = 24 * HOUR_MS


def told(judged: Log) -> str:
    return why_active(assess(judged, NOW_MS)) or "nothing"


def test_the_rule_its_time_and_the_command_are_named() -> None:
    active = log([segment(0, 9), segment(10, 19, time_ms=NOW_MS - 2 * HOUR_MS)], config(segment_ms=DAY_MS))
    assert "(offsets 0 to 19, 20 records, 200 B) is never cleaned" in told(active)
    assert "segment.ms closes it at 2023-11-15T20:13:20.001Z" in told(active)  # by its oldest record
    assert "larger than segment.bytes=1073741824 sooner" in told(active)


def test_the_command_that_is_named_closes_it() -> None:
    for age_ms in (2, 1500, 2 * HOUR_MS, 3 * DAY_MS):
        young = log([segment(0, 9, time_ms=NOW_MS - age_ms)])
        _, _, command = told(young).partition("keptlog topic alter t --config segment.ms=")
        assert told(log(list(young.segments), config(segment_ms=int(command)))) == "nothing", age_ms


def test_a_shorter_maximum_lag_closes_it_first() -> None:
    lagging = log([segment(0, 9)], config(max_compaction_lag_ms=HOUR_MS))
    assert "max.compaction.lag.ms closes it at 2023-11-14T23:13:20.001Z" in told(lagging)


def test_a_segment_that_no_time_closes_is_said_to_be_so() -> None:
    assert "segment.ms closes it never" in told(log([segment(0, 9)], config(segment_ms=2**63 - 1)))


def test_records_of_times_to_come_are_named_and_no_command_that_would_not_help() -> None:
    ahead = told(log([segment(0, 9, time_ms=NOW_MS + DAY_MS)]))
    assert "its records are of up to 2023-11-15T22:13:20.000Z, which is to come" in ahead
    assert "keptlog topic alter" not in ahead


def test_nothing_is_said_without_an_active_segment_or_a_cleaner() -> None:
    assert told(log([segment(0, 9)], checkpoint=10)) == "nothing"
    assert told(log([segment(0, 9)], TopicConfig.of({"cleanup.policy": "delete"}))) == "nothing"
