"""Tells Dagster what a pass did: numbers, checks, and a run that fails when a clean did not land.

The job and the asset report alike; they differ only in how check results leave them. The run fails last, after all that
landed has been told, and names every log that failed: others of the same run are cleaned all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import dagster as dg

from keptlog.dagster.assets.checks import check_results
from keptlog.dagster.assets.numbers import materializations
from keptlog.dagster.assets.outage import FAILED_TAG, Context, tag_outage
from keptlog.log.metrics import metrics_by_log
from keptlog.log.segment import Log
from keptlog.passes.clean import Pass
from keptlog.passes.observer import Overview, observe
from keptlog.table.store import LogStore


def run_id_of(context: Context) -> str:
    """The run id under which a pass commits: Dagster's, so that files and snapshots lead back to the run.

    A step that Dagster tries again makes a new plan, which must not be taken for the old one; hence the number.
    """
    return f"{context.run.run_id}-{context.retry_number}"


def observe_after(store: LogStore, cleaned: Pass, names: Sequence[str]) -> tuple[Pass, Overview]:
    """The logs ``names`` as the pass left them; one that can't be read any more counts as failed."""
    if not names:
        return cleaned, Overview(cleaned.plan.now_ms)
    after = observe(store, names, now_ms=cleaned.plan.now_ms)
    return replace(cleaned, failed=cleaned.failed | dict(after.unreadable)), after


def cleaned_names(cleaned: Pass) -> list[str]:
    """The topic-partitions whose clean has landed."""
    return [str(outcome.step.topic_partition) for outcome in cleaned.committed]


def report_numbers(context: Context, cleaned: Pass, after: Overview) -> None:
    """Log the materializations of a pass; ``after`` are the logs as the pass left them."""
    metrics = metrics_by_log(after.assessments, after.last_passes, cleaned.plan.now_ms + cleaned.duration_ms)
    by_name = {str(each.log.topic_partition): each for each in after.assessments}
    for materialization in materializations(cleaned, by_name, metrics):
        context.log_event(materialization)


def checks_after(store: LogStore, cleaned: Pass, after: Overview) -> Iterator[tuple[str, dg.AssetCheckResult]]:
    """Read the logs ``after`` back and check them: for each topic that the pass touched, each check's result."""
    topics = store.topics()
    logs: dict[str, list[Log]] = defaultdict(list)
    for log in after.logs:
        logs[log.topic_partition.topic].append(log)
    failed: dict[str, dict[str, str]] = defaultdict(dict)
    for name, error in cleaned.failed.items():
        failed[_topic_of(name, topics)][name] = str(error)
    for topic in sorted({*logs, *failed}):
        for result in check_results(store, topic, logs[topic], cleaned.plan.now_ms, failed[topic]):
            yield topic, result


def fail_if_any_failed(context: Context, cleaned: Pass) -> None:
    """End the run as failed if a log was not cleaned, so that it is seen and tried again.

    Raises:
        Failure: naming each log and its reason.
    """
    if not cleaned.failed:
        return
    names = sorted(cleaned.failed)
    context.instance.add_run_tags(context.run.run_id, {FAILED_TAG: ",".join(names)})
    if cleaned.outage:
        tag_outage(context, cleaned.outage, cleaned.plan.now_ms + cleaned.duration_ms)
    raise dg.Failure(
        f"{len(names)} not cleaned, {len(cleaned.committed)} cleaned: "
        + "; ".join(f"{name}: {cleaned.failed[name]}" for name in names),
        metadata={name: str(cleaned.failed[name]) for name in names},
        allow_retries=False,
    )


def _topic_of(name: str, topics: Collection[str]) -> str:
    """The topic of a topic-partition, or the name itself where it stands for a topic."""
    topic, _, _ = name.rpartition("-")
    return topic if topic in topics else name
