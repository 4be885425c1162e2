"""What the runs that are under way are cleaning. They say so in their configuration: runs are the only memory of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from assets.names import clean_key
from keptlog.log.segment import Log

JOB_NAME = "clean_logs"

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
    """Logs and whole topics that are being cleaned, or everything that is due."""

    names: frozenset[str]
    everything: bool

    def includes(self, log: Log) -> bool:
        """Whether a run cleans this log, or may."""
        name, topic = str(log.topic_partition), log.topic_partition.topic
        return self.everything or name in self.names or topic in self.names


def logs_in_flight(instance: dg.DagsterInstance) -> InFlight:
    """What is being cleaned now, by the job and by materializations."""
    return _named_by(instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)))


def configured_logs(run: dg.DagsterRun) -> list[str]:
    """The logs that a run of the job is to clean; all that are due if there are none."""
    config: Any = run.run_config
    return list(config.get("ops", {}).get("plan", {}).get("config", {}).get("logs", []))


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
