"""The job that retains: removes old segments, and needs no Spark."""

from collections.abc import Mapping

import dagster as dg
from pydantic import Field

from keptlog.dagster.assets.ingest_report import by_reason
from keptlog.dagster.assets.long_tags import as_tags
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.numbers import retention_observation
from keptlog.dagster.assets.outage import FAILED_TAG, outage_among, tag_outage, tell_in_tags, telling_outages
from keptlog.dagster.assets.report import fail_if_any, run_id_of
from keptlog.dagster.orchestration.in_flight import UNDER_WAY, begun_and_queued
from keptlog.dagster.orchestration.own_runs import RETENTION_JOB_NAME, OwnRuns
from keptlog.log.plan import describe_step
from keptlog.log.words.counted import first_lines
from keptlog.passes.names import named_logs
from keptlog.passes.retain import BEING_CLEANED

_LEFT_ALONE = 50
"""Lines: most logs share a reason, but each topic without stored settings has the command that settles it."""


class RetentionConfig(dg.Config):
    """Which logs to retain."""

    logs: list[str] = Field(
        default=[], description="Topics and topic-partitions to retain, such as orders or orders-0; all if empty."
    )


def retention_job(mount: Mount) -> dg.JobDefinition:
    """``retention`` of a home."""

    @dg.op(
        name=mount.name("remove_old_segments"),
        required_resource_keys=mount.needs("log_store", "clock"),
        description="Remove old segments by log start, retention.bytes and retention.ms, one commit a topic.",
    )
    def remove_old_segments(context: dg.OpExecutionContext, config: RetentionConfig) -> None:
        _retain(MountCall(mount, context), config)

    @dg.job(
        name=mount.name(RETENTION_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Remove old segments by retention.ms, retention.bytes and log start. Needs no Spark.",
    )
    def retention() -> None:
        remove_old_segments.alias("remove_old_segments")()

    return retention


def _retain(run: Run, config: RetentionConfig) -> None:
    context, log_store = run.context, run.log_store
    own = OwnRuns.of_run(run)
    cleaning, _ = begun_and_queued(own, own.records(*UNDER_WAY))
    run_id, now_ms = run_id_of(context), run.now_ms()
    with telling_outages(context, now_ms, log_store):
        named = named_logs(log_store.store, config.logs)
        result = log_store.retainer.retain(named, run_id, now_ms=now_ms, is_clean_under_way=cleaning.includes)
    for step in result.committed:
        context.log.info(describe_step(step))
        context.log_event(retention_observation(run.keys, step))
    for line in _left_alone_lines(result.plan.left_alone):
        context.log.info("%s", line)
    if outage := outage_among(result.failed, is_any_done=bool(result.committed)):
        tag_outage(context, outage, now_ms)
    if result.failed:
        tell_in_tags(context.instance, context.run.run_id, as_tags(FAILED_TAG, ",".join(sorted(result.failed))))
    fail_if_any(result.failed, "not retained")


def _left_alone_lines(left_alone: Mapping[str, str]) -> list[str]:
    """A line for each reason, first what would have gone but for a clean: it must not be among those not told."""
    in_order = dict(sorted(left_alone.items(), key=lambda item: item[1] != BEING_CLEANED))
    return first_lines([f"left alone: {line}" for line in by_reason(in_order)], _LEFT_ALONE)
