"""What the runs that are under way clean or ingest. They say so in their configuration: runs are the only memory of it.

An ingest and a clean of one topic do not wait for each other; the commit sorts them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from keptlog.dagster.assets.names import clean_key, dirty_key
from keptlog.dagster.assets.outage import FAILED_TAG
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.segment import Log

JOB_NAME = "clean_logs"
INGEST_JOB_NAME = "ingest_kafka"
PURGE_JOB_NAME = "purge"
VERIFY_ERASURES_JOB_NAME = "verify_erasures"
_TOPIC_OPS = {PURGE_JOB_NAME: "delete_retired_files", VERIFY_ERASURES_JOB_NAME: "verify_deleted"}
"""The op of each job that works on whole topics, which has them in its configuration."""

_UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class InFlight:
    """Logs and whole topics that are being worked on, or everything that is due."""

    names: frozenset[str]
    everything: bool

    def includes_topic(self, topic: str) -> bool:
        """Whether a run works on all of the topic, or may."""
        return self.everything or topic in self.names

    def includes(self, log: Log) -> bool:
        """Whether a run cleans this log, or may."""
        name, topic = str(log.topic_partition), log.topic_partition.topic
        return self.everything or name in self.names or topic in self.names


def logs_in_flight(own: OwnRuns) -> InFlight:
    """What is being cleaned now, by the job and by materializations."""
    return _named_by(own.runs(*_UNDER_WAY))


def ingests_in_flight(own: OwnRuns) -> InFlight:
    """What topics are being ingested now, by the job and by materializations."""
    names: set[str] = set()
    everything = False
    for run in own.runs(*_UNDER_WAY):
        if run.job_name == INGEST_JOB_NAME:
            topics = ingested_topics(run)
            everything = everything or not topics
            names |= topics
        names |= {key.path[0] for key in run.asset_selection or () if key == dirty_key(key.path[0])}
    return InFlight(frozenset(names), everything)


def topics_in_flight(own: OwnRuns, job_name: str) -> InFlight:
    """What topics a job that works on whole topics, ``purge`` or ``verify_erasures``, is working on now."""
    names: set[str] = set()
    everything = False
    for run in own.runs(*_UNDER_WAY, job_name=job_name):
        topics = configured_topics(run)
        everything = everything or not topics
        names.update(topics)
    return InFlight(frozenset(names), everything)


def configured_topics(run: dg.DagsterRun) -> list[str]:
    """The topics that a run of such a job works on; all if there are none."""
    config: Any = run.run_config
    return list(config.get("ops", {}).get(_TOPIC_OPS[run.job_name], {}).get("config", {}).get("topics", []))


def configured_logs(run: dg.DagsterRun) -> list[str]:
    """The logs that a run of the job is to clean; all that are due if there are none."""
    config: Any = run.run_config
    return list(config.get("ops", {}).get("plan", {}).get("config", {}).get("logs", []))


def retained_logs(run: dg.DagsterRun) -> list[str]:
    """The logs that a run of the retention job was to retain; all if there are none."""
    config: Any = run.run_config
    return list(config.get("ops", {}).get("remove_old_segments", {}).get("config", {}).get("logs", []))


def stopped_logs(run: dg.DagsterRun) -> list[str]:
    """What a run of the job that has failed did not clean; as far as it could say, else what it was asked for."""
    told = run.tags.get(FAILED_TAG)
    return told.split(",") if told else configured_logs(run)


def stopped_ingests(run: dg.DagsterRun) -> list[str]:
    """What a run of the ingest job that has failed did not bring in; as far as it could say, else all its topics."""
    told = run.tags.get(FAILED_TAG)
    return told.split(",") if told else sorted(ingested_topics(run))


def ingested_topics(run: dg.DagsterRun) -> set[str]:
    """The topics here that a run of the ingest job names, however badly; all that have a source if there are none."""
    run_config: Any = run.run_config
    config = run_config.get("ops", {}).get("ingest", {}).get("config", {})
    into = config.get("into")
    topics = {into} if into else set(config.get("topics") or ())
    return topics | {name.rpartition("-")[0] for name in config.get("topic_partitions") or ()}


def _named_by(runs: Iterable[dg.DagsterRun]) -> InFlight:
    names: set[str] = set()
    everything = False
    for run in runs:
        if run.job_name == JOB_NAME:
            logs = configured_logs(run)
            everything = everything or not logs
            names.update(logs)
        for key in run.asset_selection or ():
            topic = key.path[0]
            if key == clean_key(topic):
                names.add(run.tags.get("dagster/partition") or topic)
    return InFlight(frozenset(names), everything)
