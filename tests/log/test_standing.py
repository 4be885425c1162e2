"""The numbers of a judgement are those of every later one, until it is said to be no longer good."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.assessment import assess
from keptlog.log.segment import Log
from keptlog.log.told.health import worst_of
from keptlog.log.told.metrics import LastPass, added_up, cleaner_metrics, metrics_of
from keptlog.log.told.standing import LogStanding, Term, standing_of, term_of, worst_standings
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable
from tests.building import HOUR_MS, NOW_MS, config, log, segment
from tests.log.test_assessment import logs_with_tombstones

TIMES = st.integers(NOW_MS - 1000, NOW_MS + 9000)
PASS = LastPass(ended_ms=NOW_MS - 70, duration_ms=4999, bytes_read=1000, bytes_written=299, map_keys=19, map_slots=100)


@st.composite
def any_logs(draw: st.DrawFn) -> Log:
    """Also such as are not compacted, or whose last clean failed."""
    judged = draw(logs_with_tombstones())
    if draw(st.booleans()):
        retry_ms = draw(st.integers(NOW_MS - 1000, NOW_MS + 9000))
        wait_ms = draw(st.none() | st.integers(0, 9000))
        judged = replace(judged, uncleanable=Uncleanable("torn", NOW_MS - 5000, 1, retry_ms, wait_ms=wait_ms))
    if draw(st.integers(0, 3)) == 0:
        judged = replace(judged, config=replace(judged.config, cleanup_policy=("delete",)))
    return judged


@dataclass
class Topic:
    """As a topic's standings are remembered."""

    of_logs: list[LogStanding]

    @property
    def worst(self) -> LogStanding | None:
        return self.of_logs[0] if self.of_logs else None

    def standings(self) -> Iterable[LogStanding]:
        return self.of_logs


@given(any_logs(), TIMES, st.data())
def test_a_standing_is_told_alike_for_its_whole_term(judged: Log, now_ms: int, data: st.DataObject) -> None:
    before = assess(judged, now_ms)
    until_ms = before.good_until_ms
    assert until_ms is None or until_ms > now_ms
    later_ms = data.draw(st.integers(now_ms, now_ms + 10**9 if until_ms is None else until_ms - 1))
    after = assess(judged, later_ms)
    assert standing_of(before, PASS) == standing_of(after, PASS)
    told = standing_of(before, PASS)
    assert told.due_ms(later_ms) == after.due_ms
    assert told.delay_ms(later_ms) == after.max_compaction_delay_ms
    name = judged.topic_partition
    assert metrics_of(told.tally, [], later_ms) == cleaner_metrics([after], {name: PASS}, {}, later_ms)


@given(st.lists(st.lists(any_logs(), max_size=3), max_size=4), TIMES, st.data())
def test_the_worst_of_all_topics_are_those_of_all_judgements(
    topics: list[list[Log]], now_ms: int, data: st.DataObject
) -> None:
    named = [
        [replace(each, topic_partition=TopicPartition(f"topic-{number}", at)) for at, each in enumerate(of_topic)]
        for number, of_topic in enumerate(topics)
    ]
    judged = [[assess(each, now_ms) for each in of_topic] for of_topic in named]
    until_ms = term_of((each for of_topic in judged for each in of_topic), now_ms).until_ms
    later_ms = data.draw(st.integers(now_ms, now_ms + 10**9 if until_ms is None else until_ms - 1))
    remembered = [
        Topic(sorted((standing_of(each, None) for each in of_topic), key=lambda each: each.rank(now_ms)))
        for of_topic in judged
    ]
    again = [assess(each, later_ms) for of_topic in named for each in of_topic]
    limit = data.draw(st.integers(0, 9))
    told = [each.topic_partition for each in worst_standings(remembered, later_ms, limit)]
    assert told == [each.log.topic_partition for each in worst_of(again, later_ms, limit)]


@given(st.lists(any_logs(), max_size=4))
def test_tallies_add_up_to_the_metrics_of_all_logs(logs: list[Log]) -> None:
    judged = [assess(replace(each, topic_partition=TopicPartition("t", n)), NOW_MS) for n, each in enumerate(logs)]
    passes = {TopicPartition("t", n): replace(PASS, ended_ms=n) for n in range(0, len(logs), 2)}
    tallies = [standing_of(each, passes.get(each.log.topic_partition)).tally for each in judged]
    both = [added_up(tallies[:2]), added_up(tallies[2:])]
    assert metrics_of(added_up(both), [], NOW_MS) == cleaner_metrics(judged, passes, {}, NOW_MS)


def test_a_term_ends_with_the_first_log_that_changes_and_never_holds_before_it_began() -> None:
    lag = config(max_compaction_lag_ms=2 * HOUR_MS)
    soon, later = (assess(log([segment(0, 9, time_ms=NOW_MS - ms)], lag), NOW_MS) for ms in (HOUR_MS, 1))
    term = term_of([later, soon], NOW_MS)
    assert term == Term(NOW_MS, NOW_MS + HOUR_MS + 1)
    assert [term.has(NOW_MS + ms) for ms in (-1, 0, HOUR_MS, HOUR_MS + 1)] == [False, True, True, False]
    assert Term(NOW_MS, None).has(NOW_MS + 10**12)
