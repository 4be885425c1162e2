"""Tells Dagster of topic-partitions that are as clean as they can be, and that it has never heard of.

A clean tells Dagster what it made. A log in which nothing was ever to be cleaned, because it is empty or because all of
it is too young, would so stay missing for ever: grey in the Partitions tab, and whatever waits for all of a topic, such
as ``AutomationCondition.eager()`` downstream, would never begin. So once such a log has been looked at, that is a
materialization of its clean section, which holds what it holds.

A topic may have been deleted, and another one of the same name made. What Dagster was told of the old one, it shows as
that of the new one, with its numbers, with checks that passed, and as failed. So such a log counts as one of which
nothing was told. All that was told of the old topic was told before anything of the new one; so it is found by few
looks.

Dagster alone knows what it was told: it is asked for each topic of a mount in a process, a few topics a tick, and again
where it has lost something (``still_told``). What
is due, is being cleaned, or has failed, is left to its clean. What was to be cleaned by a run that was cancelled is
not. What was found broken stays missing until somebody has read it back: this look reads no record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.attempts import attempted_of
from keptlog.dagster.assets.checks import broken_before
from keptlog.dagster.assets.last_results import TOPIC_ID
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.numbers import Metadata, unchanged_materialization
from keptlog.dagster.assets.outlook import outlook_of
from keptlog.dagster.orchestration.in_flight import UNDER_WAY
from keptlog.dagster.orchestration.stored_ticks import behind
from keptlog.log.assessment import Assessment
from keptlog.passes.observer import Overview

ASKED_PER_TICK = 20
"""Topics; two queries of Dagster's database each, to nine; a few more of one that was made anew."""


_Section = tuple[dg.AssetKey, str | None]
"""A clean section, and the id of its topic: one of a later topic has the same key."""


@dataclass
class _Known:
    """What this process knows of what Dagster was told."""

    told: dict[_Section, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The topic-partitions of a clean section of which there is a materialization."""
    asked_at: dict[_Section, int] = field(default_factory=lambda: defaultdict(int))
    """In which tick Dagster was asked about it; those that it was not asked about for longest come first."""
    ticks: int = 0


def first_looks(tick: Tick, seen: Overview, most: int, turn: str) -> tuple[list[dg.AssetMaterialization], str]:
    """Materializations, at most so many, of clean sections that Dagster was never told of, and the last topic of those.

    A process that has asked about none of two topics begins behind ``turn``: the one before may have lived for two
    ticks, and then would ask about the same ones for ever.
    """
    known = tick.log_store.remembered(_Known, lambda _: _Known(), tick.mount.name_prefix)
    known.ticks += 1
    found_whole = _as_clean_as_can_be(tick, seen)
    untold = {each: left for each, logs in found_whole if (left := _without(logs, known.told[each]))}
    sections = {logs[0].log.topic_partition.topic: each for each, logs in untold.items()}
    in_turn = sorted((sections[topic] for topic in behind(turn, sections)), key=lambda each: known.asked_at[each])
    found: list[dg.AssetMaterialization] = []
    for section in in_turn[:ASKED_PER_TICK]:
        instance = tick.context.instance
        known.told[section] |= _told_of(instance, *section)
        tried = attempted_of(instance, section[0], [*UNDER_WAY, dg.DagsterRunStatus.FAILURE], section[1])
        left = _without(untold[section], known.told[section] | tried)
        topic = untold[section][0].log.topic_partition.topic
        broken = broken_before(tick, topic, section[1]) if left else set()
        of_topic = _of_topic(tick, seen, topic) if left else {}
        for each in left:
            if each.log.topic_partition.partition in broken:
                continue
            if len(found) == most:
                return found, turn  # The next tick goes on with the rest of this topic.
            why = "nothing of the log is to be cleaned now" if each.log.segments else "the log is empty"
            found.append(unchanged_materialization(tick.keys, each, why, of_topic))
        known.asked_at[section], turn = known.ticks, topic
    return found, turn


def ask_again(tick: Tick, stored: AbstractSet[dg.AssetKey]) -> None:
    """Forget what Dagster was told of others than these: somebody has wiped them, or its database is another one."""
    told = _told(tick)
    for section in [each for each in told if each[0] not in stored]:
        del told[section]


def told_sections(tick: Tick) -> set[dg.AssetKey]:
    """The clean sections of which Dagster was told something, as far as this process knows."""
    return {key for (key, _), names in _told(tick).items() if names}


def forget_lost(tick: Tick, left: Mapping[dg.AssetKey, AbstractSet[str]]) -> None:
    """Ask again about those of these sections of which Dagster has lost something; ``left`` is what it still has."""
    told = _told(tick)
    for section in [each for each in told if not told[each] <= left.get(each[0], told[each])]:
        del told[section]


def _told(tick: Tick) -> dict[_Section, set[str]]:
    return tick.log_store.remembered(_Known, lambda _: _Known(), tick.mount.name_prefix).told


def _told_of(instance: dg.DagsterInstance, key: dg.AssetKey, topic_id: str | None) -> set[str]:
    """The topic-partitions of which there is a materialization that is not of an earlier topic of the same name."""
    storage = instance.event_log_storage
    materialized = storage.get_materialized_partitions(key)
    if not materialized or topic_id is None:
        return materialized
    told = storage.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION)
    oldest_first = sorted(materialized & told.keys(), key=lambda name: told[name])
    # False comes before True, as 0 before 1.
    earlier = bisect_left(
        range(len(oldest_first)),
        1,
        key=lambda at: _is_of(instance, key, (told[name] for name in oldest_first[at:]), topic_id),
    )
    return set(oldest_first[earlier:])


def _is_of(instance: dg.DagsterInstance, key: dg.AssetKey, storage_ids: Iterable[int], topic_id: str) -> bool:
    """Whether the first of these materializations is of this topic, and so all of them are.

    One that does not say of which it is, is of an earlier topic if a later one is; else it is taken for one of this.
    """
    for storage_id in storage_ids:
        filters = dg.AssetRecordsFilter(asset_key=key, storage_ids=[storage_id])
        for record in instance.fetch_materializations(filters, limit=1).records:
            told = record.asset_materialization.metadata.get(TOPIC_ID) if record.asset_materialization else None
            if told is not None:
                return told.value == topic_id
    return True


def _of_topic(tick: Tick, seen: Overview, topic: str) -> Metadata:
    logs = [each for each in seen.assessments if each.log.topic_partition.topic == topic]
    return outlook_of(tick, logs, seen.now_ms)


def _as_clean_as_can_be(tick: Tick, seen: Overview) -> Iterator[tuple[_Section, list[Assessment]]]:
    """By clean section the logs that no clean is due for."""
    logs: dict[str, list[Assessment]] = defaultdict(list)
    for each in seen.assessments:
        if not each.trigger and not each.log.uncleanable:
            logs[each.log.topic_partition.topic].append(each)
    for topic, theirs in logs.items():
        yield (tick.keys.clean(topic), theirs[0].log.topic_id), theirs


def _without(logs: Sequence[Assessment], told: set[str]) -> list[Assessment]:
    return [each for each in logs if str(each.log.topic_partition) not in told]
