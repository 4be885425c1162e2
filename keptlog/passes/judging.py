"""Judging the logs of many topics, one apart from the other: a log that can't be judged costs only its topic.

topic a    judged
topic b    a number in it that nobody has thought of: named as a topic that can't be read
topic c    judged
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment, assess
from keptlog.log.segment import Log
from keptlog.passes.observable import Observable
from keptlog.table.waiting.reaching import apart

if TYPE_CHECKING:
    from keptlog.table.metadata.logs import ObservedTopic


def judged(logs: Iterable[Log], now_ms: int) -> list[Assessment]:
    """How these logs stand."""
    return [assess(log, now_ms) for log in logs]


def seen_and_judged(
    store: Observable, topic: str, location: str, now_ms: int
) -> tuple[ObservedTopic, list[Assessment]] | KeptlogError:
    """What a topic's table says, and how its logs stand; or why nobody can tell."""

    def look() -> tuple[ObservedTopic, list[Assessment]]:
        observed = store.observe(topic, location)
        return observed, judged(observed.logs, now_ms)

    return apart(topic, look)


def judged_apart(logs: Iterable[Log], now_ms: int) -> tuple[list[Assessment], dict[str, KeptlogError]]:
    """How logs of several topics stand, in their order; and why those of a topic can't be judged, by topic."""
    in_order = list(logs)
    of_topics: dict[str, list[Log]] = {}
    for log in in_order:
        of_topics.setdefault(log.topic_partition.topic, []).append(log)
    found = {topic: apart(topic, partial(judged, of_topic, now_ms)) for topic, of_topic in of_topics.items()}
    told = {
        each.log.topic_partition: each for seen in found.values() if not isinstance(seen, KeptlogError) for each in seen
    }
    unjudged = {topic: seen for topic, seen in found.items() if isinstance(seen, KeptlogError)}
    return [told[log.topic_partition] for log in in_order if log.topic_partition in told], unjudged


def judged_again_ms(assessment: Assessment) -> float:
    """When the clock first changes something: at once for one that is due; while one waits, not its next try alone."""
    moments = (assessment.due_ms, assessment.good_until_ms)
    return min((ms for ms in moments if ms is not None), default=math.inf)
