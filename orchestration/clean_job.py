"""The job that cleans any set of logs of any topics.

    plan ──> compact ──> expire_tombstones ──> commit

One run cleans many logs because starting Spark costs more than cleaning a small log. The ops share one process and so
one Spark session; until ``commit`` nothing is visible, and a run that dies before leaves files that a purge sweeps. A
run from the start is a fresh plan, so that is what a retry does; "re-execute from failure" commits what was staged, or
is told that the plan is stale.

Java starts while the plan is made, if logs are named. If nothing is to be done after all, it is ended.

What one op hands the next is kept by a resource of its own (``resources/passes.py``): a project's IO manager may know
tables only, and Dagster's own deletes nothing.
"""

import dagster as dg
from pydantic import Field

from keptlog.dagster.assets.attempts import begin_attempts
from keptlog.dagster.assets.checks import as_evaluation, check_results
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.assets.report import (
    erasures_after,
    fail_if_any_failed,
    look_after,
    names_to_check,
    observe_after,
    report_numbers,
    run_id_of,
    wrong_among,
)
from keptlog.dagster.resources.passes import IS_LAST
from keptlog.log.plan import describe_step
from keptlog.log.steps import Compact, Expire
from keptlog.log.words.counted import counted
from keptlog.log.words.named import named
from keptlog.passes.clean import Pass

LONGEST_CLEAN_SECONDS = 86_400
"""What cleans for longer has died, though nobody has told: its place in the pool is another's then."""
PASSES = "passes"
"""The resource that keeps what one op hands the next."""


class PlanConfig(dg.Config):
    """Which logs to clean."""

    logs: list[str] = Field(
        default=[], description="Topics and topic-partitions to clean, such as orders or orders-0; all if empty."
    )
    requested: bool = Field(
        default=False, description="Clean whatever is cleanable, without asking the dirty ratio or the lag."
    )


class CommitConfig(dg.Config):
    """What happens after the commit."""

    verify: bool = Field(
        default=True, description="Read keys and offsets of the cleaned logs back and evaluate the asset checks."
    )


def clean_job(mount: Mount) -> dg.JobDefinition:
    """``clean_logs`` of a home."""
    handed_on = dg.Out(io_manager_key=mount.name(PASSES))

    @dg.op(
        name=mount.name("plan"),
        out=handed_on,
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
        description="Judge the logs and decide what to do with each; changes nothing.",
    )
    def plan(context: dg.OpExecutionContext, config: PlanConfig) -> Pass:
        return _plan(MountCall(mount, context), config)

    @dg.op(
        name=mount.name("compact"),
        out=handed_on,
        pool=mount.pool,
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
        description="Rewrite the dirty logs on Spark: superseded records go, tombstones are stamped.",
    )
    def compact(context: dg.OpExecutionContext, planned: Pass) -> Pass:
        return _stage(MountCall(mount, context), planned, Compact)

    @dg.op(
        name=mount.name("expire_tombstones"),
        out=handed_on,
        pool=mount.pool,
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
        description="Rewrite clean logs whose tombstones are past their delete horizon.",
    )
    def expire_tombstones(context: dg.OpExecutionContext, compacted: Pass) -> Pass:
        return _stage(MountCall(mount, context), compacted, Expire)

    @dg.op(
        name=mount.name("commit"),
        out=dg.Out(io_manager_key=mount.name(PASSES), metadata={IS_LAST: True}),
        required_resource_keys=mount.needs("log_store", "clock"),
        description="Make what was rewritten live, one commit a topic; report it; fail if a log was not cleaned.",
    )
    def commit(context: dg.OpExecutionContext, config: CommitConfig, staged: Pass) -> Pass:
        return _commit(MountCall(mount, context), config, staged)

    @dg.job(
        name=mount.name(CLEAN_JOB),
        executor_def=dg.in_process_executor,
        description="Clean logs: those that are named, or all that are due.",
        tags={"dagster/retry_strategy": "ALL_STEPS", dg.MAX_RUNTIME_SECONDS_TAG: str(LONGEST_CLEAN_SECONDS)},
    )
    def clean_logs() -> None:
        planned = plan.alias("plan")()
        commit.alias("commit")(expire_tombstones.alias("expire_tombstones")(compact.alias("compact")(planned)))

    return clean_logs


def _plan(run: Run, config: PlanConfig) -> Pass:
    context, now_ms = run.context, run.now_ms()
    with telling_outages(context, now_ms, run.log_store), run.java_ahead(config.logs) as ahead:
        cleaner = run.log_store.cleaner()
        planned = cleaner.begin(config.logs, run_id_of(context), now_ms=now_ms, requested=config.requested)
        if planned.plan.steps:
            ahead.keep()
    begin_attempts(run, {step.topic_partition: step.topic_id for step in planned.plan.steps})
    for step in planned.plan.steps:
        context.log.info(describe_step(step))
    for name, reason in planned.plan.left_alone.items():
        context.log.info("%s left alone: %s", name, reason)
    for name, error in planned.failed.items():
        context.log.error("%s", named(name, error))
    return planned


def _stage(run: Run, planned: Pass, kind: type[Compact] | type[Expire]) -> Pass:
    with telling_outages(run.context, run.now_ms(), run.log_store):
        return run.log_store.cleaner(run.spark).stage(_as_of_now(run, planned), [kind], run.context.log.info)


def _commit(run: Run, config: CommitConfig, staged: Pass) -> Pass:
    context = run.context
    with telling_outages(context, run.now_ms(), run.log_store):
        committed = run.log_store.cleaner().commit(_as_of_now(run, staged))
    cleaned, after = observe_after(run, committed, names_to_check(committed))
    findings = look_after(run, cleaned, after) if config.verify else []
    for looked in findings:
        for result in check_results(run, looked):
            context.log_event(as_evaluation(result))  # type: ignore[arg-type]  # it takes them, undeclared
    report_numbers(run, cleaned, after)
    erasures_after(run, after, run.now_ms())
    names = [str(step.topic_partition) for step in cleaned.plan.steps]
    fail_if_any_failed(run, cleaned, names, wrong_among(findings))
    context.log.info("%s cleaned, %d left alone", counted(len(cleaned.committed), "log"), len(cleaned.plan.left_alone))
    return cleaned


def _as_of_now(run: Run, before: Pass) -> Pass:
    """What the op before has handed on. "Re-execute from failure" hands on what another run has made, days ago even."""
    return before if before.run_id == run_id_of(run.context) else before.taken_up(run.now_ms())
