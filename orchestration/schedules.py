"""What the clock alone starts, beside what sensors do: one deletes, one reads all logs back, two are off."""

import dagster as dg

from keptlog.dagster.orchestration.ingest_job import ingest_kafka
from keptlog.dagster.orchestration.jobs import clean_logs, purge
from keptlog.dagster.orchestration.requests import TRIGGER_TAG
from keptlog.dagster.orchestration.verify_job import verify

purge_schedule = dg.ScheduleDefinition(
    name="purge_schedule",
    job=purge,
    cron_schedule="*/10 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Deletes replaced files: at most file.delete.delay.ms plus ten minutes after a clean they are gone.",
)

verify_schedule = dg.ScheduleDefinition(
    name="verify_schedule",
    job=verify,
    cron_schedule="0 4 * * *",
    tags={TRIGGER_TAG: "schedule"},
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Reads all logs back every night and checks the guarantees: what breaks in a log that nobody changes is seen "
        "here and nowhere else. Turn it off where reading everything once a day costs too much."
    ),
)

full_clean_schedule = dg.ScheduleDefinition(
    name="full_clean_schedule",
    job=clean_logs,
    cron_schedule="0 3 * * *",
    run_config={"ops": {"plan": {"config": {"requested": True}}}},
    tags={TRIGGER_TAG: "requested"},
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Cleans whatever is cleanable, due or not. Off until you want logs tighter than their dirty ratio.",
)

ingest_schedule = dg.ScheduleDefinition(
    name="ingest_schedule",
    job=ingest_kafka,
    cron_schedule="0 * * * *",
    tags={TRIGGER_TAG: "schedule"},
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=(
        "Ingests all topics that have a Kafka source, every hour. Off, because ingest_lag_sensor asks for a run as "
        "soon as there is something to read: turn this on and the sensor off where one run an hour is enough."
    ),
)
SCHEDULES = [purge_schedule, verify_schedule, full_clean_schedule, ingest_schedule]
