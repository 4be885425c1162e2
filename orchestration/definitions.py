"""All that Dagster loads: assets of each topic and one of erasures, jobs, sensors, schedules, and what they need.

``build_defs`` makes them for a home, or for some of its topics, for a project to merge with its own: all that has a
name may have a prefix, and nothing is set for the whole code location. ``defs`` is what ``workspace.yaml`` loads: the
topics of one home, without prefixes, in a code location of their own.

The topics are read when the code location is loaded, so a new topic's assets appear after a reload; its logs are
cleaned before that, because jobs and sensors work on the store (``docs/dagster.md``). A home that is empty or can't be
reached must not break loading: the asset graph then holds one asset that says so, and the sensors go on trying. Nor
must a topic that can't be read, such as one that a newer keptlog has written: one asset in its place says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import dagster as dg

from keptlog.dagster.assets.mount import RESOURCES, TOPIC_IO_MANAGER, Mount, Owners, by_name, by_prefix
from keptlog.dagster.assets.names import AssetKeys
from keptlog.dagster.assets.translator import AS_DELIVERED, DagsterKeptlogTranslator
from keptlog.dagster.orchestration.automation import Automation, Intervals
from keptlog.dagster.orchestration.clean_job import PASSES
from keptlog.dagster.orchestration.clean_sensors import CLEAN_SENSORS, clean_sensors
from keptlog.dagster.orchestration.erasure_sensor import ERASURE_SENSOR, erasure_sensor
from keptlog.dagster.orchestration.failed_runs import FAILED_RUN_SENSOR, failed_run_sensor
from keptlog.dagster.orchestration.health_sensor import HEALTH_SENSOR, health_sensor
from keptlog.dagster.orchestration.ingest_sensor import INGEST_LAG_SENSOR, ingest_lag_sensor
from keptlog.dagster.orchestration.jobs import HomeJobs
from keptlog.dagster.orchestration.loading import definitions_that_stay, seen_topics
from keptlog.dagster.orchestration.notify_sensor import NOTIFY_SENSOR, notify_sensor
from keptlog.dagster.orchestration.retention_sensor import (
    RETENTION_SENSOR,
    retention_interval_seconds,
    retention_sensor,
)
from keptlog.dagster.orchestration.schedules import SCHEDULES, schedules
from keptlog.dagster.orchestration.state_file import StateFile
from keptlog.dagster.orchestration.topic_assets import topic_assets
from keptlog.dagster.orchestration.topics_sensor import TOPICS_SENSOR, Loaded, topics_sensor
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.io_manager import topic_io_manager
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.passes import pass_io_manager
from keptlog.dagster.resources.spark import SparkResource
from keptlog.errors import InvalidConfig

SENSORS = (
    *CLEAN_SENSORS,
    RETENTION_SENSOR,
    FAILED_RUN_SENSOR,
    INGEST_LAG_SENSOR,
    ERASURE_SENSOR,
    HEALTH_SENSOR,
    NOTIFY_SENSOR,
    TOPICS_SENSOR,
)
"""Their names, without a prefix."""
_GROUP_BY: Mapping[str, Callable[[str], str]] = {"name": by_name, "prefix": by_prefix}


class MountOptions(TypedDict, total=False):
    """How a home is shown in a Dagster, and when it starts runs."""

    topics: str | Sequence[str]
    """Patterns of the topics that these definitions look after, such as ``crm.*``; all if it is left out."""
    key_prefix: str | Sequence[str]
    """Goes before all asset keys."""
    name_prefix: str
    """Goes before the names of jobs, ops, sensors, schedules, resources and the pool: ``crm`` makes ``crm_purge``."""
    translator: DagsterKeptlogTranslator
    """What decides over the assets in the end."""
    group_by: Literal["name", "prefix"] | Callable[[str], str]
    """A topic's group, in which a dot is a step down. By its whole name, or by what stands before the last dot."""
    owners: Owners
    """Of all topics, or by patterns of their names."""
    intervals: Intervals
    """By sensor the seconds between two ticks, by schedule its cron expression; names without a prefix."""
    sensors_on: bool | Collection[str]
    """Which sensors and schedules run from the start: all, none, or these; names without a prefix."""


def build_defs(
    home: str | Path | LogStoreResource | None = None,
    resources: Mapping[str, Any] | None = None,
    **shown: Unpack[MountOptions],
) -> dg.Definitions:
    """The definitions over a home: ``KEPTLOG_HOME`` or ``./.keptlog`` if none is given.

    ``resources`` (``log_store``, ``spark``, ``clock``, ``kafka``) take the place of those that are made here, wherever
    one is used. They are given without a prefix.

    Raises:
        InvalidConfig: something that is given is unknown, or does not fit together.
    """
    bound = _resources(home, resources or {}, shown.get("topics", ()))
    mount, log_store = _mount(shown), bound["log_store"]
    state = StateFile.of(log_store)
    seen = seen_topics(log_store, state)
    automation = Automation(
        mount,
        HomeJobs.of(mount),
        shown.get("intervals", {}),
        shown.get("sensors_on"),
        topics=[topic.name for topic in seen.topics],
        ingested=[topic.name for topic in seen.topics if topic.source],
    )
    with definitions_that_stay():
        return dg.Definitions(
            assets=topic_assets(mount, seen, log_store.told),
            jobs=automation.jobs.all,
            sensors=[
                *sensors_of(automation, retention_interval_seconds(log_store)),
                topics_sensor(automation, Loaded(seen, state)),
            ],
            schedules=schedules(automation, log_store.identity),
            resources={mount.name(name): each for name, each in {**bound, **_fixed(mount, log_store)}.items()},
        )


def sensors_of(automation: Automation, retention_seconds: int) -> list[dg.SensorDefinition]:
    """All sensors of a home."""
    return [
        *clean_sensors(automation),
        retention_sensor(automation, retention_seconds),
        failed_run_sensor(automation),
        ingest_lag_sensor(automation),
        erasure_sensor(automation),
        notify_sensor(automation),
        health_sensor(automation),
    ]


@dg.definitions
def defs() -> dg.Definitions:
    """What ``workspace.yaml`` loads; a function, so that importing this module opens nothing.

    Nothing else is in this code location, so materializations run in the process of their run as well: several of them
    then share one Spark.
    """
    return dg.Definitions.merge(build_defs(), dg.Definitions(executor=dg.in_process_executor))


def _mount(shown: MountOptions) -> Mount:
    known = sorted(MountOptions.__annotations__)
    _require_known("build_defs", shown, known)
    names = [*SENSORS, *SCHEDULES]
    _require_known("intervals", shown.get("intervals", ()), names)
    on = shown.get("sensors_on")
    if isinstance(on, str):
        raise InvalidConfig(f"sensors_on={on!r}: give a list of names, or True or False for all")
    _require_known("sensors_on", on if isinstance(on, Collection) else (), names)
    prefix = shown.get("name_prefix", "")
    if not re.fullmatch(r"[A-Za-z0-9_]*", prefix):
        raise InvalidConfig(f"name_prefix={prefix!r}: Dagster's names have letters, digits and _ only")
    for part in (key_prefix := _listed(shown.get("key_prefix", ()))):
        if not re.fullmatch(r"[A-Za-z0-9._-]+", part):
            raise InvalidConfig(
                f"key_prefix has the part {part!r}: give letters, digits, '.', '_' and '-', at least one"
            )
    group_by = shown.get("group_by", "name")
    if isinstance(group_by, str):
        _require_known("group_by", [group_by], list(_GROUP_BY))
        group_by = _GROUP_BY[group_by]
    return Mount(
        f"{prefix.rstrip('_')}_" if prefix else "",
        AssetKeys(key_prefix, shown.get("translator") or AS_DELIVERED),
        group_by,
        shown.get("owners", ()),
    )


def _resources(
    home: str | Path | LogStoreResource | None, given: Mapping[str, Any], topics: str | Sequence[str]
) -> dict[str, Any]:
    """All that the home's runs and ticks work with, by its names without a prefix."""
    _require_known("resources", given, RESOURCES)
    if home is not None and "log_store" in given:
        raise InvalidConfig("home and resources['log_store'] are both given, and each is a home: give one of the two")
    log_store = given.get("log_store", home)
    if not isinstance(log_store, LogStoreResource):
        log_store = LogStoreResource(home=None if log_store is None else _text(log_store), topics=list(_listed(topics)))
    elif topics:
        raise InvalidConfig("topics and a log_store are both given: say LogStoreResource(home=…, topics=[…])")
    made = {"spark": SparkResource(), "clock": ClockResource(), "kafka": KafkaResource()}
    return {"log_store": log_store, **made, **{name: each for name, each in given.items() if name != "log_store"}}


def _fixed(mount: Mount, log_store: LogStoreResource) -> dict[str, dg.ResourceDefinition]:
    """What no run's configuration changes: a run of one home that works on another would be seen by neither."""
    home = dg.ResourceDefinition.hardcoded_resource(log_store, f"The topics in {log_store.told}")
    loading = topic_io_manager(mount.name("log_store"), mount.name("spark"))
    return {"log_store": home, PASSES: pass_io_manager(), TOPIC_IO_MANAGER: loading}


def _text(home: str | Path) -> str:
    # A variable of the environment (dg.EnvVar) is a text that does not tell its value.
    return home if isinstance(home, str) else str(home)


def _listed(texts: str | Sequence[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _require_known(where: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that nothing has; raises InvalidConfig."""
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]}?" if close else f"there is {', '.join(known)}"
            raise InvalidConfig(f"{where} knows no {name!r}: {meant}")
