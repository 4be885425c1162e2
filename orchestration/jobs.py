"""The jobs: ``clean_logs`` for any set of logs of any topics, ``retention``, and ``purge`` for what both have replaced.

    plan ──> compact ──> expire_tombstones ──> commit

One run cleans many logs because starting Spark costs more than cleaning a small log. The ops share one process and so
one Spark session; until ``commit`` nothing is visible, and a run that dies before leaves files that a purge sweeps. A
run from the start is a fresh plan, so that is what a retry does; "re-execute from failure" commits what was staged, or
is told that the plan is stale.
"""

from collections.abc import Collection, Iterable, Mapping

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from keptlog.dagster.assets.attempts import begin_attempts
from keptlog.dagster.assets.checks import as_evaluation, gone_results
from keptlog.dagster.assets.erasures import ErasureNews, bring_erasures_on, look_at_erasures
from keptlog.dagster.assets.numbers import retention_observation
from keptlog.dagster.assets.outage import outage_among, tag_outage, telling_outages
from keptlog.dagster.assets.report import (
    checks_after,
    erasures_after,
    fail_if_any_failed,
    names_to_check,
    observe_after,
    report_numbers,
    run_id_of,
)
from keptlog.dagster.orchestration.in_flight import logs_in_flight
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.pool import POOL
from keptlog.dagster.resources.spark import session_of
from keptlog.errors import KeptlogError
from keptlog.log.counted import counted
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.open_erasures import ErasureNeed
from keptlog.log.plan import describe_step
from keptlog.log.steps import Compact, Expire
from keptlog.passes.clean import Pass
from keptlog.passes.names import named_logs
from keptlog.passes.observer import observe
from keptlog.passes.retain import BEING_CLEANED
from keptlog.table.drafts import Sealing
from keptlog.table.held import held_lines


class PlanConfig(dg.Config):
    """Which logs to clean."""

    logs: list[str] = Field(default_factory=list)
    """Topics and topic-partitions (``orders``, ``orders-0``); all if empty."""
    requested: bool = False
    """Clean whatever is cleanable, without asking the dirty ratio or the lag."""


class CommitConfig(dg.Config):
    """What happens after the commit."""

    verify: bool = True
    """Read keys and offsets of the cleaned logs back and evaluate the asset checks."""


class RetentionConfig(dg.Config):
    """Which logs to retain."""

    logs: list[str] = Field(default_factory=list)
    """Topics and topic-partitions (``orders``, ``orders-0``); all if empty."""


class PurgeConfig(dg.Config):
    """What is deleted."""

    topics: list[str] = Field(default_factory=list)
    """All if empty."""
    orphan_grace_ms: int = ORPHAN_GRACE_MS
    """Files that nothing refers to are left behind by crashes; younger ones may belong to a run that is under way."""


@dg.op(description="Judge the logs and decide what to do with each; changes nothing.")
def plan(context: dg.OpExecutionContext, config: PlanConfig, log_store: LogStoreResource, clock: ClockResource) -> Pass:
    now_ms = clock.read_ms()
    with telling_outages(context, now_ms):
        planned = log_store.cleaner().begin(config.logs, run_id_of(context), now_ms=now_ms, requested=config.requested)
    begin_attempts(context, [step.topic_partition for step in planned.plan.steps])
    for step in planned.plan.steps:
        context.log.info(describe_step(step))
    for name, reason in planned.plan.left_alone.items():
        context.log.info("%s left alone: %s", name, reason)
    for name, error in planned.failed.items():
        context.log.error("%s: %s", name, error)
    return planned


@dg.op(pool=POOL, description="Rewrite the dirty logs on Spark: superseded records go, tombstones are stamped.")
def compact(
    context: dg.OpExecutionContext,
    planned: Pass,
    log_store: LogStoreResource,
    spark: LazyPySparkResource,
) -> Pass:
    with telling_outages(context, planned.plan.now_ms):
        return log_store.cleaner(session_of(spark)).stage(planned, [Compact], context.log.info)


@dg.op(pool=POOL, description="Rewrite clean logs whose tombstones are past their delete horizon.")
def expire_tombstones(
    context: dg.OpExecutionContext,
    compacted: Pass,
    log_store: LogStoreResource,
    spark: LazyPySparkResource,
) -> Pass:
    with telling_outages(context, compacted.plan.now_ms):
        return log_store.cleaner(session_of(spark)).stage(compacted, [Expire], context.log.info)


@dg.op(description="Make what was rewritten live, one commit a topic; report it; fail if a log was not cleaned.")
def commit(
    context: dg.OpExecutionContext,
    config: CommitConfig,
    staged: Pass,
    log_store: LogStoreResource,
    clock: ClockResource,
) -> Pass:
    with telling_outages(context, staged.plan.now_ms):
        store = log_store.store
        committed = log_store.cleaner().commit(staged)
    cleaned, after = observe_after(store, committed, names_to_check(committed))
    report_numbers(context, cleaned, after)
    if config.verify:
        for result in checks_after(context.instance, store, cleaned, after):
            context.log_event(as_evaluation(result))  # type: ignore[arg-type]  # it takes them, undeclared
    erasures_after(context, log_store, after, clock.read_ms())
    fail_if_any_failed(context, cleaned, [str(step.topic_partition) for step in cleaned.plan.steps])
    context.log.info("%s cleaned, %d left alone", counted(len(cleaned.committed), "log"), len(cleaned.plan.left_alone))
    return cleaned


@dg.job(
    executor_def=dg.in_process_executor,
    description="Clean logs: those that are named, or all that are due.",
    tags={"dagster/retry_strategy": "ALL_STEPS"},
)
def clean_logs() -> None:
    commit(expire_tombstones(compact(plan())))


@dg.op(description="Remove old segments by log start, retention.bytes and retention.ms, one commit a topic.")
def remove_old_segments(
    context: dg.OpExecutionContext, config: RetentionConfig, log_store: LogStoreResource, clock: ClockResource
) -> None:
    busy = logs_in_flight(OwnRuns.of_run(context))
    run_id, now_ms = run_id_of(context), clock.read_ms()
    with telling_outages(context, now_ms):
        named = named_logs(log_store.store, config.logs)
        result = log_store.retainer.retain(named, run_id, now_ms=now_ms, is_busy=busy.includes)
    for step in result.committed:
        context.log.info(describe_step(step))
        context.log_event(retention_observation(step))
    for name, reason in result.plan.left_alone.items():
        if reason == BEING_CLEANED:
            context.log.info("%s left alone: %s", name, reason)
    if outage := outage_among(result.failed, is_any_done=bool(result.committed)):
        tag_outage(context, outage, now_ms)
    _fail_if_any(result.failed, "not retained")


@dg.job(
    executor_def=dg.in_process_executor,
    description="Remove old segments from logs whose cleanup.policy has delete. Needs no Spark.",
)
def retention() -> None:
    remove_old_segments()


@dg.op(description="Delete files that no snapshot within file.delete.delay.ms refers to.")
def delete_retired_files(
    context: dg.OpExecutionContext, config: PurgeConfig, log_store: LogStoreResource, clock: ClockResource
) -> None:
    now_ms, changed = clock.read_ms(), set[str]()
    result = log_store.purger.purge(config.topics, now_ms=now_ms, orphan_grace_ms=config.orphan_grace_ms)
    for topic, receipt in result.receipts.items():
        deleted = len(receipt.deleted_files) + len(receipt.deleted_orphans)
        if deleted or receipt.expired_snapshots:
            changed.add(topic)
            expired = counted(len(receipt.expired_snapshots), "snapshot")
            freed = (topic, expired, counted(deleted, "file"), receipt.deleted_bytes)
            context.log.info("%s: %s expired, %s deleted, %d bytes freed", *freed)
        for line in held_lines(receipt.held):
            context.log.info("%s: still there: %s", topic, line)
        for left in receipt.not_deleted:
            context.log.error("%s: not deleted: %s: %s", topic, left.path, left.reason)
        for what in receipt.unreadable:
            context.log.warning("%s: could not be read: %s", topic, what)
        for what in receipt.not_looked_at:
            context.log.info("%s: not looked at: %s", topic, what)
        _tell_sealing(context, topic, receipt.sealing)
    for topic, deletion in result.deletions.items():
        context.log.info("%s: %s of the deleted topic deleted", topic, counted(len(deletion.deleted_files), "file"))
        for left in deletion.not_deleted:
            context.log.error("%s: not deleted: %s: %s", topic, left.path, left.reason)
        _tell_sealing(context, topic, deletion.sealing)
    _check_gone(context, log_store, changed, now_ms)
    if result.idle:
        count = counted(len(result.idle), "topic")
        context.log.info("%s left alone: nothing was committed, or is due, since the last purge", count)
    _erasures_after_purge(context, log_store, result.receipts.keys() - set(result.idle), changed, now_ms)
    _fail_if_any(result.failed, "not purged")


def _check_gone(
    context: dg.OpExecutionContext, log_store: LogStoreResource, changed: Collection[str], now_ms: int
) -> None:
    """Evaluate G8 of topics from which something was deleted, and of those where something is late."""
    late = {holder.topic for holder in log_store.observer.look(now_ms).late_holders()}
    for topic in sorted({*changed, *late}):
        for evaluated in gone_results(context.instance, log_store.store, topic, now_ms):
            context.log_event(as_evaluation(evaluated))  # type: ignore[arg-type]  # it takes them, undeclared


def _tell_sealing(context: dg.OpExecutionContext, topic: str, sealing: Sealing) -> None:
    for receipt_id in sealing.sealed:
        context.log.info("%s: receipt %s", topic, receipt_id)
    for receipt_id in sealing.waiting:
        context.log.warning("%s: receipt %s waits to be sealed: %s", topic, receipt_id, sealing.why)


def _erasures_after_purge(
    context: dg.OpExecutionContext, log_store: LogStoreResource, purged: Iterable[str], changed: set[str], now_ms: int
) -> None:
    """Of the topics that were purged, those whose erasures may be further now."""

    def look() -> ErasureNews | None:
        names = list(purged)
        erasures = observe(log_store.store, names, now_ms=now_ms).erasures if names else {}
        waiting = {topic for topic, each in erasures.items() if each.has(ErasureNeed.PURGE)}
        changed_open = {topic for topic in changed if topic in erasures and erasures[topic].count}
        topics = sorted(waiting | changed_open)
        return look_at_erasures(log_store, now_ms, topics) if topics else None

    bring_erasures_on(context, look)


@dg.job(
    executor_def=dg.in_process_executor,
    description="Delete replaced files from the storage once nobody can still be reading them.",
)
def purge() -> None:
    delete_retired_files()


def _fail_if_any(failed: Mapping[str, KeptlogError], what: str) -> None:
    """End the run as failed, after all that was done has been told.

    Raises:
        Failure: naming each log or topic and its reason.
    """
    if failed:
        reasons = "; ".join(f"{name}: {error}" for name, error in sorted(failed.items()))
        raise dg.Failure(f"{len(failed)} {what}: {reasons}", allow_retries=False)
