"""The sensor on consumer lag: asks for one run over the topics that are far enough behind their brokers.

A topic is due when it is ``KEPTLOG_INGEST_MIN_LAG`` offsets behind, or by fewer for ``KEPTLOG_INGEST_MAX_WAIT_MS``.
What is being ingested is left to its run. What failed is left alone for a while, topic-partition by topic-partition, so
that it neither starts a run at every tick nor holds up the rest of its topic.

A stopped topic-partition (``keptlog.log.source``) can't go on by itself. It is asked for all the same, with the same
pauses: the run that fails is what people are alerted by. Its reason stands in every tick and in its observation too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from keptlog.dagster.assets.ingest_report import by_reason, source_observation
from keptlog.dagster.orchestration.in_flight import ingests_in_flight
from keptlog.dagster.orchestration.ingest_failures import Failures, recent_failures
from keptlog.dagster.orchestration.ingest_job import ingest_kafka
from keptlog.dagster.orchestration.lag import IngestedTopic, LagScan, lag_scanner_of
from keptlog.dagster.orchestration.requests import LOGS_TAG, NAMES_IN_TAG, TRIGGER_TAG, run_key, some_of
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.errors import InvalidConfig
from keptlog.log.counted import counted
from keptlog.log.iso_time import iso_time
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import backoff_of

TRIGGER = "consumer_lag"
_TOLD = 5
"""Reasons of one kind that a tick tells; there may be thousands."""

NO_SOURCE = (
    "no topic here has a Kafka source yet: `keptlog ingest kafka --bootstrap HOST:PORT --topic TOPIC` gives it one, or "
    "the job ingest_kafka from the launchpad"
)


@dataclass(frozen=True)
class Judged:
    """What becomes of the topics in one tick."""

    requested: tuple[tuple[IngestedTopic, TopicPartition], ...]
    reasons: tuple[str, ...]
    """Why others are not."""


@dg.sensor(
    name="ingest_lag_sensor",
    job=ingest_kafka,
    description="Ingests topics that are behind their Kafka brokers, and says what is stopped and why.",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def ingest_lag_sensor(
    context: dg.SensorEvaluationContext, kafka: KafkaResource, clock: ClockResource
) -> dg.SensorResult:
    scanner = lag_scanner_of(kafka.log_store)
    if not scanner.sources():
        return dg.SensorResult(skip_reason=NO_SOURCE)
    try:
        settings = kafka.settings
        enough = Enough(kafka.effective_min_lag, kafka.effective_max_wait_ms)
    except InvalidConfig as error:
        return dg.SensorResult(skip_reason=f"nothing can be ingested: {error}")
    scan = scanner.scan(settings, clock.read_ms())
    failures = recent_failures(context.instance, backoff_of(kafka.log_store.broker))
    judged = judge(context.instance, scan, enough, failures)
    request = [_request(judged, scan, failures)] if judged.requested else []
    for reason in judged.reasons if request else ():
        context.log.info(reason)
    return dg.SensorResult(
        run_requests=request,
        skip_reason=None if request else "; ".join(judged.reasons),
        asset_events=[
            source_observation(name, state.position, state.log, state.stopped) for name, state in scanner.news(scan)
        ],
    )


@dataclass(frozen=True)
class Enough:
    """When a run is worth it."""

    min_lag: int
    max_wait_ms: int

    def due_ms(self, topic: IngestedTopic) -> int:
        """When a topic is due; 0 for at once."""
        return 0 if topic.lag >= self.min_lag else topic.waiting_since_ms + self.max_wait_ms


def judge(instance: dg.DagsterInstance, scan: LagScan, enough: Enough, failures: Failures) -> Judged:
    """Which topic-partitions to ask for, and why not the others."""
    busy = ingests_in_flight(instance)
    requested: list[tuple[IngestedTopic, TopicPartition]] = []
    behind: list[str] = []
    paused: dict[str, str] = {}
    stopped: list[str] = []
    for topic in scan.topics:
        stopped += [f"stopped: {line}" for line in by_reason({str(name): why for name, why in topic.stopped.items()})]
        if busy.includes_topic(topic.topic):
            behind.append(f"{topic.topic} is being ingested")
            continue
        due_ms = enough.due_ms(topic)
        if topic.lag and scan.now_ms < due_ms:
            behind.append(f"{topic.topic} is only {topic.lag} behind; due at {iso_time(due_ms)}")
        for name in [*(topic.behind if topic.lag and scan.now_ms >= due_ms else ()), *topic.stopped]:
            retry_at_ms = failures.retry_at_ms(name, topic.position(name))
            if scan.now_ms < retry_at_ms:
                attempts = failures.count(name, topic.position(name))
                paused[str(name)] = f"failed {counted(attempts, 'time')}, the next ingest is at {iso_time(retry_at_ms)}"
            else:
                requested.append((topic, name))
    if scan.topics and not (requested or behind or paused or stopped):
        topics = counted(len(scan.topics), "ingested topic")
        names = counted(sum(len(topic.names) for topic in scan.topics), "topic-partition")
        behind = [f"{topics}, {names}, none is behind its broker"]
    reasons = [line for kind in (scan.unanswered, stopped, by_reason(paused), behind) for line in _some(kind)]
    return Judged(tuple(requested), tuple(reasons))


def _some(lines: tuple[str, ...] | list[str]) -> Iterator[str]:
    yield from lines[:_TOLD]
    if len(lines) > _TOLD:
        yield f"and {len(lines) - _TOLD} more"


def _request(judged: Judged, scan: LagScan, failures: Failures) -> dg.RunRequest:
    """One run; its key changes with the topics' state and with every failure, or Dagster would start it only once."""
    names = [str(name) for _, name in judged.requested]
    states = [f"{topic.location}#{failures.count(name, topic.position(name))}" for topic, name in judged.requested]
    return dg.RunRequest(
        run_key=run_key(TRIGGER, names, states, scan.now_ms),
        run_config={"ops": {"ingest": {"config": {"topic_partitions": names}}}},
        # The sensor tries again, with pauses; two ways of trying again would multiply.
        tags={TRIGGER_TAG: TRIGGER, LOGS_TAG: some_of(names, NAMES_IN_TAG), "dagster/max_retries": "0"},
    )
