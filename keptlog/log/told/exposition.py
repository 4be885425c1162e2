"""All that ``keptlog metrics`` shows of a home at one time, as families of numbers; pure, from what a look has found.

    kafka_log_logcleaner…     Kafka's own metrics of its cleaner, over all logs (``metrics``)
    kafka_log_log_…           Kafka's own metrics of a log, and keptlog's beside them (``gauges``)
    keptlog_conditions        what is wrong, by matter and level: what ``keptlog notify`` tells too (``conditions``)
    keptlog_look_…            when was looked, for how long, and what could not be looked at

Where the catalog, or the storage of all topics, does not answer, or no catalog is there, nothing is known of the logs,
and there are no numbers of them: neither fine nor broken. ``keptlog_up`` is 0 then. A topic that can't be read has no
numbers of its logs either, nor has a matter that nobody could look at, such as brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keptlog.log.assessment import Assessment
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holdings
from keptlog.log.told.conditions import Condition, Level, Matter, Sighting
from keptlog.log.told.gauges import (
    Detail,
    Family,
    LogFacts,
    Number,
    SourceLag,
    TopicFacts,
    detail_for,
    log_families,
    topic_families,
)
from keptlog.log.told.metrics import LastPass, cleaner_metrics
from keptlog.log.topic_partition import TopicPartition

DEFAULT_MAX_SERIES = 1000
_CLEANER = "kafka_log_logcleaner"
_CLEANER_MANAGER = "kafka_log_logcleanermanager"
_KAFKAS: Mapping[str, tuple[str, str]] = {
    "max_dirty_percent": (_CLEANER_MANAGER, "The largest dirty ratio of a log that can be cleaned, in percent."),
    "time_since_last_run_ms": (_CLEANER_MANAGER, "Milliseconds since the last clean ended."),
    "uncleanable_partitions_count": (_CLEANER_MANAGER, "Logs whose last clean failed."),
    "uncleanable_bytes": (_CLEANER_MANAGER, "Bytes that a clean of those would take."),
    "max_compaction_delay_secs": (_CLEANER, "By how much the latest log is later than max.compaction.lag.ms allows."),
    "cleaner_recopy_percent": (_CLEANER, "Bytes written by bytes judged in the last clean of each log, in percent."),
    "max_buffer_utilization_percent": (_CLEANER, "How full the fullest offset map was, in the last clean of each log."),
    "max_clean_time_secs": (_CLEANER, "The longest of the last cleans of each log."),
}
_OF_A_DIRECTORY = ("uncleanable_partitions_count", "uncleanable_bytes")
"""Those that Kafka tells for each log directory; here there is one, the home."""


@dataclass(frozen=True)
class Logs:
    """What a look at the catalog has found."""

    assessments: Sequence[Assessment] = ()
    last_passes: Mapping[TopicPartition, LastPass] = field(default_factory=dict)
    erasures: Mapping[str, OpenErasures] = field(default_factory=dict)
    """By topic, also of those that can't be read, as far as they are known."""
    holdings: Mapping[str, Holdings] = field(default_factory=dict)
    unreadable: Collection[str] = ()
    """Topics that can't be read."""
    behind: int = 0
    """How many topics are still to be read."""


class Tick(NamedTuple):
    """When sensors ticked last."""

    sensors: str
    at_ms: int


@dataclass(frozen=True)
class Look:
    """What one look at a home has found."""

    home: str
    """What it is called."""
    sighting: Sighting
    logs: Logs | None
    """Null if the catalog, or the storage of all topics, did not answer, or no catalog is there."""
    duration_ms: int = 0
    is_cleaner_enabled: bool = True
    lags: Mapping[TopicPartition, SourceLag] = field(default_factory=dict)
    """Of the topic-partitions whose broker was asked, and has answered."""
    ticks: Sequence[Tick] = ()


def exposition(look: Look, max_series: int = DEFAULT_MAX_SERIES) -> list[Family]:
    """All families; no name has more than ``max_series`` series, so that of very many logs only topics are told."""
    families = [*_of_the_look(look), *_of_conditions(look.sighting, max_series)]
    if look.logs is None:
        return families
    now_ms = look.sighting.now_ms
    logs = [
        LogFacts(each, now_ms, look.logs.last_passes.get(name), look.lags.get(name))
        for each in look.logs.assessments
        for name in (each.log.topic_partition,)
    ]
    topics = {
        topic: TopicFacts(now_ms, look.logs.erasures.get(topic), look.logs.holdings.get(topic))
        for topic in sorted({*look.logs.erasures, *look.logs.holdings})
    }
    detail = detail_for(look.logs.assessments, topics, max_series)
    return [
        *families,
        *_of_the_home(look, look.logs, detail),
        *_of_the_cleaner(look, look.logs),
        *log_families(logs, detail),
        *topic_families(topics, detail),
    ]


def reference() -> list[Family]:
    """Every family there is, without a number, with the labels that it has in full detail."""
    return [family._replace(rows=()) for family in exposition(Look("", Sighting(0), Logs()))]


def _one(name: str, meaning: str, number: Number, **labels: str) -> Family:
    return Family(name, meaning, tuple(labels), [(tuple(labels.values()), number)])


def _of_the_look(look: Look) -> Iterable[Family]:
    yield _one(
        "keptlog_up",
        "0 if the catalog, or the storage of all topics, did not answer, no catalog is there, or broker settings can't "
        "be accepted; else 1.",
        int(look.logs is not None),
    )
    yield _one("keptlog_look_timestamp_seconds", "As of when all this is told.", look.sighting.now_ms / 1000)
    yield _one("keptlog_look_duration_seconds", "How long it took to look.", look.duration_ms / 1000)
    ticks = [((each.sensors,), each.at_ms / 1000) for each in look.ticks]
    yield Family(
        "keptlog_sensors_last_tick_timestamp_seconds", "When Dagster's sensors ticked last.", ("sensors",), ticks
    )


def _of_conditions(sighting: Sighting, max_series: int) -> Iterable[Family]:
    seen = [each for each in sighting.levels.values() if each.level > Level.OPEN]
    counts = Counter((each.matter, each.level) for each in seen)
    levels = [level for level in Level if level > Level.OPEN]
    counted = [
        ((matter.value, level.name.lower()), counts[matter, level])
        for matter in sorted({*sighting.judged, *(matter for matter, _ in counts)})
        for level in levels
    ]
    meaning = "What is wrong now, by condition and level (docs/notify.md); what nobody could look at has no number."
    yield Family("keptlog_conditions", meaning, ("condition", "level"), counted)
    meaning = "The same one by one, as many as there may be series: of each condition some, and then the worst."
    rows = [_row(each) for each in _worst(seen, max_series)]
    yield Family("keptlog_condition", meaning, ("condition", "level", "subject", "topic"), rows)


def _worst(seen: Iterable[Condition], most: int) -> list[Condition]:
    """At most so many, the worst of each kind in turn: very many late logs would hide that Spark is down."""
    turns: Counter[tuple[Matter, Level]] = Counter()
    in_turn = []
    for each in sorted(seen, key=lambda each: each.id):
        in_turn.append((turns[each.matter, each.level], each))
        turns[each.matter, each.level] += 1
    in_turn.sort(key=lambda one: (one[0], -one[1].level))
    return [each for _, each in in_turn[:most]]


def _row(condition: Condition) -> tuple[tuple[str, ...], Number]:
    return (condition.matter.value, condition.level.name.lower(), condition.subject, condition.topic), 1


def _of_the_home(look: Look, logs: Logs, detail: Detail) -> Iterable[Family]:
    topics = {each.log.topic_partition.topic for each in logs.assessments}
    yield _one("keptlog_topics", "Topics that were looked at.", len(topics))
    yield _one("keptlog_logs", "Logs that were looked at.", len(logs.assessments))
    unseen = [(("unreadable",), len(logs.unreadable)), (("to be read",), logs.behind)]
    meaning = "Topics whose logs are in no number here, and why."
    yield Family("keptlog_topics_not_looked_at", meaning, ("reason",), unseen)
    yield _one("keptlog_cleaner_enabled", "log.cleaner.enable, 0 or 1.", int(look.is_cleaner_enabled))
    meaning = "Of what there is a series each: of topic-partitions, or of very many only of topics, or their total."
    yield _one("keptlog_detail", meaning, 1, detail=detail.value)


def _of_the_cleaner(look: Look, logs: Logs) -> Iterable[Family]:
    told = cleaner_metrics(logs.assessments, logs.last_passes, logs.erasures, look.sighting.now_ms)
    for name, (prefix, meaning) in _KAFKAS.items():
        number = getattr(told, name)
        labels = {"logDirectory": look.home} if name in _OF_A_DIRECTORY else {}
        rows = [] if number is None else [(tuple(labels.values()), number)]
        yield Family(f"{prefix}_{name}", meaning, tuple(labels), rows)
