"""What the runs that are under way clean or ingest. They say so in their configuration: runs are the only memory of it.

An ingest and a clean of one topic do not wait for each other; the commit sorts them out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._time import get_current_timestamp

from keptlog.dagster.assets.long_tags import tag_text
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import FAILED_TAG
from keptlog.dagster.orchestration.own_runs import (
    INGEST_JOB_NAME,
    PURGE_JOB_NAME,
    RETENTION_JOB_NAME,
    VERIFY_ERASURES_JOB_NAME,
    OwnRuns,
)
from keptlog.log.segment import Log
from keptlog.log.words.iso_time import iso_time

_TOPIC_OPS = {PURGE_JOB_NAME: "delete_retired_files", VERIFY_ERASURES_JOB_NAME: "verify_deleted"}
"""The op of each job that works on whole topics, which has them in its configuration."""

UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
"""What a run's status is until it is over."""
SLOW_MS = 3_600_000
"""Who is under way for longer is named: a run whose process died untold is under way to Dagster for a day or more."""
_CANCELLED_RUNS = 100
"""So many are looked back at."""


_ALL = ""


@dataclass(frozen=True)
class InFlight:
    """Logs and whole topics that are being worked on, or everything that is due."""

    names: frozenset[str]
    everything: bool
    materialized: Mapping[dg.AssetKey, frozenset[str]] = field(default_factory=dict)
    """By asset, the topic-partitions that are being materialized; no name stands for all of them."""
    key_of: Callable[[str], dg.AssetKey] | None = None
    """A topic's asset whose materialization works on its logs."""

    def includes_topic(self, topic: str) -> bool:
        """Whether a run works on all of the topic, or may."""
        return self.everything or topic in self.names or _ALL in self._materialized_of(topic)

    def includes_any_of(self, topic: str) -> bool:
        """Whether a run works on the topic or on some of it, as far as assets tell."""
        return self.includes_topic(topic) or bool(self._materialized_of(topic))

    def includes(self, log: Log) -> bool:
        """Whether a run cleans this log, or may."""
        return self.includes_name(str(log.topic_partition), log.topic_partition.topic)

    def includes_name(self, name: str, topic: str) -> bool:
        """Whether a run works on this topic-partition of a topic, or may."""
        return self.includes_topic(topic) or name in self.names or name in self._materialized_of(topic)

    def _materialized_of(self, topic: str) -> frozenset[str]:
        return self.materialized.get(self.key_of(topic), frozenset()) if self.key_of else frozenset()


def logs_in_flight(own: OwnRuns, records: Sequence[dg.RunRecord]) -> InFlight:
    """What of the runs that are under way the job and materializations clean, or wait to clean."""
    return _cleans(own, [record.dagster_run for record in records])


def begun_and_queued(own: OwnRuns, records: Sequence[dg.RunRecord]) -> tuple[InFlight, InFlight]:
    """The same of runs that are under way, apart: one that waits in Dagster's queue cleans nothing yet.

    Both by one look. A run that left the queue between two looks would be in neither.
    """
    runs = [record.dagster_run for record in records]
    queued = [run for run in runs if run.status is dg.DagsterRunStatus.QUEUED]
    return _cleans(own, [run for run in runs if run.status is not dg.DagsterRunStatus.QUEUED]), _cleans(own, queued)


def _cleans(own: OwnRuns, runs: Sequence[dg.DagsterRun]) -> InFlight:
    cleans = [configured_logs(run) for run in runs if own.is_of(run, CLEAN_JOB)]
    return _in_flight(cleans, [(run, own.materialized_by(run)) for run in runs], own.mount.keys.clean)


def cancelled_cleans(own: OwnRuns) -> InFlight:
    """What runs of the job were to clean that somebody has ended within the last hour."""
    records = own.records(dg.DagsterRunStatus.CANCELED, job_name=CLEAN_JOB, limit=_CANCELLED_RUNS)
    lately = [each.dagster_run for each in records if has_ended_lately(each)]
    # One over all logs would put no log behind another.
    return _in_flight(filter(None, map(configured_logs, lately)))


def slow_cleans(own: OwnRuns, records: Sequence[dg.RunRecord], topics: Iterable[str]) -> tuple[str, ...]:
    """The runs that have been cleaning for hours. Due or not, others wait for their places (``slow_runs``)."""
    return slow_runs(own, records, CLEAN_JOB, map(own.mount.keys.clean, topics))


def slow_ingests(own: OwnRuns, records: Sequence[dg.RunRecord], topics: Iterable[str]) -> tuple[str, ...]:
    """The runs that have been ingesting for hours, if one of these topics waits for a run that is under way."""
    waiting = list(filter(ingests_in_flight(own, records).includes_any_of, topics))
    return slow_runs(own, records, INGEST_JOB_NAME, map(own.mount.keys.dirty, waiting)) if waiting else ()


def slow_runs(
    own: OwnRuns, records: Sequence[dg.RunRecord], job_name: str, assets: Iterable[dg.AssetKey] = ()
) -> tuple[str, ...]:
    """The runs that have been at a job for hours, or at assets, as people are told of them: a process may have died.

    Where one of these waits in Dagster's queue, it waits for a place, and any run may hold that. A run that waits there
    has no process yet; one that never came up is under way since it was launched. It goes by Dagster's clock, which has
    dated them; keptlog's may be a given one.
    """
    keys = set(assets)
    meant = [
        each
        for each in records
        if own.is_of(each.dagster_run, job_name) or not keys.isdisjoint(own.materialized_by(each.dagster_run))
    ]
    is_any_queued = any(each.dagster_run.status is dg.DagsterRunStatus.QUEUED for each in meant)
    found = []
    for record in records if is_any_queued else meant:
        if _may_have_died(record):
            run_id, since = record.dagster_run.run_id, iso_time(round(1000 * _began_s(record)))
            found.append(f"run {run_id} is under way since {since}: if its process has died, terminate it")
    return tuple(found)


def ingests_in_flight(own: OwnRuns, records: Sequence[dg.RunRecord]) -> InFlight:
    """What topics runs that are under way are ingesting, by the job and by materializations."""
    runs = [record.dagster_run for record in records]
    ingests = [ingested_topics(run) for run in runs if own.is_of(run, INGEST_JOB_NAME)]
    return _in_flight(ingests, [(run, own.materialized_by(run)) for run in runs], own.mount.keys.dirty)


def has_ended_lately(record: dg.RunRecord) -> bool:
    """Whether a run that is over ended within the last hour."""
    return not _is_an_hour_ago(record.end_time or record.update_timestamp.timestamp())


def _is_an_hour_ago(at_s: float) -> bool:
    return 1000 * (get_current_timestamp() - at_s) >= SLOW_MS


def _may_have_died(record: dg.RunRecord) -> bool:
    """Whether a run that is under way has been so for an hour; one in the queue may take longer, and can't die."""
    return record.dagster_run.status is not dg.DagsterRunStatus.QUEUED and _is_an_hour_ago(_began_s(record))


def _began_s(record: dg.RunRecord) -> float:
    """Since when a run is under way: since it was about to begin, if it has not."""
    return record.start_time or record.update_timestamp.timestamp()


def retentions_in_flight(own: OwnRuns, records: Sequence[dg.RunRecord]) -> InFlight:
    """What logs runs that are under way are retaining, or wait to.

    One that began an hour ago keeps no log waiting, nor does one that has been about to begin for so long. It may have
    died, and the commits sort out those that have not.
    """
    lately = [record.dagster_run for record in records if not _may_have_died(record)]
    return _in_flight([retained_logs(run) for run in lately if own.is_of(run, RETENTION_JOB_NAME)])


def topics_in_flight(own: OwnRuns, job_name: str, records: Sequence[dg.RunRecord]) -> InFlight:
    """What topics a job that works on whole topics, ``purge`` or ``verify_erasures``, is working on now."""
    runs = [record.dagster_run for record in records]
    return _in_flight([configured_topics(run, job_name) for run in runs if own.is_of(run, job_name)])


def configured_topics(run: dg.DagsterRun, job_name: str) -> list[str]:
    """The topics that a run of such a job works on; all if there are none."""
    return _named_by(run, _TOPIC_OPS[job_name], "topics")


def configured_logs(run: dg.DagsterRun) -> list[str]:
    """The logs that a run of the job is to clean; all that are due if there are none."""
    return _named_by(run, "plan", "logs")


def retained_logs(run: dg.DagsterRun) -> list[str]:
    """The logs that a run of the retention job was to retain; all if there are none."""
    return _named_by(run, "remove_old_segments", "logs")


def stopped_logs(run: dg.DagsterRun) -> list[str]:
    """What a run of the job that has failed did not clean; as far as it could say, else what it was asked for."""
    told = tag_text(run.tags, FAILED_TAG)
    return told.split(",") if told else configured_logs(run)


def stopped_retentions(run: dg.DagsterRun) -> list[str]:
    """What a run of the retention job that has failed did not retain; as far as it could say, else all it named."""
    told = tag_text(run.tags, FAILED_TAG)
    return told.split(",") if told else retained_logs(run)


def has_looked_at(run: dg.DagsterRun, topic: str) -> bool:
    """Whether a run of ``verify_erasures`` that is over has looked at a topic; one that died could not say so."""
    told = tag_text(run.tags, FAILED_TAG)
    if told is None:
        return run.status is dg.DagsterRunStatus.SUCCESS
    return topic not in told.split(",")


def stopped_ingests(run: dg.DagsterRun) -> list[str]:
    """What a run of the ingest job that has failed did not bring in; as far as it could say, else all its topics."""
    told = tag_text(run.tags, FAILED_TAG)
    return told.split(",") if told else sorted(ingested_topics(run))


def ingested_topics(run: dg.DagsterRun) -> set[str]:
    """The topics here that a run of the ingest job names, however badly; all that have a source if there are none."""
    into = _named_by(run, "ingest", "into")
    topics = set(into or _named_by(run, "ingest", "topics"))
    return topics | {name.rpartition("-")[0] for name in _named_by(run, "ingest", "topic_partitions")}


def names_brokers(run: dg.DagsterRun) -> bool:
    """Whether a run of the ingest job says where to read. Without topics it then leaves some out."""
    return any(_named_by(run, "ingest", "bootstrap"))


def is_refused_ingest(run: dg.DagsterRun) -> bool:
    """Whether a run of the ingest job was given null, for its op or a resource: hardly any field takes it.

    It has tried nothing then. No sensor gives any, so what is told of one that somebody has launched is not missed.
    """
    config: Any = run.run_config
    of_resources = [each.get("config") for each in (config.get("resources") or {}).values() if isinstance(each, dict)]
    typed = (_config_of(run, "ingest"), *of_resources)
    return any(None in given.values() for given in typed if isinstance(given, dict))


def _named_by(run: dg.DagsterRun, op: str, field_name: str) -> list[str]:
    """What a field of an op's configuration names, as it was typed.

    Dagster lets null through where a list is meant, and a variable's name where a text is. A run fails of the former by
    itself; who looks at it must not. The variables of a run are taken to be those of this process.
    """
    value = _config_of(run, op).get(field_name)
    typed = value if isinstance(value, list) else [value]
    meant = [os.getenv(each.get("env", "")) if isinstance(each, dict) else each for each in typed]
    return [each for each in meant if isinstance(each, str)]


def _config_of(run: dg.DagsterRun, op: str) -> Mapping[str, Any]:
    config: Any = run.run_config
    given: Mapping[str, Any] = config.get("ops", {}).get(op, {}).get("config", {})
    return given


def _in_flight(
    named: Iterable[Iterable[str]],
    materializing: Iterable[tuple[dg.DagsterRun, frozenset[dg.AssetKey]]] = (),
    key_of: Callable[[str], dg.AssetKey] | None = None,
) -> InFlight:
    """What runs of a job have named, no name being everything, and what others are materializing."""
    each_named = [frozenset(names) for names in named]
    materialized: dict[dg.AssetKey, frozenset[str]] = defaultdict(frozenset)
    for run, keys in materializing:
        for key in keys:
            materialized[key] |= {run.tags.get("dagster/partition") or _ALL}
    return InFlight(
        frozenset[str]().union(*each_named), any(not names for names in each_named), dict(materialized), key_of
    )
