"""All that Dagster loads: assets of each topic and one of erasures, jobs, sensors, schedules, and what they need.

The topics are read when the code location is loaded, so a new topic's assets appear after a reload; its logs are
cleaned before that, because jobs and sensors work on the store (``docs/dagster.md``). A home that is empty or can't be
reached must not break loading: the asset graph then holds one asset that says so, and the sensors go on trying. Nor
must a topic that can't be read, such as one that a newer keptlog has written: one asset in its place says why.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from keptlog.dagster.assets.erasures import erasures_asset
from keptlog.dagster.assets.names import names_of
from keptlog.dagster.assets.sections import clean_section, dirty_section, ingested_section, source_section
from keptlog.dagster.orchestration.erase_job import erase, verify_erasures
from keptlog.dagster.orchestration.erasure_sensor import erasure_sensor
from keptlog.dagster.orchestration.ingest_job import ingest_kafka
from keptlog.dagster.orchestration.ingest_sensor import ingest_lag_sensor
from keptlog.dagster.orchestration.jobs import clean_logs, purge, retention
from keptlog.dagster.orchestration.schedules import SCHEDULES
from keptlog.dagster.orchestration.sensors import SENSORS
from keptlog.dagster.orchestration.upkeep import failed_run_sensor, retention_interval_seconds, retention_sensor
from keptlog.dagster.orchestration.verify_job import verify
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.spark import spark_resource
from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.source import SourceIdentity
from keptlog.table.store import LogStore
from keptlog.table.topics import Topic


def build_defs(log_store: LogStoreResource | None = None, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """The definitions over a home; ``resources`` (``clock``, ``spark`` …) go over those that are built here."""
    log_store = log_store or LogStoreResource()
    return dg.Definitions(
        assets=topic_assets(log_store),
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


def topic_assets(log_store: LogStoreResource) -> list[dg.AssetSpec | dg.AssetsDefinition]:
    """The sections of every topic and their sources, or one asset that says why there are none.

    No broker is asked: what a topic remembers of its source is enough.
    """
    try:
        store = log_store.store
        # What the sensors of this process will need anyway; of a large home as much as there is time for.
        seen = log_store.observer.look(ClockResource().read_ms())
        topics, unreadable = _described(store, seen.unreadable)
    except (KeptlogError, OSError) as error:
        return [_notice(["home_unreachable"], f"{log_store.path} can't be read: {error}. Reload when it is back.")]
    if not topics and not unreadable:
        create = "`keptlog topic create TOPIC --config cleanup.policy=compact`"
        return [
            _notice(["no_topics_yet"], f"{log_store.path} has no topics yet. Create one with {create}, then reload.")
        ]
    names = names_of(topic.name for topic, _ in topics)
    notices = [
        _notice([topic, "unreadable"], f"{topic} can't be read: {error}. Reload when that is mended.")
        for topic, error in unreadable.items()
    ]
    sections = [each for topic, source in topics for each in _assets_of(topic, names[topic.name], source)]
    return [*notices, *sections, erasures_asset()]


def _described(
    store: LogStore, unreadable_logs: Mapping[str, KeptlogError]
) -> tuple[list[tuple[Topic, SourceIdentity | None]], dict[str, KeptlogError]]:
    """The topics with their sources, and why the others can't be read.

    Raises:
        StorageUnavailable: the catalog can't be reached, or not one topic can.
    """
    topics: list[tuple[Topic, SourceIdentity | None]] = []
    unreadable: dict[str, KeptlogError] = {}
    for name in store.topics():
        if name in unreadable_logs:
            unreadable[name] = unreadable_logs[name]
            continue
        try:
            topics.append((store.describe_topic(name), store.source_of(name).source))
        except UnknownTopic:
            # It was deleted just now.
            continue
        except KeptlogError as error:
            unreadable[name] = error
    outages = [error for error in unreadable.values() if isinstance(error, StorageUnavailable)]
    if outages and len(outages) == len(unreadable) and not topics:
        raise outages[0]
    return topics, unreadable


def _assets_of(topic: Topic, name: str, source: SourceIdentity | None) -> list[dg.AssetSpec | dg.AssetsDefinition]:
    if source is None or source.bootstrap is None:
        return [dirty_section(topic, name), clean_section(topic, name)]
    return [source_section(topic, name, source), ingested_section(topic, name, source), clean_section(topic, name)]


def _notice(key: list[str], description: str) -> dg.AssetSpec:
    return dg.AssetSpec(dg.AssetKey(key), description=description, group_name="keptlog")


@dg.definitions
def defs() -> dg.Definitions:
    """What ``workspace.yaml`` loads; a function, so that importing this module opens nothing."""
    return build_defs()
