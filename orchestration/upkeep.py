"""Two more sensors: one asks for retention, one remembers runs that died.

Retention is a sensor and not a schedule, because ``log.retention.check.interval.ms`` is not in cron's minutes, and
because a look at what the process has in memory shows whether a run would do anything at all. The interval is read when
the code location is loaded.

A clean that fails says so itself, in the topic. A run whose process dies can't: its logs would be asked for again at
once, and kill the next run. So its failure marks those that are still due. A run that an outage has stopped marks none.
"""

from __future__ import annotations

import dagster as dg

from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.in_flight import (
    RETENTION_JOB_NAME,
    configured_logs,
    logs_in_flight,
    retained_logs,
)
from keptlog.dagster.orchestration.outages import recent_outages
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.orchestration.requests import LOGS_PER_RUN, LOGS_TAG, TRIGGER_TAG, run_key, some_of
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError
from keptlog.log.assessment import Trigger
from keptlog.log.broker import BrokerConfig
from keptlog.log.counted import counted
from keptlog.settings import BROKER_FILE, broker_settings

RETENTION_SENSOR = "retention_sensor"
FAILED_RUN_SENSOR = "failed_run_sensor"


def retention_interval_seconds(log_store: LogStoreResource) -> int:
    """``log.retention.check.interval.ms``, Kafka's default while the home can't be read."""
    try:
        # Not the resource's: that opens the catalog, and every run loads this.
        broker = BrokerConfig.of(broker_settings(log_store.path / BROKER_FILE))
    except (KeptlogError, OSError):
        broker = BrokerConfig()
    return max(1, broker.log_retention_check_interval_ms // 1000)


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
    old = retainer.plan(logs, seen.now_ms).steps
    if not old:
        return dg.SensorResult(skip_reason=f"{counted(len(logs), 'log')}, none has a segment to remove now")
    own = OwnRuns.of_tick(tick)
    plan = retainer.plan(logs, seen.now_ms, is_busy=logs_in_flight(own).includes)
    topic_partitions = [step.topic_partition for step in plan.steps[:LOGS_PER_RUN]]
    if not topic_partitions:
        waiting = some_of([str(step.topic_partition) for step in old], 3)
        return dg.SensorResult(skip_reason=f"to be retained once their cleans are done: {waiting}")
    names = [str(each) for each in topic_partitions]
    outages = recent_outages(own, RETENTION_JOB_NAME, retained_logs, seen.now_ms)
    states = [f"{seen.locations[each.topic]}#{outages.count(str(each))}" for each in topic_partitions]
    request = dg.RunRequest(
        run_key=run_key(Trigger.RETENTION.value, names, states, seen.now_ms),
        run_config={"ops": {"remove_old_segments": {"config": {"logs": names}}}},
        tags={TRIGGER_TAG: Trigger.RETENTION.value, LOGS_TAG: some_of(names, 5)},
    )
    return dg.SensorResult(run_requests=[request])


def failed_run_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor that remembers runs that died."""
    mount = automation.mount

    def evaluate(context: dg.RunStatusSensorContext) -> dg.SkipReason:
        return _marked(MountCall(mount, context.for_run_failure()))

    return dg.RunStatusSensorDefinition(
        name=mount.name(FAILED_RUN_SENSOR),
        run_status=dg.DagsterRunStatus.FAILURE,
        run_status_sensor_fn=evaluate,
        monitored_jobs=[automation.jobs.clean_logs],
        description="Marks the logs of a run that died as uncleanable, so that they are tried again with a back-off.",
        minimum_interval_seconds=automation.seconds(FAILED_RUN_SENSOR),
        default_status=automation.sensor_status(FAILED_RUN_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock"),
    )


def _marked(tick: MountCall[dg.RunFailureSensorContext]) -> dg.SkipReason:
    context, run = tick.context, tick.context.dagster_run
    if OUTAGE_TAG in run.tags:
        return dg.SkipReason(f"an outage has stopped run {run.run_id}, which is no log's fault: nothing is marked")
    if FAILED_TAG in run.tags:
        return dg.SkipReason(f"run {run.run_id} has marked the logs that failed itself")
    if run.tags.get("dagster/will_retry") == "true":
        return dg.SkipReason(f"run {run.run_id} is tried again")
    names = configured_logs(run)
    if not names:
        return dg.SkipReason(f"run {run.run_id} named no logs")
    reason = f"run {run.run_id} died: {_why(context)}"
    marked = tick.log_store.cleaner().mark_still_due(names, reason, now_ms=tick.now_ms())
    return dg.SkipReason(f"marked as uncleanable: {', '.join(marked) or 'none, nothing is due any more'}")


def _why(context: dg.RunFailureSensorContext) -> str:
    """What a step failed with, in one line; what Dagster says of the run where no step could say anything."""
    for event in context.get_step_failure_events():
        error = event.step_failure_data.error
        while error and error.cause:
            error = error.cause
        if error:
            return " ".join(error.message.split())
    return " ".join((context.failure_event.message or "without a message").split())
