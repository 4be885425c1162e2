"""What the Partitions tab shows of a log: whether the last attempt to clean it, or to verify it, went well.

Dagster takes a partition for failed if the last that it has heard of it is a plan to materialize it, by a run that has
failed. It makes such plans itself for runs of assets. For a run of a job, which may clean any logs of any topics, they
are made here, one for each log. So a log whose clean fails is red until a clean of it lands, and so is one whose run
dies. ``tests/orchestration/test_attempts.py`` pins what is relied upon of Dagster.

A run that is ended is neither. What it had planned is shown as it was made before, also where an attempt before it had
failed. The sensor of ended runs lets that one be the last again (``fail_again``).

A plan says of which topic the log is: one that is made anew under the name has not failed because the old one did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData

from keptlog.dagster.assets.last_results import TOPIC_ID
from keptlog.dagster.assets.mount import Run
from keptlog.dagster.assets.numbers import clean_version_tags
from keptlog.dagster.assets.outlook import identity_of
from keptlog.log.assessment import Assessment
from keptlog.log.topic_partition import TopicPartition

_LOOKED_BACK = 50
"""So many attempts at a log are looked back at: many may have been ended one after the other."""


def begin_attempts(run: Run, topic_ids: Mapping[TopicPartition, str | None]) -> None:
    """Say that this run is about to clean these logs, or has found them broken; each with its topic's id, if known."""
    context = run.context
    for name, topic_id in topic_ids.items():
        key = run.keys.clean(name.topic)
        _report_plan(context.instance, context.run, key, (str(name), topic_id), context.op.name)


def end_attempts(run: Run, reasons: Mapping[TopicPartition, str], assessments: Iterable[Assessment]) -> None:
    """Say of logs that nothing was to be done to them, and why: a run that fails because of others is not theirs.

    ``assessments`` holds these as they are: what is told says of which topic it is, and as which version of the
    section. A log that can't be had, or judged, is told without.
    """
    there = {each.log.topic_partition: each for each in assessments}
    for name, reason in reasons.items():
        each = there.get(name)
        told = dg.AssetMaterialization(
            run.keys.clean(name.topic),
            partition=str(name),
            description=reason,
            metadata=identity_of([each.log] if each else []),
            tags=clean_version_tags(each),
        )
        run.context.log_event(told)


def failed_attempts(run: Run, topic: str) -> dict[str, str]:
    """By topic-partition the run of its last attempt, of those whose run has failed."""
    return last_attempts(run.context.instance, run.keys.clean(topic), [dg.DagsterRunStatus.FAILURE])


def last_attempts(
    instance: dg.DagsterInstance, key: dg.AssetKey, statuses: Sequence[dg.DagsterRunStatus]
) -> dict[str, str]:
    """By topic-partition the run of its last attempt that is not over, or brought nothing, if it has such a status.

    Dagster does not say by itself what became of the run: that it was cancelled, or deleted, for example.
    """
    return {name: run_id for name, (run_id, _) in _last_plans(instance, key, statuses).items()}


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at a log, by a run that has failed."""

    name: str
    run_id: str
    topic_id: str | None


def failed_before(
    instance: dg.DagsterInstance, key: dg.AssetKey, topic_ids: Mapping[str, str | None]
) -> list[FailedAttempt]:
    """Of these topic-partitions the last attempt that has failed, of those that have not been made since.

    An attempt at a log of an earlier topic of the name is none.
    """
    if not topic_ids:
        return []
    storage = instance.event_log_storage
    made = storage.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION, {*topic_ids})
    found = []
    for name, topic_id in topic_ids.items():
        filters = dg.EventRecordsFilter(
            dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
            asset_key=key,
            asset_partitions=[name],
            after_cursor=made.get(name),
        )
        records = storage.get_event_records(filters, limit=_LOOKED_BACK)
        known = dg.RunsFilter(run_ids=[*{each.run_id for each in records}], statuses=[dg.DagsterRunStatus.FAILURE])
        failed = {run.run_id for run in instance.get_runs(known)} if records else set()
        told = [(each.run_id, _topic_id_in(each.event_log_entry.dagster_event)) for each in records]
        ours = [run_id for run_id, said in told if run_id in failed and (not topic_id or said in (None, topic_id))]
        found += [FailedAttempt(name, run_id, topic_id) for run_id in ours[:1]]
    return found


def fail_again(instance: dg.DagsterInstance, key: dg.AssetKey, attempt: FailedAttempt) -> None:
    """Let the run that failed be the last that Dagster has heard of a log: one that came after it brought nothing."""
    run = instance.get_run_by_id(attempt.run_id)
    if run is not None:
        _report_plan(instance, run, key, (attempt.name, attempt.topic_id), run.job_name)


def _report_plan(
    instance: dg.DagsterInstance, run: dg.DagsterRun, key: dg.AssetKey, log: tuple[str, str | None], step: str
) -> None:
    name, topic_id = log
    planned = AssetMaterializationPlannedData(key, partition=name)
    event = dg.DagsterEvent.build_asset_materialization_planned_event(run.job_name, step, planned)
    if topic_id:
        event = event._replace(logging_tags={TOPIC_ID: topic_id})
    instance.report_dagster_event(event, run.run_id)


def attempted_of(
    instance: dg.DagsterInstance, key: dg.AssetKey, statuses: Sequence[dg.DagsterRunStatus], topic_id: str | None
) -> set[str]:
    """The topic-partitions of the same, without those that were of another topic of the name.

    A plan that does not say of which it was, as Dagster's own and those of an older keptlog, is taken for one of this.
    """
    plans = _last_plans(instance, key, statuses)
    if not plans or topic_id is None:
        return {*plans}
    filters = dg.EventRecordsFilter(
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        asset_key=key,
        storage_ids=[storage_id for _, storage_id in plans.values()],
    )
    records = instance.event_log_storage.get_event_records(filters)
    said = {each.storage_id: _topic_id_in(each.event_log_entry.dagster_event) for each in records}
    return {name for name, (_, storage_id) in plans.items() if said.get(storage_id) in (None, topic_id)}


def _topic_id_in(event: dg.DagsterEvent | None) -> str | None:
    return (event.logging_tags or {}).get(TOPIC_ID) if event else None


def _last_plans(
    instance: dg.DagsterInstance, key: dg.AssetKey, statuses: Sequence[dg.DagsterRunStatus]
) -> dict[str, tuple[str, int]]:
    """By topic-partition the run of such an attempt, and the number of its plan in Dagster's storage."""
    left = instance.event_log_storage.get_latest_asset_partition_materialization_attempts_without_materializations(key)
    if not left:
        return {}
    run_ids = sorted({run_id for run_id, _ in left.values()})
    meant = {each.run_id for each in instance.get_runs(dg.RunsFilter(run_ids=run_ids, statuses=list(statuses)))}
    return {name: plan for name, plan in left.items() if plan[0] in meant}
