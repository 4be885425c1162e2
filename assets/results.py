"""What a run of a clean section gives to Dagster where nothing has failed: a materialization of each topic-partition.

Also of one that had nothing to be cleaned, because it was looked at, and is what it should be: else it would stay grey
in the Partitions tab, a backfill would wait for it, and what is downstream in the same run would be skipped.

Dagster makes these events itself, one for each partition key of the run, and is handed what each says. Of a pass that
has failed in part, what has landed is told event by event instead (``report_numbers``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg

from keptlog.dagster.assets.mount import MountCall
from keptlog.dagster.assets.numbers import Metadata, first_materialization, materializations
from keptlog.log.metrics import metrics_by_log
from keptlog.passes.clean import Pass
from keptlog.passes.observer import Overview


def results(
    run: MountCall[dg.AssetExecutionContext], cleaned: Pass, after: Overview, names: Sequence[str]
) -> Iterator[dg.MaterializeResult[None]]:
    """The result of a pass over the topic-partitions ``names``; ``after`` are their logs as the pass left them."""
    said = {name: _nothing_done(run, cleaned, after, name) for name in names}
    now_ms = cleaned.plan.now_ms + cleaned.duration_ms
    metrics = metrics_by_log(after.assessments, after.last_passes, after.erasures, now_ms)
    done: dict[str, dg.AssetMaterialization] = {}
    for event in materializations(run.keys, cleaned, after, metrics):
        name = event.partition or ""
        if name in done:
            run.context.log_event(done[name])
        done[name] = event
    said |= {name: {**event.metadata, "done": event.description or ""} for name, event in done.items()}
    for name, metadata in said.items():
        run.context.add_asset_metadata(metadata, partition_key=name)
    yield dg.MaterializeResult()


def _nothing_done(run: MountCall[dg.AssetExecutionContext], cleaned: Pass, after: Overview, name: str) -> Metadata:
    why: Metadata = {"done": cleaned.plan.left_alone.get(name, "nothing had to be changed")}
    for each in after.assessments:
        if str(each.log.topic_partition) == name:
            rows = after.record_counts[each.log.topic_partition.topic]
            return {**first_materialization(run.keys, each, rows).metadata, **why}
    return why
