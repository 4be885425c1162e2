"""Which due logs a sensor asks a run for: those that no run is cleaning already and that are not backing off.

A run that a sensor asked for names its logs in its configuration, so runs themselves are the only memory: what is in
flight, and how often a log failed in a row, is read from them. A failed log is tried again after one minute, then two,
four, up to an hour: never given up, never in a tight loop.

Dagster starts a run key only once, whatever became of its run. The key therefore holds, for each log, its snapshot and
the number of this attempt. None of this guards correctness: if a log is asked for twice, the commit refuses one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from assets.names import clean_key
from assets.report import FAILED_TAG
from keptlog.log.selection import Assessment, Trigger

JOB_NAME = "clean_logs"
LOGS_PER_RUN = 100
REQUESTED_TAG = "keptlog/requested_at_ms"
TRIGGER_TAG = "keptlog/trigger"
LOGS_TAG = "keptlog/topic_partitions"
_FIRST_PAUSE_MS = 60_000
_LONGEST_PAUSE_MS = 3_600_000
_RUNS_LOOKED_BACK = 200
_NAMES_IN_TAG = 5

_IN_FLIGHT = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Failures:
    """How often a log failed in a row, and when it was last asked for, in ms of the sensors' clock."""

    count: int = 0
    last_requested_ms: int = 0

    @property
    def retry_ms(self) -> int:
        """When it is tried again."""
        if self.count == 0:
            return 0
        doublings = min(self.count - 1, 10)
        return self.last_requested_ms + min(_FIRST_PAUSE_MS << doublings, _LONGEST_PAUSE_MS)


@dataclass(frozen=True)
class Selected:
    """Due logs by what becomes of them in this tick."""

    requested: tuple[Assessment, ...]
    in_flight: tuple[str, ...]
    backing_off: Mapping[str, Failures]
    attempts: Mapping[str, int]


def select(instance: dg.DagsterInstance, due: Sequence[Assessment], now_ms: int) -> Selected:
    """Sort due logs into those to request now, at most ``LOGS_PER_RUN``, and those to leave to a run or to later."""
    if not due:
        return Selected((), (), {}, {})
    cleaning = _Cleaning.of(instance.get_runs(dg.RunsFilter(statuses=_IN_FLIGHT)))
    failures = failures_in_a_row(
        instance.get_runs(dg.RunsFilter(job_name=JOB_NAME, statuses=_FINISHED), limit=_RUNS_LOOKED_BACK)
    )
    requested: list[Assessment] = []
    in_flight: list[str] = []
    backing_off: dict[str, Failures] = {}
    for assessment in due:
        name = str(assessment.log.topic_partition)
        failed = failures.get(name, Failures())
        if cleaning.includes(assessment):
            in_flight.append(name)
        elif now_ms < failed.retry_ms:
            backing_off[name] = failed
        else:
            requested.append(assessment)
    attempts = {name: failed.count for name, failed in failures.items()}
    return Selected(tuple(requested[:LOGS_PER_RUN]), tuple(in_flight), backing_off, attempts)


def run_request(trigger: Trigger, selected: Selected, locations: Mapping[str, str], now_ms: int) -> dg.RunRequest:
    """One run for the selected logs."""
    names = [str(each.log.topic_partition) for each in selected.requested]
    snapshots = [locations[each.log.topic_partition.topic] for each in selected.requested]
    identity = [f"{n}@{at}#{selected.attempts.get(n, 0)}" for n, at in zip(names, snapshots, strict=True)]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    return dg.RunRequest(
        run_key=f"{trigger.value}:{_some_of(names, 1)}:{digest}",
        run_config={"ops": {"plan": {"config": {"logs": names}}}},
        tags={
            TRIGGER_TAG: trigger.value,
            LOGS_TAG: _some_of(names, _NAMES_IN_TAG),
            REQUESTED_TAG: str(now_ms),
            # The sensor tries again itself, with a back-off; two ways of trying again would multiply.
            "dagster/max_retries": "0",
        },
    )


def failures_in_a_row(finished: Iterable[dg.DagsterRun]) -> dict[str, Failures]:
    """Failures of each log since it was last cleaned; ``finished`` are runs of the job, newest first."""
    failures: dict[str, Failures] = {}
    settled: set[str] = set()
    for run in finished:
        if REQUESTED_TAG not in run.tags:
            continue
        failed_names = _failed_names(run)
        for name in _configured_logs(run):
            if name in settled:
                continue
            if name not in failed_names:
                settled.add(name)
                continue
            before = failures.get(name, Failures())
            requested_ms = max(before.last_requested_ms, int(run.tags[REQUESTED_TAG]))
            failures[name] = Failures(before.count + 1, requested_ms)
    return failures


def _failed_names(run: dg.DagsterRun) -> set[str]:
    """Logs that a finished run did not clean: those it names; all of them if it died before it could."""
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return set()
    named = run.tags.get(FAILED_TAG)
    return set(named.split(",")) if named else set(_configured_logs(run))


def _configured_logs(run: dg.DagsterRun) -> list[str]:
    config: Any = run.run_config
    return list(config.get("ops", {}).get("plan", {}).get("config", {}).get("logs", []))


@dataclass(frozen=True)
class _Cleaning:
    """What the runs in flight are cleaning: logs, whole topics, or everything that is due."""

    names: frozenset[str]
    everything: bool

    @classmethod
    def of(cls, runs: Iterable[dg.DagsterRun]) -> _Cleaning:
        names: set[str] = set()
        everything = False
        for run in runs:
            if run.job_name == JOB_NAME:
                logs = _configured_logs(run)
                everything = everything or not logs
                names.update(logs)
            for key in run.asset_selection or ():
                topic = key.path[0]
                if key == clean_key(topic):
                    names.add(run.tags.get("dagster/partition") or topic)
        return cls(frozenset(names), everything)

    def includes(self, assessment: Assessment) -> bool:
        topic_partition = assessment.log.topic_partition
        return self.everything or str(topic_partition) in self.names or topic_partition.topic in self.names


def _some_of(names: Sequence[str], limit: int) -> str:
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
