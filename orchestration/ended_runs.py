"""Tells what was cleaned by runs that ended before they could say so, and that no mark is for.

Whoever materializes a clean section by hand sees the run die, and no sensor asks for it again; so it marks no log. Who
ends a run meant to. But either may have cleaned logs before, and be reading them back when it ends, which takes long.
Dagster would hear of that clean when the topic changes next. What is downstream would wait for it, for ever maybe.

A tag says of which runs that was looked at; it waits for topics that can't be read. One that ended a day ago tells
nothing: Dagster keeps runs for ever.
"""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import FAILED_TAG, tell_in_tags
from keptlog.dagster.orchestration.own_runs import MARKED_TAG, OwnRuns
from keptlog.dagster.orchestration.untold_cleans import ended_ms, is_unread, tell_untold_cleans
from keptlog.log.words.counted import some_of

_RUNS = 1_000
"""So many runs of the last day are looked back at: who ends a backfill ends a run of each topic."""
_AT_ONCE = 100
"""So many are settled in one tick."""
_REMEMBERED_MS = 86_400_000
_NO_MARK = "none: no sensor asks for what it was to do because of it"
_TOLD = 5
"""Of the logs of each run."""


def tell_of_ended_runs(tick: Tick, most: int) -> list[str]:
    """Tell of at most so many cleans; gives what was told, run by run.

    Raises:
        StorageUnavailable: the catalog can't be reached; the next tick goes on.
    """
    own, now_ms = OwnRuns.of_tick(tick), tick.now_ms()
    statuses = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    silent = [
        each
        for each in own.records(*statuses, limit=_RUNS, since_ms=now_ms - _REMEMBERED_MS)
        if now_ms - ended_ms(each) < _REMEMBERED_MS and not {MARKED_TAG, FAILED_TAG} & each.dagster_run.tags.keys()
    ]
    if not silent:
        return []
    settled, told = 0, list[str]()
    seen, left = tick.log_store.observer.last or tick.log_store.observer.look(now_ms), most
    sections = {tick.keys.clean(topic) for topic in seen.locations}
    for record in reversed(silent):
        run = record.dagster_run
        if not left or settled == _AT_ONCE:
            break
        if not _is_meant(own, run, sections):
            continue
        untold = tell_untold_cleans(tick, record, left)
        left -= len(untold)
        if untold:
            told.append(f"run {run.run_id}: it had cleaned {some_of(untold, _TOLD)}")
        if left and not is_unread(tick, record):
            tell_in_tags(tick.context.instance, run.run_id, {MARKED_TAG: _NO_MARK})
            settled += 1
    return told


def _is_meant(own: OwnRuns, run: dg.DagsterRun, sections: Collection[dg.AssetKey]) -> bool:
    """Whether it may have cleaned something; those of the job that died are looked at by who marks their logs."""
    if own.is_of(run, CLEAN_JOB):
        return run.status is dg.DagsterRunStatus.CANCELED
    return any(key in sections for key in run.asset_selection or ())
