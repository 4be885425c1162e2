"""What backfills that are under way still need of the asset graph.

Dagster fails a backfill once an asset of it, or a partition, is gone from the graph, and ends all of its runs that
wait: those of other topics too. So a topic that was dropped, or can't be read any more, is shown as it was until no
backfill needs it. Its own run fails, and says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from dagster_shared.check import CheckError
from dagster_shared.serdes.errors import DeserializationError

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration.seen import Seen
from keptlog.errors import first_line

_UNREADABLE = (DeserializationError, CheckError, LookupError, TypeError, ValueError)
"""What Dagster raises for a stored text that it can't make a backfill of; not for a database that is away."""


def with_needed(tick: Tick, now: Seen, before: Seen) -> tuple[Seen, dict[str, str]]:
    """What is to be shown ``now``, and by topic the backfill for which it is shown as it was ``before``."""
    lost = _lost(now, before)
    needed_by = _backfills_of(tick, lost) if lost else {}
    if not needed_by:
        return now, {}
    others = [topic for topic in now.topics if topic.name not in needed_by]
    topics = sorted([*others, *(lost[name] for name in needed_by)], key=lambda topic: topic.name)
    unreadable = {name: why for name, why in now.unreadable.items() if name not in needed_by}
    return replace(now, topics=tuple(topics), unreadable=unreadable), needed_by


def _lost(now: Seen, before: Seen) -> dict[str, AssetTopic]:
    """Topics that were shown with partitions that are not there now."""
    partitions = {topic.name: topic.partitions for topic in now.topics}
    return {topic.name: topic for topic in before.topics if partitions.get(topic.name, 0) < topic.partitions}


def _backfills_of(tick: Tick, topics: Mapping[str, AssetTopic]) -> dict[str, str]:
    """By topic a backfill under way that makes a section of it; who ends one, or what fails, needs nothing more."""
    sections = (tick.keys.clean, tick.keys.dirty)
    keys: dict[dg.AssetKey, str] = {key_of(topic): topic for topic in topics for key_of in sections}
    found: dict[str, str] = {}
    for each in _under_way(tick):
        found |= {keys[key]: each.backfill_id for key in each.asset_selection or () if key in keys}
    return found


def _under_way(tick: Tick) -> Sequence[PartitionBackfill]:
    """Backfills that are not over. One that can't be read hides all, as a rule from Dagster's daemon too."""
    try:
        return tick.context.instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED]))
    except _UNREADABLE as error:
        why = f"{type(error).__name__}: {first_line(error)}"
        tick.context.log.warning("no topic is kept for a backfill, because Dagster can't read a stored one: %s", why)
        return []
