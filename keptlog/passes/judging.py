"""Judging the logs of many topics, one apart from the other: a log that can't be judged costs only its topic.

topic a    judged
topic b    a number in it that nobody has thought of: named as a topic that can't be read
topic c    judged

So it is with what follows from a judgement: when the clock changes something of it, and what a pass would do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment, ask_all, assess
from keptlog.log.segment import Log
from keptlog.passes.observable import Observable
from keptlog.table.waiting.reaching import apart, parted

if TYPE_CHECKING:
    from keptlog.table.metadata.logs import ObservedTopic


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Judgements:
    """Logs as they stand and, log by log, when the clock first changes something of that.

    All of it is found out together: a log of which only some can be told is one that can't be judged. Whoever sorts,
    counts or shows the logs of all topics need not fear it.
    """

    assessments: list[Assessment]
    again_ms: list[float]

    def judge_again(self, now_ms: int) -> None:
        """Judge the logs anew for which the clock has reached something, or was set back."""
        for number, again_ms in enumerate(self.again_ms):
            if again_ms <= now_ms or now_ms < self.assessments[number].now_ms:
                self.assessments[number] = _judged(self.assessments[number].log, now_ms)
                self.again_ms[number] = _again_ms(self.assessments[number])


def judged(logs: Iterable[Log], now_ms: int) -> Judgements:
    """How these logs stand."""
    assessments = [_judged(log, now_ms) for log in logs]
    return Judgements(assessments, [_again_ms(each) for each in assessments])


def seen_and_judged(
    store: Observable, topic: str, location: str, now_ms: int
) -> tuple[ObservedTopic, Judgements] | KeptlogError:
    """What a topic's table says, and how its logs stand; or why nobody can tell."""

    def look() -> tuple[ObservedTopic, Judgements]:
        observed = store.observe(topic, location)
        return observed, judged(observed.logs, now_ms)

    return apart(topic, look)


def topics_apart(
    logs: Iterable[Log], look: Callable[[list[Log]], Found]
) -> tuple[dict[str, Found], dict[str, KeptlogError]]:
    """What a look at the logs of each topic gives, and why others give nothing, by topic; logs stay in their order."""
    of_topics: dict[str, list[Log]] = {}
    for log in logs:
        of_topics.setdefault(log.topic_partition.topic, []).append(log)
    return parted({topic: apart(topic, partial(look, of_topic)) for topic, of_topic in of_topics.items()})


def judged_apart(logs: Iterable[Log], now_ms: int) -> tuple[list[Assessment], dict[str, KeptlogError]]:
    """How logs of several topics stand, in their order; and why those of a topic can't be judged, by topic."""
    in_order = list(logs)
    found, unjudged = topics_apart(in_order, lambda of_topic: [_judged(log, now_ms) for log in of_topic])
    told = {each.log.topic_partition: each for of_topic in found.values() for each in of_topic}
    return [told[log.topic_partition] for log in in_order if log.topic_partition in told], unjudged


def _judged(log: Log, now_ms: int) -> Assessment:
    assessment = assess(log, now_ms)
    ask_all(assessment)
    return assessment


def _again_ms(assessment: Assessment) -> float:
    """When the clock first changes something: at once for one that is due; while one waits, not its next try alone."""
    moments = (assessment.due_ms, assessment.good_until_ms)
    return min((ms for ms in moments if ms is not None), default=math.inf)
