"""What backfills that are under way still need of the asset graph.

Dagster fails a backfill once an asset of it, or a partition, is gone from the graph, and ends all of its runs that
wait: those of other topics too. So a topic that was dropped, or can't be read any more, is shown as it was until no
backfill needs it. Its own run fails, and says why. Dagster can't tell of any backfill while it can't read one that is
stored: any may need what is gone, so all of it is shown meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster_shared.check import CheckError
from dagster_shared.serdes.errors import DeserializationError

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration.seen import Seen
from keptlog.errors import first_line
from keptlog.log.words.counted import counted

_UNREADABLE = (DeserializationError, CheckError, LookupError, TypeError, ValueError)
"""What Dagster raises for a stored text that it can't make a backfill of; not for a database that is away."""


def with_needed(tick: Tick, now: Seen, before: Seen) -> tuple[Seen, dict[str, str]]:
    """What is to be shown ``now``; and by topic, in words, how it is shown that was lost, and how long or why.

    One that was made anew keeps what the graph is made of, and is described as it is now.
    """
    there = {topic.name: topic for topic in now.topics}
    lost = _lost(there, before)
    needed = _needed(tick, lost) if lost else {}
    if not needed:
        return now, {}
    others = [topic for topic in now.topics if topic.name not in needed]
    topics = sorted([*others, *(lost[name] for name in needed)], key=lambda topic: topic.name)
    unreadable = {name: why for name, why in now.unreadable.items() if name not in needed}
    how = {name: f"with {counted(lost[name].partitions, 'partition')}, as before," for name in needed if name in there}
    told = {name: f"{how.get(name, 'as it was')} {why}" for name, why in needed.items()}
    return replace(now, topics=tuple(topics), unreadable=unreadable), told


def _lost(there: Mapping[str, AssetTopic], before: Seen) -> dict[str, AssetTopic]:
    """Topics that were shown with partitions that are not there now, as they are to be shown if they are needed."""
    lost: dict[str, AssetTopic] = {}
    for old in before.topics:
        new = there.get(old.name)
        if new is None:
            lost[old.name] = old
        elif new.partitions < old.partitions:
            lost[old.name] = replace(new, partitions=old.partitions, source=old.source)
    return lost


def _needed(tick: Tick, lost: Mapping[str, AssetTopic]) -> dict[str, str]:
    """Those that a backfill under way makes a section of; who ends one, or what fails, needs nothing more."""
    try:
        under_way = tick.context.instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED]))
    except _UNREADABLE as error:
        why = f"because Dagster can't read a stored backfill: {type(error).__name__}: {first_line(error)}"
        return dict.fromkeys(lost, why)
    sections = (tick.keys.clean, tick.keys.dirty)
    keys: dict[dg.AssetKey, str] = {key_of(topic): topic for topic in lost for key_of in sections}
    found: dict[str, str] = {}
    for each in under_way:
        until = f"until backfill {each.backfill_id} has ended"
        found |= {keys[key]: until for key in each.asset_selection or () if key in keys}
    return found
