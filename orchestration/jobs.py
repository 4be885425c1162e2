"""The jobs: ``clean_logs`` for any set of logs of any topics, and ``purge`` for what cleans have replaced.

    plan ──> compact ──> expire_tombstones ──> commit

One run cleans many logs because starting Spark costs more than cleaning a small log. The ops share one process and so
one Spark session; until ``commit`` nothing is visible, and a run that dies before leaves files that a purge sweeps. A
run from the start is a fresh plan, so that is what a retry does; "re-execute from failure" commits what was staged, or
is told that the plan is stale.
"""

from typing import NoReturn

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from assets.checks import as_evaluation
from assets.passes import Pass, commit_pass, observe_after, plan_pass, rewrite_pass
from assets.report import checks_after, fail_if_any_failed, report_numbers, run_id_of
from assets.sections import POOL
from keptlog.log.plan import StepKind, describe_step
from resources.clock import ClockResource
from resources.log_store import LogStoreResource
from resources.spark import session_of

_DAY_MS = 24 * 3_600_000


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


class PurgeConfig(dg.Config):
    """What is deleted."""

    topics: list[str] = Field(default_factory=list)
    """All if empty."""
    orphan_grace_ms: int = _DAY_MS
    """Files that nothing refers to are left behind by crashes; younger ones may belong to a run that is under way."""


@dg.op(description="Judge the logs and decide what to do with each; changes nothing.")
def plan(context: dg.OpExecutionContext, config: PlanConfig, log_store: LogStoreResource, clock: ClockResource) -> Pass:
    cleaner = log_store.cleaner(_no_session)
    planned = plan_pass(cleaner, config.logs, run_id_of(context), clock.read_ms(), requested=config.requested)
    for step in planned.plan.steps:
        context.log.info(describe_step(step))
    for name, reason in planned.plan.left_alone.items():
        context.log.info("%s left alone: %s", name, reason)
    for name, reason in planned.failed.items():
        context.log.error("%s: %s", name, reason)
    return planned


@dg.op(pool=POOL, description="Rewrite the dirty logs on Spark: superseded records go, tombstones are stamped.")
def compact(
    context: dg.OpExecutionContext,
    planned: Pass,
    log_store: LogStoreResource,
    spark: LazyPySparkResource,
    clock: ClockResource,
) -> Pass:
    cleaner = log_store.cleaner(session_of(spark))
    return rewrite_pass(cleaner, planned, [StepKind.COMPACT], clock.stopwatch(), context.log.info)


@dg.op(pool=POOL, description="Rewrite clean logs whose tombstones are past their delete horizon.")
def expire_tombstones(
    context: dg.OpExecutionContext,
    compacted: Pass,
    log_store: LogStoreResource,
    spark: LazyPySparkResource,
    clock: ClockResource,
) -> Pass:
    cleaner = log_store.cleaner(session_of(spark))
    return rewrite_pass(cleaner, compacted, [StepKind.EXPIRE], clock.stopwatch(), context.log.info)


@dg.op(description="Make what was rewritten live, one commit a topic; report it; fail if a log was not cleaned.")
def commit(context: dg.OpExecutionContext, config: CommitConfig, staged: Pass, log_store: LogStoreResource) -> Pass:
    cleaner = log_store.cleaner(_no_session)
    committed = commit_pass(cleaner, staged)
    cleaned, after = observe_after(cleaner, committed, committed.cleaned_names)
    report_numbers(context, cleaned, after)
    if config.verify:
        for topic, result in checks_after(log_store.store, cleaned, after):
            context.log_event(as_evaluation(topic, result))  # type: ignore[arg-type]  # it takes them, undeclared
    fail_if_any_failed(context, cleaned)
    context.log.info("%d logs cleaned, %d left alone", len(cleaned.committed), len(cleaned.plan.left_alone))
    return cleaned


@dg.job(
    executor_def=dg.in_process_executor,
    description="Clean logs: those that are named, or all that are due.",
    tags={"dagster/retry_strategy": "ALL_STEPS"},
)
def clean_logs() -> None:
    commit(expire_tombstones(compact(plan())))


@dg.op(description="Delete files that no snapshot within file.delete.delay.ms refers to.")
def delete_retired_files(
    context: dg.OpExecutionContext, config: PurgeConfig, log_store: LogStoreResource, clock: ClockResource
) -> None:
    store, now_ms = log_store.store, clock.read_ms()
    for topic in config.topics or store.topics():
        receipt = store.purge(topic, now_ms, config.orphan_grace_ms)
        deleted = len(receipt.deleted_files) + len(receipt.deleted_orphans)
        if deleted or receipt.expired_snapshots:
            expired = len(receipt.expired_snapshots)
            freed = (topic, expired, deleted, receipt.deleted_bytes)
            context.log.info("%s: %d snapshots expired, %d files deleted, %d bytes freed", *freed)


@dg.job(
    executor_def=dg.in_process_executor,
    description="Delete replaced files from the storage once nobody can still be reading them.",
)
def purge() -> None:
    delete_retired_files()


def _no_session() -> NoReturn:
    raise AssertionError("planning and committing need no Spark session")
