"""Tells Dagster of cleans that have landed in a run that died before it could tell them.

Such a log was said to be about to be cleaned, and by a run that has failed. So it is shown as failed, although nothing
is wrong with it, until it is cleaned again: a log that nobody appends to, for ever. What is downstream hears nothing of
the clean either. A run that is started again does not help: it finds nothing left to be done.

That a clean has landed is seen in the topic: it was cleaned since the run began, and has no mark. A log that was found
broken stays as it is, because nobody has read this one back.
"""

from __future__ import annotations

import dagster as dg

from keptlog.dagster.assets.checks import broken_before
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.numbers import unchanged_materialization
from keptlog.dagster.assets.outlook import outlook_of
from keptlog.log.assessment import Assessment
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.observer import Overview


def tell_untold_cleans(tick: Tick, record: dg.RunRecord) -> list[str]:
    """Tell what has landed since a run began that died, if Dagster has heard nothing since; gives the logs' names.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    run_id = record.dagster_run.run_id
    planned = _planned(tick.context.instance, run_id)
    if record.start_time is None or not planned:
        return []
    seen = _seen_since(tick, record)
    began_ms = round(record.start_time * 1000)
    landed = [each for each in seen.assessments if _is_of(planned, tick, each) and _has_landed(each, seen, began_ms)]
    untold = _last_heard_of(tick, landed, run_id)
    for each in untold:
        topic = [one for one in seen.assessments if one.log.topic_partition.topic == each.log.topic_partition.topic]
        why = f"it was cleaned, and run {run_id} died before it could tell; it was not read back"
        event = unchanged_materialization(tick.keys, each, why, outlook_of(tick, topic, seen.now_ms))
        tick.context.instance.report_runless_asset_event(event)
    return [str(each.log.topic_partition) for each in untold]


def _seen_since(tick: Tick, record: dg.RunRecord) -> Overview:
    """A look from after the run: however many have died, a tick waits once for what does not answer."""
    ended_ms, now_ms = round(1000 * (record.end_time or record.update_timestamp.timestamp())), tick.now_ms()
    last = tick.log_store.observer.last
    return last if last is not None and ended_ms <= last.now_ms <= now_ms else tick.log_store.observer.look(now_ms)


def _planned(instance: dg.DagsterInstance, run_id: str) -> set[tuple[dg.AssetKey, str]]:
    """What a run has said that it is about to clean."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    events = [each.dagster_event for each in entries if each.dagster_event]
    return {(each.asset_key, each.partition) for each in events if each.asset_key and each.partition}


def _is_of(planned: set[tuple[dg.AssetKey, str]], tick: Tick, each: Assessment) -> bool:
    name = each.log.topic_partition
    return (tick.keys.clean(name.topic), str(name)) in planned


def _has_landed(each: Assessment, seen: Overview, began_ms: int) -> bool:
    last = seen.last_passes.get(each.log.topic_partition)
    return last is not None and began_ms <= last.ended_ms and not each.log.uncleanable


def _last_heard_of(tick: Tick, logs: list[Assessment], run_id: str) -> list[Assessment]:
    """Those of which this run is the last that Dagster has heard, and that were not found broken."""
    storage, left = tick.context.instance.event_log_storage, set[TopicPartition]()
    for topic in {each.log.topic_partition.topic for each in logs}:
        attempts = storage.get_latest_asset_partition_materialization_attempts_without_materializations(
            tick.keys.clean(topic)
        )
        names = [TopicPartition.parse(name) for name, (last_run, _) in attempts.items() if last_run == run_id]
        broken = broken_before(tick, topic) if names else set()
        left |= {name for name in names if name.partition not in broken}
    return [each for each in logs if each.log.topic_partition in left]
