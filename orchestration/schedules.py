"""What the clock alone starts. Cleaning is the sensors' business; these two are about storage and peace of mind."""

import dagster as dg

from orchestration.jobs import clean_logs, purge
from orchestration.requests import TRIGGER_TAG

purge_schedule = dg.ScheduleDefinition(
    name="purge_schedule",
    job=purge,
    cron_schedule="*/10 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Deletes replaced files: at most file.delete.delay.ms plus ten minutes after a clean they are gone.",
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
SCHEDULES = [purge_schedule, full_clean_schedule]
