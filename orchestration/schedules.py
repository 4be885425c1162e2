"""What the clock alone starts, beside what sensors do: one deletes, one reads all logs back, two are off."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import dagster as dg
from dagster._core.storage.tags import PRIORITY_TAG, SCHEDULE_NAME_TAG

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.in_flight import UNDER_WAY
from keptlog.dagster.orchestration.late_first import PRIORITY
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME, VERIFY_JOB_NAME, OwnRuns
from keptlog.dagster.orchestration.requests import TRIGGER_TAG

PURGE_SCHEDULE = "purge_schedule"
VERIFY_SCHEDULE = "verify_schedule"
FULL_CLEAN_SCHEDULE = "full_clean_schedule"
INGEST_SCHEDULE = "ingest_schedule"
LONGEST_PURGE = timedelta(hours=6)
"""A run of the schedule that is older has died, though nobody has told: it holds up no other. Deadlines are later."""
LONGEST_VERIFY = timedelta(hours=36)
"""The same of a run that verifies: one that has died costs one night, and one of days is joined every other night."""
HOME_TAG = "keptlog/home"
"""On a run of these schedules: of whose home it is, as a digest."""
SCHEDULES = (PURGE_SCHEDULE, VERIFY_SCHEDULE, FULL_CLEAN_SCHEDULE, INGEST_SCHEDULE)


@dataclass(frozen=True)
class _Alone:
    """A schedule that asks for one run at a time."""

    name: str
    job_name: str
    longest: timedelta
    tags: Mapping[str, str] = field(default_factory=dict)
    """On its runs, beside whose home it is."""


_PURGE = _Alone(PURGE_SCHEDULE, PURGE_JOB_NAME, LONGEST_PURGE, {PRIORITY_TAG: PRIORITY})
_VERIFY = _Alone(VERIFY_SCHEDULE, VERIFY_JOB_NAME, LONGEST_VERIFY, {TRIGGER_TAG: "schedule"})


def schedules(automation: Automation, home: str) -> list[dg.ScheduleDefinition]:
    """The schedules of a home; ``home`` tells it from others (``LogStoreResource.identity``)."""
    name, jobs = automation.mount.name, automation.jobs
    purge = dg.ScheduleDefinition(
        name=name(PURGE_SCHEDULE),
        job=jobs.purge,
        cron_schedule=automation.cron(PURGE_SCHEDULE, "*/10 * * * *"),
        execution_fn=_unless_under_way(automation.mount, home, _PURGE),
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
        execution_fn=_unless_under_way(automation.mount, home, _VERIFY),
        default_status=automation.schedule_status(VERIFY_SCHEDULE, is_on=True),
        description=(
            "Reads all logs back every night and checks the guarantees: what breaks in a log that nobody changes is "
            "seen here and nowhere else. While its last run is under way it asks for no other. Turn it off where "
            "reading everything once a day costs too much."
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
    mount: Mount, home: str, schedule: _Alone
) -> Callable[[dg.ScheduleEvaluationContext], dg.RunRequest | dg.SkipReason]:
    """Asks for a run unless the schedule's last one is under way: slow ones would take all places of runs."""
    # A schedule does not know its place, and that of another code location may have its name: at each tick the run of
    # the one could keep the other's from ever being asked for.
    of_home = {HOME_TAG: hashlib.sha256(home.encode()).hexdigest()[:16]}

    def evaluate(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        own, tags = OwnRuns(context.instance, mount=mount), {SCHEDULE_NAME_TAG: mount.name(schedule.name), **of_home}
        for record in own.records(*UNDER_WAY, job_name=schedule.job_name, tags=tags, limit=1):
            if record.create_timestamp > context.scheduled_execution_time - schedule.longest:
                told = f"run {record.dagster_run.run_id} is still under way; the next tick asks again"
                return dg.SkipReason(told)
        return dg.RunRequest(tags={**of_home, **schedule.tags})

    return evaluate
