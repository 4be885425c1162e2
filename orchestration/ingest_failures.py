"""What could not be ingested lately, and when it is tried again. Runs are the only memory of it, as of all else here.

A run that fails says in a tag which topic-partitions did not come in, and at which positions (``ingest_report``). Only
failures at the position of today count: whatever moved it, a run, a hand, a topic that was made anew, ended the row of
failures. The pause grows as it does for logs that can't be cleaned, from ``log.cleaner.backoff.ms`` to
``keptlog.cleaner.backoff.max.ms``. A run that died could not say anything; all that it was asked for has failed. A run
that an outage has stopped counts for none of them (``outages``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg

from keptlog.dagster.assets.ingest_report import FAILED_AT_TAG
from keptlog.dagster.assets.outage import OUTAGE_TAG
from keptlog.dagster.orchestration.in_flight import INGEST_JOB_NAME, ingested_topics, stopped_ingests
from keptlog.dagster.orchestration.outages import Outages, recent_outages
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.past import is_past
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff

_RUNS = 100
"""So many failed runs are looked back at; at the longest pause that is days."""


@dataclass(frozen=True)
class _Failure:
    at_ms: int
    position: int | None
    is_anywhere: bool
    """Whether it counts whatever the position."""


@dataclass(frozen=True)
class IngestFailures:
    """Failed ingests by topic-partition, or by topic where all of it failed."""

    by_name: dict[str, list[_Failure]]
    backoff: Backoff
    outages: Outages

    def count(self, name: TopicPartition, position: int | None) -> int:
        """How often a topic-partition failed at a position, or was stopped by an outage."""
        return len(self._of(name, position)) + self.outages.count(str(name), name.topic)

    def retry_at_ms(self, name: TopicPartition, position: int | None) -> int:
        """When it may be tried again; 0 if it never failed."""
        failures = self._of(name, position)
        by_failures = max(each.at_ms for each in failures) + self.backoff.after(len(failures)) if failures else 0
        return max(by_failures, self.outages.retry_at_ms(str(name), name.topic))

    def _of(self, name: TopicPartition, position: int | None) -> list[_Failure]:
        failures = [*self.by_name.get(str(name), ()), *self.by_name.get(name.topic, ())]
        return [each for each in failures if each.is_anywhere or each.position == position]


def recent_failures(own: OwnRuns, backoff: Backoff, now_ms: int) -> IngestFailures:
    """What the failed runs of the ingest job tell; a time that is still to come says nothing."""
    by_name: dict[str, list[_Failure]] = defaultdict(list)
    for record in own.records(dg.DagsterRunStatus.FAILURE, job_name=INGEST_JOB_NAME, limit=_RUNS):
        for name, failure in _failures_of(record):
            if is_past(failure.at_ms, now_ms):
                by_name[name].append(failure)
    outages = recent_outages(own, INGEST_JOB_NAME, stopped_ingests, now_ms)
    return IngestFailures(dict(by_name), backoff, outages)


def _failures_of(record: dg.RunRecord) -> Iterator[tuple[str, _Failure]]:
    run = record.dagster_run
    if OUTAGE_TAG in run.tags:
        return
    if told := run.tags.get(FAILED_AT_TAG):
        failed_at = json.loads(told)
        for name, position in failed_at["positions"].items():
            yield name, _Failure(failed_at["at_ms"], position, is_anywhere=position is None)
        return
    ended_ms = int((record.end_time or record.update_timestamp.timestamp()) * 1000)
    for topic in ingested_topics(run):
        yield topic, _Failure(ended_ms, None, is_anywhere=True)
