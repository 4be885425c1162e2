"""Numbers of logs for a monitoring system, one at a time and together: what ``keptlog metrics`` shows of them.

A gauge is a name, what it means, how it is read of one log, and how the numbers of several logs become one:

    keptlog_log_late_seconds{topic="users",partition="0"} 60
    keptlog_log_late_seconds{topic="users",partition="1"} 0
    keptlog_log_late_seconds{topic="users"}               60     the same of the topic: the largest
    kafka_log_log_size{topic="users"}                     9000   here it is the sum

A home may have more logs than a monitoring system should keep series for. So there is a bound (``detail_for``). Up to
it each log is told, above it each topic, above that all of them together. The names stay, so a rule over them goes on
working; only labels are missing.

Whatever is not known has no number: a log without a deadline, one that was never cleaned, a source that nobody asked.
No key of a record is in a label.

The names that begin with ``kafka_`` are those that jmx_exporter makes of Kafka's metrics, with the rules that Strimzi
ships (``lowercaseOutputName``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from keptlog.log.assessment import Assessment
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holdings
from keptlog.log.segment import total_bytes
from keptlog.log.told.health import late_ms
from keptlog.log.told.metrics import LastPass

Number = int | float
Facts = TypeVar("Facts")


class Detail(StrEnum):
    """Of what there is a series each."""

    LOG = "topic-partition"
    TOPIC = "topic"
    TOTAL = "total"


class Family(NamedTuple):
    """All series of one name."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    rows: Sequence[tuple[tuple[str, ...], Number]]
    """The labels' values, and the number."""


class SourceLag(NamedTuple):
    """Where a log stands at its source."""

    offsets: int | None
    """Still to be ingested; null if it is stopped, and that is not known."""
    is_stopped: bool
    waiting: int = 0
    """Behind an open transaction there, and so not to be ingested before that ends."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What is known of one log."""

    assessment: Assessment
    now_ms: int
    last_pass: LastPass | None = None
    lag: SourceLag | None = None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is known of one topic, beside its logs."""

    now_ms: int
    erasures: OpenErasures | None = None
    holdings: Holdings | None = None


class Gauge(NamedTuple, Generic[Facts]):
    """One number of a log, or of a topic."""

    name: str
    meaning: str
    of: Callable[[Facts], Number | None]
    together: Callable[[Iterable[Number]], Number]


def _of_compacted(read: Callable[[LogFacts], Number | None]) -> Callable[[LogFacts], Number | None]:
    return lambda facts: read(facts) if facts.assessment.log.config.is_compacted else None


def _of_pass(read: Callable[[LastPass], Number]) -> Callable[[LogFacts], Number | None]:
    return lambda facts: None if facts.last_pass is None else read(facts.last_pass)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _held_since_ms(facts: LogFacts) -> int | None:
    if not facts.assessment.log.holds.readers:
        return None
    return min((each.since_ms for each in facts.assessment.holdings), default=None)


LOG_GAUGES: tuple[Gauge[LogFacts], ...] = (
    Gauge(
        "kafka_log_log_size",
        "Bytes of the live segments.",
        lambda facts: total_bytes(facts.assessment.log.segments),
        sum,
    ),
    Gauge(
        "kafka_log_log_numlogsegments",
        "Live segments.",
        lambda facts: len(facts.assessment.log.segments),
        sum,
    ),
    Gauge(
        "kafka_log_log_logstartoffset",
        "The first offset that may be read.",
        lambda facts: facts.assessment.log.log_start_offset,
        sum,
    ),
    Gauge(
        "kafka_log_log_logendoffset",
        "The next offset to be assigned, or to be read at the source.",
        lambda facts: facts.assessment.log.log_end_offset,
        sum,
    ),
    Gauge(
        "keptlog_log_records",
        "Records in the live segments.",
        lambda facts: sum(segment.record_count for segment in facts.assessment.log.segments),
        sum,
    ),
    Gauge(
        "keptlog_log_dirty_ratio",
        "Cleanable bytes by clean and cleanable bytes, 0 to 1; of several logs the largest.",
        _of_compacted(lambda facts: facts.assessment.cleanable_ratio),
        max,
    ),
    Gauge(
        "keptlog_log_cleanable_bytes",
        "Bytes that a clean would take now.",
        _of_compacted(lambda facts: total_bytes(facts.assessment.sections.cleanable)),
        sum,
    ),
    Gauge(
        "keptlog_log_waiting_bytes",
        "Dirty bytes that can't be cleaned yet: too young, or in the active segment.",
        _of_compacted(
            lambda facts: total_bytes(facts.assessment.sections.uncleanable + facts.assessment.sections.active)
        ),
        sum,
    ),
    Gauge(
        "keptlog_log_due",
        "Whether it is to be cleaned now, 0 or 1; of several logs how many are.",
        _of_compacted(lambda facts: int(facts.assessment.trigger is not None)),
        sum,
    ),
    Gauge(
        "keptlog_log_deadline_timestamp_seconds",
        "When its oldest record that was never compacted reaches max.compaction.lag.ms; of several logs the earliest.",
        lambda facts: _seconds(facts.assessment.deadline_ms),
        min,
    ),
    Gauge(
        "keptlog_log_late_seconds",
        "How long ago that deadline passed, 0 before it; of several logs the longest.",
        _of_compacted(lambda facts: late_ms(facts.assessment, facts.now_ms) / 1000),
        max,
    ),
    Gauge(
        "keptlog_log_uncleanable",
        "Whether its last clean failed, 0 or 1; of several logs how many did.",
        _of_compacted(lambda facts: int(facts.assessment.log.uncleanable is not None)),
        sum,
    ),
    Gauge(
        "keptlog_log_failed_cleans",
        "How many cleans failed in a row; of several logs the most.",
        _of_compacted(lambda facts: mark.attempts if (mark := facts.assessment.log.uncleanable) else 0),
        max,
    ),
    Gauge(
        "keptlog_log_hold_seconds",
        "For how long the oldest tombstone past its delete horizon has waited for a registered reader; of several logs "
        "the longest.",
        lambda facts: _seconds(facts.now_ms - since_ms) if (since_ms := _held_since_ms(facts)) is not None else None,
        max,
    ),
    Gauge(
        "keptlog_last_pass_timestamp_seconds",
        "When its last clean ended; of several logs the earliest.",
        _of_pass(lambda last: last.ended_ms / 1000),
        min,
    ),
    Gauge(
        "keptlog_last_pass_duration_seconds",
        "How long the rewrite of its last clean took, with the logs that were cleaned beside it; the longest.",
        _of_pass(lambda last: last.duration_ms / 1000),
        max,
    ),
    Gauge(
        "keptlog_last_pass_read_bytes", "Bytes that its last clean judged.", _of_pass(lambda last: last.bytes_read), sum
    ),
    Gauge(
        "keptlog_last_pass_written_bytes",
        "Bytes that its last clean wrote.",
        _of_pass(lambda last: last.bytes_written),
        sum,
    ),
    Gauge(
        "keptlog_ingest_lag_offsets",
        "Offsets at its broker that are still to be ingested.",
        lambda facts: facts.lag.offsets if facts.lag else None,
        sum,
    ),
    Gauge(
        "keptlog_ingest_lag_max_offsets",
        "The same; of several logs the most, so that very many that are hardly behind are not added up.",
        lambda facts: facts.lag.offsets if facts.lag else None,
        max,
    ),
    Gauge(
        "keptlog_ingest_waiting_offsets",
        "Offsets at its broker that can't be ingested before an open transaction ends; they are not in the lag.",
        lambda facts: facts.lag.waiting if facts.lag else None,
        sum,
    ),
    Gauge(
        "keptlog_ingest_stopped",
        "Whether its ingest is stopped, because going on would lose or mix records, 0 or 1; of several how many are.",
        lambda facts: int(facts.lag.is_stopped) if facts.lag else None,
        sum,
    ),
)

TOPIC_GAUGES: tuple[Gauge[TopicFacts], ...] = (
    Gauge(
        "keptlog_erasures_open", "Erasures that are not done.", lambda f: f.erasures.count if f.erasures else None, sum
    ),
    Gauge(
        "keptlog_erasures_overdue",
        "Erasures that are not done, and past their deadline.",
        lambda facts: facts.erasures.overdue_count(facts.now_ms) if facts.erasures else None,
        sum,
    ),
    Gauge(
        "keptlog_erasure_deadline_timestamp_seconds",
        "The earliest deadline of an erasure that is not done.",
        lambda facts: _seconds(facts.erasures.earliest_deadline_ms) if facts.erasures else None,
        min,
    ),
    Gauge(
        "keptlog_held_bytes",
        "Bytes that are not live and still stored, as far as the tables tell: what a purge is to delete.",
        lambda facts: sum(each.bytes or 0 for each in facts.holdings.held) if facts.holdings else None,
        sum,
    ),
    Gauge(
        "keptlog_purge_deadline_timestamp_seconds",
        "By when a purge is to have deleted the first of them.",
        lambda facts: _seconds(_first_purge_ms(facts.holdings)) if facts.holdings else None,
        min,
    ),
    Gauge(
        "keptlog_holders_late",
        "What keeps such bytes past that deadline (older snapshots, tags, branches …): how many.",
        lambda facts: len(facts.holdings.late(facts.now_ms)) if facts.holdings else None,
        sum,
    ),
)


def _first_purge_ms(holdings: Holdings) -> int | None:
    known_ms = (each.deadline_ms(holdings.terms) for each in holdings.held)
    return min((deadline_ms for deadline_ms in known_ms if deadline_ms is not None), default=None)


def detail_for(logs: Collection[Assessment], more_topics: Iterable[str], max_series: int) -> Detail:
    """As much detail as gives no name more series than that; of ``more_topics`` there are numbers, and perhaps no log.

    Where no topic can be read, there are still their erasures.
    """
    topics = {*more_topics, *(each.log.topic_partition.topic for each in logs)}
    if len(topics) > max_series:
        return Detail.TOTAL
    return Detail.LOG if len(logs) <= max_series else Detail.TOPIC


def log_families(logs: Iterable[LogFacts], detail: Detail) -> list[Family]:
    """All gauges of these logs."""
    by_labels: dict[tuple[str, ...], list[LogFacts]] = {}
    for facts in logs:
        name = facts.assessment.log.topic_partition
        labels = {Detail.LOG: (name.topic, str(name.partition)), Detail.TOPIC: (name.topic,)}.get(detail, ())
        by_labels.setdefault(labels, []).append(facts)
    names = {Detail.LOG: ("topic", "partition"), Detail.TOPIC: ("topic",)}.get(detail, ())
    return _families(LOG_GAUGES, names, by_labels)


def topic_families(topics: Mapping[str, TopicFacts], detail: Detail) -> list[Family]:
    """All gauges of these topics."""
    if detail is Detail.TOTAL:
        return _families(TOPIC_GAUGES, (), {(): list(topics.values())})
    return _families(TOPIC_GAUGES, ("topic",), {(topic,): [facts] for topic, facts in topics.items()})


def _families(
    gauges: Iterable[Gauge[Facts]], labels: tuple[str, ...], by_labels: Mapping[tuple[str, ...], Sequence[Facts]]
) -> list[Family]:
    families = []
    for gauge in gauges:
        rows: list[tuple[tuple[str, ...], Number]] = []
        for values, group in by_labels.items():
            known = [number for facts in group if (number := gauge.of(facts)) is not None]
            if known:
                rows.append((values, known[0] if len(known) == 1 else gauge.together(known)))
        families.append(Family(gauge.name, gauge.meaning, labels, rows))
    return families
