"""Late logs go first in Dagster's queue, too (ADR 4): after erasures, and before whatever else waits there for a place.

A log may become late while the run that cleans it waits. It is not asked for again, for one of both runs would start
for nothing. The run that waits is moved ahead.

The purges of the schedule have the same priority. Where runs have one place, late cleans would keep it from them, and
what a clean has replaced has to be off the storage in time, too. They come one at a time, and take it from nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster._core.storage.tags import PRIORITY_TAG

from keptlog.dagster.assets.siblings import TAKEN_BY_TAG
from keptlog.dagster.orchestration.in_flight import logs_in_flight
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.segment import Log

PRIORITY = "5"
"""In Dagster's queue, where an erasure's runs have 10, and most others 0."""


def move_ahead(own: OwnRuns, late: Sequence[Log]) -> list[str]:
    """Let the queued runs go first that clean these logs; gives the ids of those that did not.

    Of several that would clean a log, one is enough: the others find it clean. One that a run cleans for as part of its
    backfill stays where it is: begun, it would hold a place and wait for that run.
    """
    moved = []
    left = list(late)
    queued = own.records(dg.DagsterRunStatus.QUEUED) if left else ()
    # As Dagster takes them: the oldest first of one priority.
    for record in sorted(queued, key=lambda each: (-_priority(each.dagster_run), each.storage_id)):
        cleans = logs_in_flight(own, [record])
        still = [log for log in left if not cleans.includes(log)]
        is_behind = len(still) < len(left) and _priority(record.dagster_run) < int(PRIORITY)
        if is_behind and not _is_done_by_another(own, record.dagster_run):
            own.instance.add_run_tags(record.dagster_run.run_id, {PRIORITY_TAG: PRIORITY})
            moved.append(record.dagster_run.run_id)
        left = still
    return moved


def _is_done_by_another(own: OwnRuns, run: dg.DagsterRun) -> bool:
    taker_id = run.tags.get(TAKEN_BY_TAG)
    taker = own.instance.get_run_by_id(taker_id) if taker_id else None
    return taker is not None and not taker.is_finished


def _priority(run: dg.DagsterRun) -> int:
    """As Dagster reads it: what is no number is 0."""
    try:
        return int(run.tags.get(PRIORITY_TAG, "0"))
    except ValueError:
        return 0
