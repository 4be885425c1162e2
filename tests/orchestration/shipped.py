"""HomeJobs, sensors and schedules as keptlog's own definitions have them: without a prefix, over whatever home."""

from __future__ import annotations

import dagster as dg

from keptlog.dagster.assets.mount import RESOURCES, Mount
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.clean_job import PASSES
from keptlog.dagster.orchestration.definitions import sensors_of
from keptlog.dagster.orchestration.jobs import HomeJobs
from keptlog.dagster.orchestration.retention_sensor import retention_sensor as make_retention_sensor

AUTOMATION = Automation(Mount(), HomeJobs.of(Mount()))
SENSORS = {sensor.name: sensor for sensor in sensors_of(AUTOMATION, 300)}
_RESOURCES = dict.fromkeys((*RESOURCES, PASSES), dg.FilesystemIOManager())
"""Only there for jobs to be whole: a run that a test makes up executes nothing."""
DEFS = dg.Definitions(jobs=AUTOMATION.jobs.all, resources=_RESOURCES)

clean_logs, ingest_kafka, verify_erasures = (
    DEFS.get_job_def(name) for name in ("clean_logs", "ingest_kafka", "verify_erasures")
)
max_compaction_lag_sensor = SENSORS["max_compaction_lag_sensor"]
dirty_ratio_sensor = SENSORS["dirty_ratio_sensor"]
tombstone_expiry_sensor = SENSORS["tombstone_expiry_sensor"]
failed_run_sensor = SENSORS["failed_run_sensor"]
ingest_lag_sensor = SENSORS["ingest_lag_sensor"]
erasure_sensor = SENSORS["erasure_sensor"]
health_sensor = SENSORS["health_sensor"]

CLEAN_SENSORS = (max_compaction_lag_sensor, dirty_ratio_sensor, tombstone_expiry_sensor)

KEYS = AUTOMATION.mount.keys
ERASURES_KEY = KEYS.erasures
DEADLINE_CHECK = dg.AssetCheckKey(ERASURES_KEY, "erasure_deadline")


def retention_sensor(interval_seconds: int) -> dg.SensorDefinition:
    """The sensor of retention, as often as somebody wants it."""
    return make_retention_sensor(AUTOMATION, interval_seconds)
