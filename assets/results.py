"""What a run of a clean section gives to Dagster where nothing has failed: a materialization of each topic-partition.

Also of one that had nothing to be cleaned, if it was looked at, and is what it should be: else it would stay grey in
the Partitions tab, a backfill would wait for it, and what is downstream in the same run would be skipped. One that is
not (``TopicFindings.wrong``) stays failed, or becomes so. So logs are checked first, and what was made is told after.

Dagster makes these events itself, one for each partition key of the run, and is handed what each says. What else the
pass has cleaned (``siblings``) is told event by event, and so is all that has landed where some of it has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.dagster.assets.checks import as_evaluation, bring_forward
from keptlog.dagster.assets.mount import AssetRun
from keptlog.dagster.assets.numbers import (
    DATA_VERSION_TAG,
    Metadata,
    materializations,
    unchanged_materialization,
    version_of_all,
)
from keptlog.dagster.assets.report import told_of_topics
from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.assessment import Assessment
from keptlog.log.told.metrics import metrics_by_log

if TYPE_CHECKING:
    from keptlog.passes.clean import Pass
    from keptlog.passes.observer import Overview


def results(
    run: AssetRun, cleaned: Pass, after: Overview, names: Collection[str], wrong: Collection[str]
) -> Iterator[dg.MaterializeResult[None]]:
    """The result of a pass for the topic-partitions ``names``; ``after`` are all its logs as the pass left them."""
    last, _ = _told(run, cleaned, after, wrong)
    versions: list[str] = []
    for name, event in last.items():
        if name in names:
            run.context.add_asset_metadata({**event.metadata, "done": event.description or ""}, partition_key=name)
            versions.append((event.tags or {}).get(DATA_VERSION_TAG, ""))
        else:
            run.context.log_event(event)
    yield dg.MaterializeResult(data_version=dg.DataVersion(version_of_all(versions)) if versions else None)


def tell_what_landed(
    run: AssetRun, cleaned: Pass, after: Overview, names: Collection[str], wrong: Collection[str]
) -> None:
    """The same as events, where one of ``names`` has failed; those that were left as they are end with the failure.

    Of those that are ``wrong``, not as they should be, only what has landed is told.
    """
    last, done = _told(run, cleaned, after, wrong)
    for name, event in last.items():
        if name in done or name not in names:
            run.context.log_event(event)


def own_checks(run: AssetRun, topic: str, results: Iterator[dg.AssetCheckResult]) -> Iterator[dg.AssetCheckResult]:
    """The results of one topic's checks; those of others are told as events, because this run does not yield them."""
    for result in results:
        if result.asset_key == run.keys.clean(topic):
            yield result
        else:
            run.context.log_event(as_evaluation(result))
        bring_forward(run, result)


def tell_checks(run: AssetRun, results: Iterable[dg.AssetCheckResult]) -> None:
    """The results of all checks in a run that fails.

    Dagster takes what a run yields for that of the last materialization of its partition. That makes none here, and if
    another partition has a later one, the page would show no result at all.
    """
    for result in results:
        run.context.log_event(as_evaluation(result))
        bring_forward(run, result)


def own_part(cleaned: Pass, topic: str, names: Collection[str]) -> Pass:
    """A pass as one topic sees it: what has failed of others is left to their own runs."""
    failed = {name: _gone(name, error) for name, error in cleaned.failed.items() if name == topic or name in names}
    return replace(cleaned, failed=failed, blameless=cleaned.blameless & failed.keys())


def _gone(name: str, error: KeptlogError) -> KeptlogError:
    """Dagster names no log that never was: one that is not there has gone."""
    if not isinstance(error, UnknownTopic):
        return error
    why = "its topic was deleted, or made anew with fewer partitions, since Dagster was shown it"
    return UnknownTopic(f"{name} is not there any more: {why}")


def _told(
    run: AssetRun, cleaned: Pass, after: Overview, wrong: Collection[str]
) -> tuple[dict[str, dg.AssetMaterialization], set[str]]:
    """Of each topic-partition that is whole or was cleaned the last that is to be told; and which were cleaned."""
    failed = {*cleaned.failed, *wrong}
    whole = [each for each in after.assessments if str(each.log.topic_partition) not in failed]
    now_ms = cleaned.plan.now_ms + cleaned.duration_ms
    of_topics = told_of_topics(run, after, now_ms)
    last = {str(each.log.topic_partition): _nothing_done(run, cleaned, each, of_topics) for each in whole}
    metrics = metrics_by_log(after.assessments, after.last_passes, after.erasures, now_ms)
    done: set[str] = set()
    for event in materializations(run.keys, cleaned, after, metrics, of_topics):
        name = event.partition or ""
        if name in done and name in last:
            run.context.log_event(last[name])
        done.add(name)
        last[name] = event
    return last, done


def _nothing_done(
    run: AssetRun, cleaned: Pass, each: Assessment, of_topics: Mapping[str, Metadata]
) -> dg.AssetMaterialization:
    name = each.log.topic_partition
    why = cleaned.plan.left_alone.get(str(name), "nothing had to be changed")
    return unchanged_materialization(run.keys, each, why, of_topics[name.topic])
