"""What could not be ingested lately, and when it is tried again. Runs are the only memory of it, as of all else here.

A run that fails says in a tag which topic-partitions did not come in, and at which positions (``ingest_report``). A run
that died could not say anything; all that it was asked for has failed, at the positions that the sensor has put into
its tags. Only failures at the position of today count: whatever moved it, a run, a hand, a topic that was made anew,
ended the row of failures. Where a whole topic failed, or a run died that a hand had launched, no position is known.
That counts until a newer run over the topic succeeds (over all topics, if it named none and no brokers), or until the
topic is made anew, where the run could say which it was.

The pause grows as it does for logs that can't be cleaned, from ``log.cleaner.backoff.ms`` to
``keptlog.cleaner.backoff.max.ms``. A run that an outage has stopped, or that never began, counts for none of them
(``outages``), nor does one whose configuration its op has refused. One that somebody has cancelled counts for an hour:
under its key, which Dagster starts only once, what it was asked for would not be asked for again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import dagster as dg

from keptlog.dagster.assets.ingest_report import FAILED_AT_TAG
from keptlog.dagster.assets.long_tags import tag_text
from keptlog.dagster.assets.outage import json_object
from keptlog.dagster.orchestration.in_flight import (
    has_ended_lately,
    ingested_topics,
    is_refused_ingest,
    names_brokers,
    stopped_ingests,
)
from keptlog.dagster.orchestration.outages import MOST_UNBEGUN, Outages, failed_records, outages_among, outages_of
from keptlog.dagster.orchestration.own_runs import INGEST_JOB_NAME, OwnRuns, happened_ms
from keptlog.log.given.past import is_past
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff

ASKED_AT_TAG = "keptlog/ingest_asked_at"
"""On a run that the sensor has asked for: JSON with the position of each topic-partition; null if it was never read."""
_RUNS = 100
"""So many runs are looked back at that somebody has cancelled, and as many that succeeded."""
_ALL = ""


@dataclass(frozen=True)
class _Failure:
    at_ms: int
    position: int | None
    """Null for a topic, and for a topic-partition that was never read."""
    is_cancelled: bool = False
    """Whether somebody has ended the run."""
    topic_id: str | None = None
    """Of a topic that failed as a whole, if the run knew it."""


@dataclass(frozen=True)
class IngestFailures:
    """Failed and cancelled ingests by topic-partition, or by topic where all of it failed."""

    by_name: dict[str, list[_Failure]]
    runs_by_name: dict[str, list[str]]
    """Their runs, whether or not they still count."""
    backoff: Backoff
    outages: Outages

    def runs(self, name: TopicPartition) -> list[str]:
        """The runs that failed or were stopped with a topic-partition or its topic, at whatever position and time."""
        failed = {run for each in (str(name), name.topic) for run in self.runs_by_name.get(each, ())}
        return sorted(failed.union(self.outages.runs(str(name), name.topic)))

    def count(self, name: TopicPartition, position: int | None) -> int:
        """How often a topic-partition failed at a position, or was stopped by an outage."""
        return len(self._of(name, position)) + self.outages.count(str(name), name.topic)

    def is_any_cancelled(self, name: TopicPartition, position: int | None) -> bool:
        """Whether somebody has ended one of these."""
        return any(each.is_cancelled for each in self._of(name, position))

    def retry_at_ms(self, name: TopicPartition, position: int | None) -> int:
        """When it may be tried again; 0 if it never failed."""
        failures = self._of(name, position)
        by_failures = max(each.at_ms for each in failures) + self.backoff.after(len(failures)) if failures else 0
        return max(by_failures, self.outages.retry_at_ms(str(name), name.topic))

    def _of(self, name: TopicPartition, position: int | None) -> list[_Failure]:
        at_position = [each for each in self.by_name.get(str(name), ()) if each.position == position]
        return at_position + [each for each in self.by_name.get(name.topic, ()) if each.position is None]


TopicIds = Mapping[str, str | None]


def recent_failures(
    own: OwnRuns, backoff: Backoff, now_ms: int, topic_ids: Callable[[], TopicIds] = dict
) -> IngestFailures:
    """What the failed runs of the ingest job tell, and cancelled ones; a time that is still to come says nothing.

    ``topic_ids`` has those of today's topics, as far as they are known; it is called where a failure depends on them.
    """
    # Apart, or a hundred that somebody has cancelled would hide all that failed.
    failed = failed_records(own, INGEST_JOB_NAME)
    cancelled = own.records(dg.DagsterRunStatus.CANCELED, job_name=INGEST_JOB_NAME, limit=_RUNS)
    stopped = outages_of(failed, stopped_ingests, MOST_UNBEGUN)
    runs = [(record, record.dagster_run) for record in failed]
    died = [record for record, run in runs if run.run_id not in stopped and not is_refused_ingest(run)]
    failures = [
        (record, name, failure)
        for record in (*died, *filter(has_ended_lately, cancelled))
        for name, failure in _failures_of(record, now_ms)
    ]
    succeeded = _last_successes(own) if any(failure.position is None for _, _, failure in failures) else {}
    ids = topic_ids() if any(failure.topic_id for _, _, failure in failures) else {}
    by_name: dict[str, list[_Failure]] = defaultdict(list)
    runs_by_name: dict[str, list[str]] = defaultdict(list)
    for record, name, failure in failures:
        runs_by_name[name].append(record.dagster_run.run_id)
        last_id = max(succeeded.get(name, -1), succeeded.get(_ALL, -1))
        is_of_another = failure.topic_id is not None and ids.get(name) not in (None, failure.topic_id)
        is_over = failure.position is None and (record.storage_id <= last_id or is_of_another)
        if is_past(failure.at_ms, now_ms) and not is_over:
            by_name[name].append(failure)
    outages = outages_among(failed, stopped, stopped_ingests, now_ms)
    return IngestFailures(dict(by_name), dict(runs_by_name), backoff, outages)


def _failures_of(record: dg.RunRecord, now_ms: int) -> Iterator[tuple[str, _Failure]]:
    """By topic-partition, or by topic where nothing is known of its topic-partitions."""
    tags = record.dagster_run.tags
    ended_ms = int((record.end_time or record.update_timestamp.timestamp()) * 1000)
    failed_at = json_object(tag_text(tags, FAILED_AT_TAG))
    at_ms, positions = failed_at.get("at_ms"), _as_positions(failed_at.get("positions"))
    if not isinstance(at_ms, int) or positions is None:
        named = dict.fromkeys(ingested_topics(record.dagster_run))
        at_ms, positions = ended_ms, asked_at(tags) or named
    at_ms = happened_ms(record, at_ms, now_ms)
    is_cancelled = record.dagster_run.status is dg.DagsterRunStatus.CANCELED
    told = failed_at.get("topic_ids")
    ids = {name: each for name, each in told.items() if isinstance(each, str)} if isinstance(told, dict) else {}
    for name, position in positions.items():
        yield name, _Failure(at_ms, position, is_cancelled, ids.get(name))


def asked_at(tags: Mapping[str, str]) -> dict[str, int | None]:
    """By topic-partition, the positions at which the sensor has asked for a run with these tags; none if it has not."""
    return _as_positions(json_object(tag_text(tags, ASKED_AT_TAG))) or {}


def _as_positions(told: object) -> dict[str, int | None] | None:
    """Positions as a run or the sensor has told them; null if somebody has typed something else there."""
    if not isinstance(told, dict) or not all(each is None or isinstance(each, int) for each in told.values()):
        return None
    return told


def _last_successes(own: OwnRuns) -> dict[str, int]:
    """By topic, which run was the last that named it and succeeded; Dagster counts its runs, whatever a clock says."""
    last: dict[str, int] = {}
    for record in own.records(dg.DagsterRunStatus.SUCCESS, job_name=INGEST_JOB_NAME, limit=_RUNS):
        run = record.dagster_run
        for topic in ingested_topics(run) or (set() if names_brokers(run) else {_ALL}):
            last[topic] = max(record.storage_id, last.get(topic, -1))
    return last
