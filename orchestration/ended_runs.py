"""Tells what was cleaned by runs that ended before they could say so, and that no mark is for.

Whoever materializes a clean section by hand sees the run die, and no sensor asks for it again; so it marks no log. Who
ends a run meant to. But either may have cleaned logs before, and be reading them back when it ends, which takes long.
Dagster would hear of that clean when the topic changes next. What is downstream would wait for it, for ever maybe.

What an attempt had failed at before a run that was ended is shown as failed again (``still_failed``), at once: that a
run was deleted, no tag says, so sections are also looked at in turn.

A tag says of which runs that was looked at, one for each mount: a run may be of the assets of several. It waits for
topics that can't be read. A run of such topics alone is looked at later. One that ended a day ago tells nothing:
Dagster keeps runs for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import dagster as dg

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import FAILED_TAG, tell_in_tags
from keptlog.dagster.orchestration.in_flight import configured_logs
from keptlog.dagster.orchestration.own_runs import VERIFY_JOB_NAME, OwnRuns, marked_tag
from keptlog.dagster.orchestration.still_failed import show_failed_again
from keptlog.dagster.orchestration.untold_cleans import (
    ended_ms,
    is_unread,
    planned_by,
    seen_since,
    tell_untold_cleans,
)
from keptlog.log.topic_partition import possible_topics
from keptlog.log.words.counted import some_of

_RUNS = 1_000
"""So many runs of the last day are looked back at: who ends a backfill ends a run of each topic."""
_AT_ONCE = 100
"""So many are looked at in one tick: each takes several queries of Dagster's database."""
_REMEMBERED_MS = 86_400_000
_NO_MARK = "none: no sensor asks for what it was to do because of it"
_TOLD = 5
"""Of the logs of each run."""


def tell_of_ended_runs(tick: Tick, most: int) -> tuple[list[str], int]:
    """Tell of at most so many cleans; gives what was told, run by run, and how many more may be.

    Raises:
        StorageUnavailable: the catalog can't be reached; the next tick goes on.
    """
    own, now_ms, looked_tag = OwnRuns.of_tick(tick), tick.now_ms(), marked_tag(tick.mount)
    statuses = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    silent = [
        each
        for each in own.records(*statuses, limit=_RUNS, since_ms=now_ms - _REMEMBERED_MS)
        if now_ms - ended_ms(each) < _REMEMBERED_MS and looked_tag not in each.dagster_run.tags
        if _may_be_meant(own, each.dagster_run)
    ]
    if not silent:
        return [], most
    seen, left, told = seen_since(tick, max(map(ended_ms, silent))), most, list[str]()
    hidden = set[dg.AssetKey]()
    sections = _sections(tick, seen.locations)
    meant = [each for each in reversed(silent) if _is_meant(own, each.dagster_run, sections)]
    if not meant:
        return [], most
    for record in _in_turn(tick, meant, sections, _sections(tick, seen.unreadable))[:_AT_ONCE]:
        if not left:
            break
        run, run_id = record.dagster_run, record.dagster_run.run_id
        untold = tell_untold_cleans(tick, record, left)
        left -= len(untold)
        if untold:
            told.append(f"run {run_id}: told now as cleaned: {some_of(untold, _TOLD)}")
        if run.status is dg.DagsterRunStatus.CANCELED:
            hidden |= sections & planned_by(tick.context.instance, run_id)
        if left and not is_unread(tick, record):
            tell_in_tags(tick.context.instance, run_id, {looked_tag: _NO_MARK})
    return [*told, *show_failed_again(tick, hidden, seen)], left


def _in_turn(
    tick: Tick, records: Iterable[dg.RunRecord], sections: AbstractSet[dg.AssetKey], unread: AbstractSet[dg.AssetKey]
) -> list[dg.RunRecord]:
    """Those of which something can be read; last those of which not all can, so that none waits behind them.

    What a run was asked to clean it says without a query. One that names nothing was asked for all that is due.
    """
    asked = [(each, _asked(tick, each.dagster_run) & sections) for each in records]
    readable = [(each, named) for each, named in asked if not named or named - unread]
    return [each for each, _ in sorted(readable, key=lambda both: not unread.isdisjoint(both[1]))]


def _asked(tick: Tick, run: dg.DagsterRun) -> AbstractSet[dg.AssetKey]:
    topics = {topic for name in configured_logs(run) for topic in possible_topics(name)}
    return OwnRuns.of_tick(tick).materialized_by(run) or _sections(tick, topics)


def _sections(tick: Tick, topics: Iterable[str]) -> AbstractSet[dg.AssetKey]:
    return {tick.keys.clean(topic) for topic in topics}


def _may_be_meant(own: OwnRuns, run: dg.DagsterRun) -> bool:
    """Whether it may have cleaned something here, or hides what had failed before, as far as it says that itself.

    Those of the job that died are looked at by who marks their logs. Who has named what failed has said all that it
    knows, but of the sections of one mount alone. A key does not say of which mount it is: one mount may have no
    prefix, or one that another's begins with. So of several keys only a look at the topics tells (``_is_meant``).
    """
    if _is_of_own_job(own, run):
        return run.status is dg.DagsterRunStatus.CANCELED and FAILED_TAG not in run.tags
    asked, prefix = own.materialized_by(run), [*own.mount.keys.prefix]
    may_be_here = any([*key.path[: len(prefix)]] == prefix for key in asked)
    return may_be_here and (FAILED_TAG not in run.tags or len(asked) > 1)


def _is_meant(own: OwnRuns, run: dg.DagsterRun, sections: AbstractSet[dg.AssetKey]) -> bool:
    if _is_of_own_job(own, run):
        return True
    return not sections.isdisjoint(own.materialized_by(run)) and not own.has_named_failed(run, lambda: sections)


def _is_of_own_job(own: OwnRuns, run: dg.DagsterRun) -> bool:
    return own.is_of(run, CLEAN_JOB) or own.is_of(run, VERIFY_JOB_NAME)
