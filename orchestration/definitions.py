"""All that Dagster loads: assets of each topic and one of erasures, jobs, sensors, schedules, and what they need.

The topics are read when the code location is loaded, so a new topic's assets appear after a reload; its logs are
cleaned before that, because jobs and sensors work on the store (``docs/dagster.md``). A home that is empty or can't be
reached must not break loading: the asset graph then holds one asset that says so, and the sensors go on trying. Nor
must a topic that can't be read, such as one that a newer keptlog has written: one asset in its place says why.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from keptlog.dagster.orchestration.erase_job import erase, verify_erasures
from keptlog.dagster.orchestration.erasure_sensor import erasure_sensor
from keptlog.dagster.orchestration.ingest_job import ingest_kafka
from keptlog.dagster.orchestration.ingest_sensor import ingest_lag_sensor
from keptlog.dagster.orchestration.jobs import clean_logs, purge, retention
from keptlog.dagster.orchestration.schedules import SCHEDULES
from keptlog.dagster.orchestration.sensors import SENSORS
from keptlog.dagster.orchestration.topic_assets import seen_topics, topic_assets
from keptlog.dagster.orchestration.upkeep import failed_run_sensor, retention_interval_seconds, retention_sensor
from keptlog.dagster.orchestration.verify_job import verify
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.spark import spark_resource


def build_defs(log_store: LogStoreResource | None = None, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """The definitions over a home; ``resources`` (``clock``, ``spark`` …) go over those that are built here."""
    log_store = log_store or LogStoreResource()
    return dg.Definitions(
        assets=topic_assets(seen_topics(log_store), log_store.path),
        jobs=[clean_logs, retention, purge, verify, ingest_kafka, erase, verify_erasures],
        sensors=[
            *SENSORS,
            retention_sensor(retention_interval_seconds(log_store)),
            failed_run_sensor,
            ingest_lag_sensor,
            erasure_sensor,
        ],
        schedules=SCHEDULES,
        executor=dg.in_process_executor,
        resources={
            "log_store": log_store,
            "spark": spark_resource(),
            "clock": ClockResource(),
            "kafka": KafkaResource(log_store=log_store),
            **(resources or {}),
        },
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What ``workspace.yaml`` loads; a function, so that importing this module opens nothing."""
    return build_defs()
