"""What the clock alone starts, beside what sensors do: one deletes, one reads all logs back, two are off."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta

import dagster as dg
from dagster._core.storage.tags import SCHEDULE_NAME_TAG

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.in_flight import PURGE_JOB_NAME, UNDER_WAY
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.orchestration.requests import TRIGGER_TAG

PURGE_SCHEDULE = "purge_schedule"
VERIFY_SCHEDULE = "verify_schedule"
FULL_CLEAN_SCHEDULE = "full_clean_schedule"
INGEST_SCHEDULE = "ingest_schedule"
LONGEST_PURGE = timedelta(hours=6)
"""A run of the schedule that is older has died, though nobody has told: it holds up no other. Deadlines are later."""
HOME_TAG = "keptlog/home"
"""On a run of the schedule: whose home it purges, as a digest."""
SCHEDULES = (PURGE_SCHEDULE, VERIFY_SCHEDULE, FULL_CLEAN_SCHEDULE, INGEST_SCHEDULE)


def schedules(automation: Automation, home: str) -> list[dg.ScheduleDefinition]:
    """The schedules of a home; ``home`` tells it from others (``LogStoreResource.identity``)."""
    name, jobs = automation.mount.name, automation.jobs
    purge = dg.ScheduleDefinition(
        name=name(PURGE_SCHEDULE),
        job=jobs.purge,
        cron_schedule=automation.cron(PURGE_SCHEDULE, "*/10 * * * *"),
        execution_fn=_unless_under_way(automation.mount, home),
        default_status=automation.schedule_status(PURGE_SCHEDULE, is_on=True),
        description=(
            "Deletes replaced files: file.delete.delay.ms after a clean, and the time to the next run of this. While a "
            "run of it is under way it asks for no other."
        ),
    )
    verify = dg.ScheduleDefinition(
        name=name(VERIFY_SCHEDULE),
        job=jobs.verify,
        cron_schedule=automation.cron(VERIFY_SCHEDULE, "0 4 * * *"),
        tags={TRIGGER_TAG: "schedule"},
        default_status=automation.schedule_status(VERIFY_SCHEDULE, is_on=True),
        description=(
            "Reads all logs back every night and checks the guarantees: what breaks in a log that nobody changes is "
            "seen here and nowhere else. Turn it off where reading everything once a day costs too much."
        ),
    )
    full_clean = dg.ScheduleDefinition(
        name=name(FULL_CLEAN_SCHEDULE),
        job=jobs.clean_logs,
        cron_schedule=automation.cron(FULL_CLEAN_SCHEDULE, "0 3 * * *"),
        run_config={"ops": {"plan": {"config": {"requested": True}}}},
        tags={TRIGGER_TAG: "requested"},
        default_status=automation.schedule_status(FULL_CLEAN_SCHEDULE, is_on=False),
        description="Cleans whatever is cleanable, due or not. Off until you want logs tighter than their dirty ratio.",
    )
    ingest = dg.ScheduleDefinition(
        name=name(INGEST_SCHEDULE),
        job=jobs.ingest_kafka,
        cron_schedule=automation.cron(INGEST_SCHEDULE, "0 * * * *"),
        tags={TRIGGER_TAG: "schedule"},
        default_status=automation.schedule_status(INGEST_SCHEDULE, is_on=False),
        description=(
            "Ingests all topics that have a Kafka source, every hour. Off, because ingest_lag_sensor asks for a run as "
            "soon as there is something to read: turn this on and the sensor off where one run an hour is enough."
        ),
    )
    return [purge, verify, full_clean, ingest]


def _unless_under_way(
    mount: Mount, home: str
) -> Callable[[dg.ScheduleEvaluationContext], dg.RunRequest | dg.SkipReason]:
    """Asks for a purge unless the schedule's last one is under way: a slow storage's would take all places of runs."""
    # A schedule does not know its place, and that of another code location may have its name: at each tick the purge of
    # the one could keep the other's from ever being asked for.
    of_home = {HOME_TAG: hashlib.sha256(home.encode()).hexdigest()[:16]}

    def evaluate(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        own, tags = OwnRuns(context.instance, mount=mount), {SCHEDULE_NAME_TAG: mount.name(PURGE_SCHEDULE), **of_home}
        for record in own.records(*UNDER_WAY, job_name=PURGE_JOB_NAME, tags=tags, limit=1):
            if record.create_timestamp > context.scheduled_execution_time - LONGEST_PURGE:
                told = f"run {record.dagster_run.run_id} is still under way; the next tick asks again"
                return dg.SkipReason(told)
        return dg.RunRequest(tags=of_home)

    return evaluate
