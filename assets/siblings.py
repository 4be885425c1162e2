"""One run for any selection: the first run of a backfill does what the others of it are still waiting to do.

A run of Dagster's has one range of partitions of one definition. So who selects seven topics and clicks "Materialize
all" gets seven runs, and so does who selects topic-partitions with gaps between them. Each would start a process and a
Spark, one after the other, because a pool bounds how many clean at once (ADR 51).

    selected       users-0, users-2, orders-0
    runs           A: users-0, running          B: users-2, queued          C: orders-0, queued
    A              cleans all three in one pass, tells Dagster of all, and ends B and C: nothing is left for them

Only runs of this code location are taken over, for another one has a home of its own. They are queued, and they clean
and do nothing else: one that makes a check of a project's own has that to do. A taken run is told by a tag, and is
looked at once more after that; so one that Dagster starts all the same is either left to itself, or sees the tag and
waits. What could not be cleaned stays with its own run, which then starts, and fails with its reason.

If the run that took them dies, they are queued as before, and one of their logs may be what it died of. So from then on
each cleans its own: nobody takes it again, and it takes nobody. Only the run of that log dies once more. A run that has
ended by itself, because of an outage for example, has said so. What it took is taken once again, and not a third time:
a log may be what ends Spark each time. None of this guards correctness: the commit does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.events import DagsterEvent, DagsterEventType

from keptlog.dagster.assets.checks import check_specs
from keptlog.dagster.assets.mount import PLACE_TAG, AssetRun, place_of
from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG, told_of_itself
from keptlog.dagster.resources.clock import pause
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted

TAKEN_BY_TAG = "keptlog/taken_by"
_BACKFILL_TAG = "dagster/backfill"
_RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_LONGEST_WAIT_SECONDS = 600
_ENDED_ITSELF = {FAILED_TAG, OUTAGE_TAG}
"""A run that has failed, and has lived to say of what, has one of them."""


@dataclass(frozen=True)
class Siblings:
    """Queued runs whose logs this run cleans."""

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Run id to its topic-partitions."""

    @property
    def all_names(self) -> list[str]:
        return [name for names in self.names.values() for name in names]


def take_over(run: AssetRun) -> Siblings:
    """The queued runs that clean other logs of the same backfill; of none if this run is part of no backfill."""
    context = run.context
    own = _wait_for_taker(context)
    backfill, place = context.run.tags.get(_BACKFILL_TAG), place_of(context.run)
    if not backfill:
        return Siblings()
    if own and not _may_go_with_others(context.instance, own):
        taker_id = own.tags[TAKEN_BY_TAG]
        context.log.info("run %s was to clean these logs too, and has not: this run cleans its own alone", taker_id)
        return Siblings()
    tags = {_BACKFILL_TAG: backfill} | ({PLACE_TAG: place} if place else {})
    queued = dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.QUEUED])
    waiting = [each for each in context.instance.get_runs(queued) if _may_go_with_others(context.instance, each)]
    clean_sections = {run.keys.clean(topic) for topic in run.log_store.store.topics()} if waiting else set()
    cleaning = {each.run_id: (each, names) for each in waiting if (names := _cleaned_by(each, clean_sections))}
    found = {run_id: names for run_id, (each, names) in cleaning.items() if _makes_own_checks_only(context, each)}
    for run_id in found:
        context.instance.add_run_tags(run_id, {TAKEN_BY_TAG: context.run_id})
    still = {each.run_id for each in context.instance.get_runs(queued)}
    taken = Siblings({run_id: names for run_id, names in found.items() if run_id in still})
    if taken.names:
        context.log.info("cleaned here as well: %s of this backfill", counted(len(taken.names), "queued run"))
    return taken


def end_siblings(run: AssetRun, taken: Siblings, failed: Collection[str]) -> None:
    """End the runs that have nothing left to do; ``failed`` are the topic-partitions that could not be cleaned."""
    context = run.context
    for run_id, names in taken.names.items():
        sibling = context.instance.get_run_by_id(run_id)
        if not sibling or sibling.status is not dg.DagsterRunStatus.QUEUED or not set(names).isdisjoint(failed):
            continue
        message = f"Its topic-partitions were cleaned in run {context.run_id}, which is part of the same backfill."
        ended = DagsterEvent(DagsterEventType.PIPELINE_SUCCESS.value, sibling.job_name, message=message)
        context.instance.report_dagster_event(ended, run_id)


def _may_go_with_others(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether a run may be taken over, or take others: not if whoever took it may have died of it, nor a third time."""
    taker_id = run.tags.get(TAKEN_BY_TAG)
    taker = instance.get_run_by_id(taker_id) if taker_id else None
    if taker is None:
        return taker_id is None
    has_ended_itself = taker.is_success or not _ENDED_ITSELF.isdisjoint(told_of_itself(taker))
    return has_ended_itself and TAKEN_BY_TAG not in taker.tags


def _wait_for_taker(context: dg.AssetExecutionContext) -> dg.DagsterRun | None:
    """Let the run end that cleans the logs of this one; then little is left to be done. This run, with its tags now."""
    own: dg.DagsterRun | None = context.instance.get_run_by_id(context.run_id)
    taker_id = own.tags.get(TAKEN_BY_TAG) if own else None
    for _ in range(_LONGEST_WAIT_SECONDS if taker_id else 0):
        taker = context.instance.get_run_by_id(taker_id or "")
        if not taker or taker.is_finished:
            break
        pause(1)
    return own


def _cleaned_by(sibling: dg.DagsterRun, clean_sections: AbstractSet[dg.AssetKey]) -> tuple[str, ...]:
    """The topic-partitions that a run is to clean; none if it is to do anything else."""
    keys = sibling.asset_selection or frozenset()
    if len(keys) != 1 or not keys <= clean_sections:
        return ()
    one = sibling.tags.get("dagster/partition")
    ends = [one, one] if one else [sibling.tags.get(name) for name in _RANGE_TAGS]
    if None in ends:
        return ()
    first, last = (TopicPartition.of_a_log(name or "") for name in ends)
    return tuple(str(TopicPartition(first.topic, n)) for n in range(first.partition, last.partition + 1))


def _makes_own_checks_only(context: dg.AssetExecutionContext, sibling: dg.DagsterRun) -> bool:
    """Whether a run that cleans makes no checks but those that this one makes, too."""
    own = {spec.key for key in sibling.asset_selection or () for spec in check_specs(key)}
    if sibling.asset_check_selection is not None:
        return sibling.asset_check_selection <= own
    planned = context.instance.all_logs(sibling.run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED)
    events = [each.dagster_event for each in planned if each.dagster_event]
    return {each.asset_check_planned_data.asset_check_key for each in events} <= own
