"""The sensor on consumer lag: asks for one run over the topics that are far enough behind their brokers.

A topic is due when it is ``KEPTLOG_INGEST_MIN_LAG`` offsets behind, or by fewer for ``KEPTLOG_INGEST_MAX_WAIT_MS``.
What is being ingested is left to its run, and no run is asked for while the Spark server that runs use does not answer.
What failed or was cancelled is left alone for a while, topic-partition by topic-partition, so that it neither starts a
run at every tick nor holds up the rest of its topic.

A stopped topic-partition (``keptlog.log.source``) can't go on by itself. Its reason stands in every tick and in its
observation. It is asked for all the same, with the same pauses: the run that fails is what people are alerted by. One
that an ingest has stopped at, where there is something to be read, is asked for as all that is behind: once its topic
is due.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.dagster.assets.ingest_report import (
    by_reason,
    scan_in_configuration,
    source_observation,
    source_outlook,
    stopped_in_configuration,
)
from keptlog.dagster.assets.long_tags import as_tags
from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.orchestration.asset_sensors import SensorOfAssets
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.in_flight import UNDER_WAY, InFlight, ingests_in_flight, slow_ingests
from keptlog.dagster.orchestration.ingest_failures import ASKED_AT_TAG, IngestFailures, recent_failures
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.orchestration.requests import LOGS_TAG, NAMES_IN_TAG, TRIGGER_TAG, run_key
from keptlog.dagster.orchestration.stored_ticks import TellingCursor
from keptlog.dagster.orchestration.told_lags import ToldLags
from keptlog.dagster.resources.lag import lag_scanner_of
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted, first_lines, some_of
from keptlog.log.words.iso_time import next_time
from keptlog.log.words.named import unnamed
from keptlog.passes.clean import backoff_of

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan, LagThreshold, TopicLag
    from keptlog.ingest.log_lag import LogLag

INGEST_LAG_SENSOR = "ingest_lag_sensor"
TRIGGER = "consumer_lag"
_TELLINGS = "told"
"""In the cursor, before how many ticks have told of lags."""
_TOLD = 5
"""Reasons of one kind that a tick tells; there may be thousands."""

NO_SOURCE = (
    "no topic here has a Kafka source yet: `keptlog ingest kafka --bootstrap HOST:PORT --topic TOPIC` gives it one, or "
    "the job ingest_kafka from the launchpad"
)


@dataclass(frozen=True)
class LagDecision:
    """What becomes of the topics in one tick."""

    requested: tuple[tuple[TopicLag, TopicPartition], ...]
    reasons: tuple[str, ...]
    """Why others are not."""


def ingest_lag_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor of a home."""
    mount = automation.mount

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        return _tick(MountCall(mount, context))

    return SensorOfAssets(
        [key_of(topic) for key_of in (mount.keys.source, mount.keys.dirty) for topic in automation.ingested],
        name=mount.name(INGEST_LAG_SENSOR),
        evaluation_fn=evaluate,
        job=automation.jobs.ingest_kafka,
        description="Ingests topics that are behind their Kafka brokers, and says what is stopped and why.",
        minimum_interval_seconds=automation.seconds(INGEST_LAG_SENSOR),
        default_status=automation.sensor_status(INGEST_LAG_SENSOR),
        required_resource_keys=mount.needs("log_store", "kafka", "clock", "spark"),
    )


def _tick(tick: Tick) -> dg.SensorResult:
    kafka, log_store = tick.kafka, tick.log_store
    scanner = lag_scanner_of(log_store)
    sources = scanner.sources()
    if not sources.may_have_brokers:
        return dg.SensorResult(skip_reason=NO_SOURCE + log_store.perhaps_away())
    try:
        settings, threshold = kafka.settings(log_store), kafka.threshold
    except InvalidConfig as error:
        return dg.SensorResult(skip_reason=f"nothing can be ingested: {error}")
    lags = ToldLags.of(tick)
    lags.news.mark_untold(lags.untold(tick.context.cursor))
    scan = scan_in_configuration(scanner.scan(settings, tick.now_ms(), sources))
    own = OwnRuns.of_tick(tick)
    failures = recent_failures(own, backoff_of(log_store.broker), scan.now_ms, lambda: _topic_ids(tick))
    records = own.records(*UNDER_WAY)
    slow = slow_ingests(own, records, [topic.topic for topic in scan.topics])
    decision = decide(scan, threshold, ingests_in_flight(own, records), failures, slow)
    spark_is_down = tick.why_spark_is_down() if decision.requested else None
    request = [_request(decision, scan, failures)] if decision.requested and not spark_is_down else []
    for reason in decision.reasons if request else ():
        tick.context.log.info(reason)
    before = TellingCursor.of(tick.context.cursor)
    news, turns = lags.to_tell(tick, scan, [before.turn(0), before.turn(1)])
    cursor = before.after(_TELLINGS, len(news), *turns)
    lags.ends(tick.context.cursor, cursor, (name for name, _ in news))
    return dg.SensorResult(
        run_requests=request,
        skip_reason=None if request else "; ".join([*([spark_is_down] if spark_is_down else []), *decision.reasons]),
        asset_events=_observations(tick, scan, news),
        cursor=cursor,
    )


def _observations(
    tick: Tick, scan: LagScan, news: Sequence[tuple[TopicPartition, LogLag]]
) -> list[dg.AssetObservation]:
    names = {name.topic for name, _ in news}
    topics = {topic.topic: (source_outlook(topic), topic.plan.source) for topic in scan.topics if topic.topic in names}
    return [source_observation(tick.keys, name, lag, *topics[name.topic]) for name, lag in news]


def _topic_ids(tick: Tick) -> dict[str, str | None]:
    """The ids of the topics that can be read now."""
    try:
        seen = tick.log_store.observer.look(tick.now_ms())
    except StorageUnavailable:
        return {}  # then what has failed before counts on
    return {log.topic_partition.topic: log.topic_id for log in seen.logs}


def decide(
    scan: LagScan, threshold: LagThreshold, in_flight: InFlight, failures: IngestFailures, slow: Sequence[str] = ()
) -> LagDecision:
    """Which topic-partitions to ask for, and why not the others.

    ``slow`` are the runs that have been ingesting for hours while a topic waits for one: people are told of them.
    """
    requested: list[tuple[TopicLag, TopicPartition]] = []
    left_to_wait: list[str] = []
    paused: dict[str, str] = {}
    for topic in scan.topics:
        why_waits = _why_it_waits(topic, threshold, in_flight, scan.now_ms)
        left_to_wait += [why_waits] if why_waits else []
        if in_flight.includes_any_of(topic.topic):
            continue
        behind = dict.fromkeys(topic.behind)
        due = behind if topic.lag and not why_waits else {}
        # What has stopped with nothing that may be read has no lag to wait for.
        beyond = [name for name in topic.stopped if name not in behind]
        for name in [*due, *beyond]:
            if why_paused := _why_paused(topic, name, failures, scan.now_ms):
                paused[str(name)] = why_paused
            else:
                requested.append((topic, name))
    stopped = [f"stopped: {line}" for topic in scan.topics for line in by_reason(stopped_in_configuration(topic))]
    if scan.topics and not (requested or left_to_wait or paused or stopped):
        left_to_wait = [_all_caught_up(scan)]
    unread = [
        f"{topic}: whether it has a broker is not known: {unnamed(topic, why)}" for topic, why in scan.unread.items()
    ]
    kinds = (scan.unanswered, unread, stopped, by_reason(paused), slow, left_to_wait)
    reasons = [line for kind in kinds for line in first_lines(kind, _TOLD)]
    return LagDecision(tuple(requested), tuple(reasons))


def _why_it_waits(topic: TopicLag, threshold: LagThreshold, in_flight: InFlight, now_ms: int) -> str | None:
    """Why nothing that is behind is asked for; null if it is asked for, or nothing is behind."""
    if in_flight.includes_any_of(topic.topic):
        return f"{topic.topic} is being ingested"
    due_ms = threshold.due_ms(topic)
    if topic.lag and now_ms < due_ms:
        return f"{topic.topic} is only {topic.lag} behind; due {next_time(due_ms)}"
    return None


def _why_paused(topic: TopicLag, name: TopicPartition, failures: IngestFailures, now_ms: int) -> str | None:
    """Why a topic-partition is not tried again yet; null if it may be."""
    position = topic.position(name)
    retry_at_ms = failures.retry_at_ms(name, position)
    if now_ms >= retry_at_ms:
        return None
    attempts = counted(failures.count(name, position), "time")
    failed = "failed or was cancelled" if failures.is_any_cancelled(name, position) else "failed"
    return f"{failed} {attempts}, the next ingest is {next_time(retry_at_ms)}"


def _all_caught_up(scan: LagScan) -> str:
    topics = counted(len(scan.topics), "ingested topic")
    names = counted(sum(len(topic.names) for topic in scan.topics), "topic-partition")
    return f"{topics}, {names}, none is behind its broker"


def _request(decision: LagDecision, scan: LagScan, failures: IngestFailures) -> dg.RunRequest:
    """One run; its key changes with the topics' state and every failure, or Dagster would start it only once."""
    names = [str(name) for _, name in decision.requested]
    states = [f"{topic.location}#{failures.runs(name)}" for topic, name in decision.requested]
    seen = [(str(name), topic.seen_ms.get(name.partition)) for topic, name in decision.requested]
    seen_ms = {name: at_ms for name, at_ms in seen if at_ms is not None}
    positions = {str(name): topic.position(name) for topic, name in decision.requested}
    return dg.RunRequest(
        run_key=run_key(TRIGGER, names, states, scan.now_ms),
        run_config={"ops": {"ingest": {"config": {"topic_partitions": names, "seen_ms": seen_ms}}}},
        tags={
            TRIGGER_TAG: TRIGGER,
            LOGS_TAG: some_of(names, NAMES_IN_TAG),
            **as_tags(ASKED_AT_TAG, json.dumps(positions)),
            # The sensor tries again, with pauses; two ways of trying again would multiply.
            "dagster/max_retries": "0",
        },
    )
