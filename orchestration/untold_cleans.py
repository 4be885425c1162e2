"""Tells Dagster of cleans that have landed, and that no run has told it of.

A log is shown as failed from the run that could not clean it. If it is cleaned in a terminal then, or if the run had
cleaned it and died before it could say so, nothing is wrong with it any more. But it would be shown as failed until it
is cleaned again: a log that nobody appends to, for ever. What is downstream hears nothing of the clean either. A run
that is started again does not help: it finds nothing left to be done.

That a clean has landed is seen in the topic: it has no mark, and its last clean is of that run, or one since the run
began. One that was ended in the queue never did: another may have done its work, and not told. That a run has named the
log as failed tells nothing: the catalog's answer to its commit may have been lost, or somebody else been faster.

But what a run itself has told of its clean stays failed: it tells first what has landed, and then what of it is not as
it should be, or could not be read back. The section may have changed since, or have been told without a data version.
So does what is as Dagster was told last: Dagster's clock and that of who cleaned may differ. What was found broken
stays failed, too, because nobody has read it back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

import dagster as dg

from keptlog.dagster.assets.checks import broken_before
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.numbers import DATA_VERSION_TAG, clean_version, unchanged_materialization
from keptlog.dagster.assets.outlook import outlook_of
from keptlog.dagster.assets.report import is_of_run
from keptlog.log.assessment import Assessment
from keptlog.passes.observer import Overview

_OVER = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
"""Runs that may have ended before they could tell."""


Told = dict[str, frozenset[tuple[dg.AssetKey | None, str | None]]]
"""By run, the sections of topic-partitions that it has told to be made, of those that were asked for."""


def untold_cleans(
    tick: Tick, seen: Overview, topics: Iterable[str], most: int, told: Told | None = None
) -> list[dg.AssetMaterialization]:
    """Of the logs of these topics that Dagster takes for failed, those that were cleaned since; at most so many.

    Who asks for one topic after the other keeps what runs have ``told``: one run may have told of a thousand topics.
    """
    wanted, logs = set(topics), defaultdict[str, list[Assessment]](list)
    told = {} if told is None else told
    for each in seen.assessments:
        if each.log.topic_partition.topic in wanted:
            logs[each.log.topic_partition.topic].append(each)
    # One topic after the other: each takes several queries of Dagster's database.
    found = (event for theirs in logs.values() for event in _of_topic(tick, seen, theirs, told))
    return list(islice(found, most))


def tell_untold_cleans(tick: Tick, record: dg.RunRecord, most: int) -> list[str]:
    """Tell what has landed of what a run was about to clean that died, at once; gives the logs' names, at most so many.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    planned = planned_by(tick.context.instance, record.dagster_run.run_id)
    if not planned:
        return []
    seen = seen_since(tick, ended_ms(record))
    names = {each.log.topic_partition.topic for each in seen.assessments}
    untold = untold_cleans(tick, seen, [name for name in names if tick.keys.clean(name) in planned], most)
    for event in untold:
        tick.context.instance.report_runless_asset_event(event)
    return [each.partition or "" for each in untold]


def is_unread(tick: Tick, record: dg.RunRecord) -> bool:
    """Whether the last look could not read all that a run was about to clean: a later one may tell more."""
    last = tick.log_store.observer.last
    if last is None or not (last.behind or last.unreadable):
        return False
    planned = planned_by(tick.context.instance, record.dagster_run.run_id)
    unread = {tick.keys.clean(topic) for topic in last.unreadable}
    return bool(planned) and (last.behind > 0 or not unread.isdisjoint(planned))


def seen_since(tick: Tick, over_ms: int) -> Overview:
    """A look from after a run's end: however many have died, a tick waits once for what does not answer.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    now_ms = tick.now_ms()
    last = tick.log_store.observer.last
    return last if last is not None and over_ms <= last.now_ms <= now_ms else tick.log_store.observer.look(now_ms)


def planned_by(instance: dg.DagsterInstance, run_id: str) -> set[dg.AssetKey]:
    """The clean sections of which a run has said that it is about to clean some."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    events = [each.dagster_event for each in entries if each.dagster_event]
    return {each.asset_key for each in events if each.asset_key}


def _of_topic(tick: Tick, seen: Overview, logs: list[Assessment], told: Told) -> list[dg.AssetMaterialization]:
    """One for each log, all of a topic, whose last attempt was of a run that is over, and that was cleaned since."""
    instance, topic = tick.context.instance, logs[0].log.topic_partition.topic
    left = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(
        tick.keys.clean(topic)
    )
    if not left:
        return []
    ids = sorted({run_id for run_id, _ in left.values()})
    records = instance.get_run_records(dg.RunsFilter(run_ids=ids, statuses=_OVER))
    over = {each.dagster_run.run_id: each for each in records}
    failed = {name: over[run_id] for name, (run_id, _) in left.items() if run_id in over}
    landed = [
        each
        for each in logs
        if (tried := failed.get(str(each.log.topic_partition)))
        if _was_cleaned_since(tried, each, seen)
    ]
    landed = _other_than_told(tick, topic, landed) if landed else []
    landed = _untold_by_own(tick, seen, landed, failed, told)
    broken = broken_before(tick, topic, landed[0].log.topic_id) if landed else set()
    of_topic = outlook_of(tick, logs, seen.now_ms) if landed else {}
    found = []
    for each in landed:
        if each.log.topic_partition.partition not in broken:
            run = failed[str(each.log.topic_partition)].dagster_run
            why = f"it was cleaned, which run {run.run_id} did not tell; it was not read back"
            found.append(unchanged_materialization(tick.keys, each, why, of_topic))
    return found


def ended_ms(record: dg.RunRecord) -> int:
    """When a run that is over has ended."""
    return round(1000 * (record.end_time or record.update_timestamp.timestamp()))


def _was_cleaned_since(record: dg.RunRecord, each: Assessment, seen: Overview) -> bool:
    """Whether the last clean of a log is that of a run that is over, or one since it began or, if never, was made."""
    last = seen.last_passes.get(each.log.topic_partition)
    if last is None or each.log.uncleanable:
        return False
    began_ms = round(1000 * (record.start_time or record.create_timestamp.timestamp()))
    return is_of_run(last.run_id, record.dagster_run.run_id) or began_ms <= last.ended_ms


def _other_than_told(tick: Tick, topic: str, logs: list[Assessment]) -> list[Assessment]:
    """Those whose clean section is another one than Dagster was told of last."""
    told = tick.context.instance.event_log_storage.get_latest_tags_by_partition(
        tick.keys.clean(topic),
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        [DATA_VERSION_TAG],
        [str(each.log.topic_partition) for each in logs],
    )
    versions = {name: tags.get(DATA_VERSION_TAG) for name, tags in told.items()}
    return [each for each in logs if versions.get(str(each.log.topic_partition)) != clean_version(each)]


def _untold_by_own(
    tick: Tick, seen: Overview, logs: list[Assessment], failed: Mapping[str, dg.RunRecord], told: Told
) -> list[Assessment]:
    """Those whose last clean is not of the failed run, or was not told by it. ``failed`` is the run of each."""
    instance = tick.context.instance
    passes = {each.log.topic_partition: seen.last_passes[each.log.topic_partition].run_id for each in logs}
    tries = {name: (failed[str(name)].dagster_run.run_id, run_id) for name, run_id in passes.items()}
    own = {each: _tries_of_pass(instance, *each) for each in {*tries.values()}}
    unasked = {run_id for runs in own.values() for run_id in runs} - told.keys()
    told.update({run_id: _told_by(instance, run_id) for run_id in unasked})
    return [
        each
        for each in logs
        if (name := each.log.topic_partition)
        if all((tick.keys.clean(name.topic), str(name)) not in told[run_id] for run_id in own[tries[name]])
    ]


def _tries_of_pass(instance: dg.DagsterInstance, last_id: str, pass_id: str | None) -> list[str]:
    """A run and those that it executes again, back to the one that has planned this pass; none if no such one has.

    Executed again from its failure, a run commits under the id of the run before.
    """
    tries: list[str] = []
    run_id: str | None = last_id
    while run_id:
        tries.append(run_id)
        if is_of_run(pass_id, run_id):
            return tries
        run = instance.get_run_by_id(run_id)
        run_id = run.parent_run_id if run else None
    return []


def _told_by(instance: dg.DagsterInstance, run_id: str) -> frozenset[tuple[dg.AssetKey | None, str | None]]:
    """The sections of topic-partitions that a run has told to be made: all its events are read, some ms each."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    return frozenset((event.asset_key, event.partition) for each in entries if (event := each.dagster_event))
