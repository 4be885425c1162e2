"""The sensor that asks for retention.

It is a sensor and not a schedule, because ``log.retention.check.interval.ms`` is not in cron's minutes, and
because a look at what the process has in memory shows whether a run would do anything at all. The interval is read when
the code location is loaded.

What a run is retaining already, or waits to, is not asked for again: its key would differ with every append, and the
slower of two runs over one log fails. A run takes so many logs, and the cursor says behind which log the next one
begins: busy logs have an old segment at each look, and would else take all places of each run. Those that could not be
retained within the last hour come last: so would a large topic whose storage refuses each commit. No longer, or the
others would keep the logs of one run that died waiting for ever.

Dagster starts a key once. So runs that died, or that an outage has stopped, are part of the key: what they left is
asked for again at the next tick. A run that somebody has cancelled is no part of it, nor is one that could not retain
a log for what is wrong with it: what these left waits until the hour is over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.long_tags import tag_text
from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG
from keptlog.dagster.orchestration.automation import LONGEST_SECONDS, Automation
from keptlog.dagster.orchestration.in_flight import (
    UNDER_WAY,
    begun_and_queued,
    has_ended_lately,
    retentions_in_flight,
    slow_cleans,
    slow_runs,
    stopped_retentions,
)
from keptlog.dagster.orchestration.own_runs import RETENTION_JOB_NAME, OwnRuns
from keptlog.dagster.orchestration.requests import LOGS_TAG, NAMES_IN_TAG, TRIGGER_TAG, left_of, run_key
from keptlog.dagster.orchestration.stored_ticks import behind
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError
from keptlog.log.assessment import Trigger
from keptlog.log.broker import BrokerConfig
from keptlog.log.words.counted import counted, some_of
from keptlog.passes.observer import Overview
from keptlog.settings import broker_settings

RETENTION_SENSOR = "retention_sensor"
LOGS_PER_RUN = 1_000
"""More than of a clean: no record is read or written, a topic is one commit."""
_RUNS = 100
"""So many failed runs are looked back at."""
_TOLD = 3
"""Of what a tick tells about single topics and logs."""


@dataclass(frozen=True)
class _Stopped:
    """What runs that failed, or were cancelled, did not retain, by topic-partition."""

    lately: Counter[str] = field(default_factory=Counter)
    """How many of those that ended within the last hour."""
    blameless_ids: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Those that failed through no fault of a log."""

    @classmethod
    def of(cls, own: OwnRuns) -> _Stopped:
        stopped = cls()
        statuses = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
        for record in own.records(*statuses, job_name=RETENTION_JOB_NAME, limit=_RUNS):
            run, names = record.dagster_run, stopped_retentions(record.dagster_run)
            has_failed = run.status is dg.DagsterRunStatus.FAILURE
            if has_ended_lately(record):
                stopped.lately.update(names)
            if has_failed and (OUTAGE_TAG in run.tags or not tag_text(run.tags, FAILED_TAG)):
                for name in names:
                    stopped.blameless_ids[name].append(run.run_id)
        return stopped


def retention_interval_seconds(log_store: LogStoreResource) -> int:
    """``log.retention.check.interval.ms`` as far as Dagster takes it, Kafka's default while the home can't be read."""
    try:
        # Not the resource's: that opens the catalog, and every run loads this.
        broker = BrokerConfig.of(broker_settings(log_store.path))
    except (KeptlogError, OSError):
        broker = BrokerConfig()
    return min(max(1, broker.log_retention_check_interval_ms // 1000), LONGEST_SECONDS)


def retention_sensor(automation: Automation, interval_seconds: int) -> dg.SensorDefinition:
    """The sensor that looks for old segments every so often."""
    mount = automation.mount

    @dg.sensor(
        name=mount.name(RETENTION_SENSOR),
        job=automation.jobs.retention,
        description="Removes old segments (cleanup.policy=delete), as often as log.retention.check.interval.ms says.",
        minimum_interval_seconds=automation.seconds(RETENTION_SENSOR, interval_seconds),
        default_status=automation.sensor_status(RETENTION_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock"),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        return _tick(MountCall(mount, context))

    return sensor


def _tick(tick: Tick) -> dg.SensorResult:
    seen = tick.log_store.observer.look(tick.now_ms())
    retainer = tick.log_store.retainer
    logs = seen.logs
    planned = retainer.plan(logs, seen.now_ms)
    seen, old = seen.but_for(planned.unplanned), planned.steps
    if not old:
        none = f"{counted(len(logs), 'log')}, none has a segment to remove now"
        none += "" if seen.locations else tick.log_store.perhaps_away()
        return dg.SensorResult(skip_reason="; ".join([none, *_unseen(seen)]))
    own = OwnRuns.of_tick(tick)
    records = own.records(*UNDER_WAY)
    (cleaning, _), retaining = begun_and_queued(own, records), retentions_in_flight(own, records)
    unasked = [log for log in logs if not retaining.includes(log)]
    plan = retainer.plan(unasked, seen.now_ms, is_clean_under_way=cleaning.includes)
    stopped = _Stopped.of(own)
    topics = {str(step.topic_partition): step.topic_partition.topic for step in plan.steps}
    left = left_of(len(topics), LOGS_PER_RUN)
    in_turn = behind((tick.context.cursor or "") if left else "", topics)
    names = sorted(in_turn, key=lambda name: stopped.lately[name])[:LOGS_PER_RUN]
    if not names:
        both = [(str(step.topic_partition), step.topic_partition.topic) for step in old]
        asked = [name for name, topic in both if retaining.includes_name(name, topic)]
        cleaned = [name for name, topic in both if not retaining.includes_name(name, topic)]
        waiting = []
        if asked:
            waiting.append(f"being retained, or waiting for a place: {some_of(asked, _TOLD)}")
            waiting += slow_runs(own, records, RETENTION_JOB_NAME)[:_TOLD]
        if cleaned:
            waiting.append(f"to be retained once their cleans are done: {some_of(cleaned, _TOLD)}")
            waiting += slow_cleans(own, records, seen.locations)[:_TOLD]
        return dg.SensorResult(skip_reason="; ".join([*waiting, *_unseen(seen)]))
    if left:
        tick.context.log.info(left)
    states = [f"{seen.locations[topics[name]]}#{sorted(stopped.blameless_ids[name])}" for name in names]
    request = dg.RunRequest(
        run_key=run_key(Trigger.RETENTION.value, names, states, seen.now_ms),
        run_config={"ops": {"remove_old_segments": {"config": {"logs": names}}}},
        tags={TRIGGER_TAG: Trigger.RETENTION.value, LOGS_TAG: some_of(names, NAMES_IN_TAG)},
    )
    return dg.SensorResult(run_requests=[request], cursor=names[-1])


def _unseen(seen: Overview) -> list[str]:
    return [*seen.behind_lines(), *seen.unreadable_lines(_TOLD)]
