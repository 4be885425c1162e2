"""Tells Dagster of topic-partitions that are as clean as they can be, and that it has never heard of.

A clean tells Dagster what it made. A log in which nothing was ever to be cleaned, because it is empty or because all of
it is too young, would so stay missing for ever: grey in the Partitions tab, and whatever waits for all of a topic, such
as ``AutomationCondition.eager()`` downstream, would never begin. So once such a log has been looked at, that is a
materialization of its clean section, which holds what it holds.

Dagster alone knows what it was told: it is asked once for each topic in a process, a few topics a tick. What is due, is
being cleaned, or has failed, is left to its clean. What was to be cleaned by a run that was cancelled is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.numbers import Metadata, unchanged_materialization
from keptlog.dagster.assets.outlook import outlook_of
from keptlog.dagster.orchestration.in_flight import UNDER_WAY
from keptlog.log.assessment import Assessment
from keptlog.passes.observer import Overview

ASKED_PER_TICK = 20
"""Topics; two queries of Dagster's database each, or three."""


@dataclass
class _Known:
    """What this process knows of what Dagster was told."""

    told: dict[dg.AssetKey, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The topic-partitions of a clean section of which there is a materialization."""
    asked_at: dict[dg.AssetKey, int] = field(default_factory=lambda: defaultdict(int))
    """In which tick Dagster was asked about it; those that it was not asked about for longest come first."""
    ticks: int = 0


def first_looks(tick: Tick, seen: Overview, most: int) -> list[dg.AssetMaterialization]:
    """Materializations, at most so many, of clean sections of which Dagster was never told."""
    known = tick.log_store.remembered(_Known, lambda _: _Known())
    known.ticks += 1
    untold = {key: left for key, logs in _as_clean_as_can_be(tick, seen) if (left := _without(logs, known.told[key]))}
    found: list[dg.AssetMaterialization] = []
    for key in sorted(untold, key=lambda key: known.asked_at[key])[:ASKED_PER_TICK]:
        known.asked_at[key] = known.ticks
        instance = tick.context.instance
        known.told[key] |= instance.event_log_storage.get_materialized_partitions(key)
        tried = last_attempts(instance, key, [*UNDER_WAY, dg.DagsterRunStatus.FAILURE])
        left = _without(untold[key], known.told[key] | tried)
        of_topic = _of_topic(tick, seen, left[0].log.topic_partition.topic) if left else {}
        for each in left:
            if len(found) == most:
                return found
            why = "nothing of the log is to be cleaned yet" if each.log.segments else "the log is empty"
            found.append(unchanged_materialization(tick.keys, each, why, of_topic))
    return found


def _of_topic(tick: Tick, seen: Overview, topic: str) -> Metadata:
    logs = [each for each in seen.assessments if each.log.topic_partition.topic == topic]
    return outlook_of(tick, logs, seen.now_ms)


def _as_clean_as_can_be(tick: Tick, seen: Overview) -> Iterator[tuple[dg.AssetKey, list[Assessment]]]:
    """By clean section the logs that no clean is due for."""
    logs: dict[str, list[Assessment]] = defaultdict(list)
    for each in seen.assessments:
        if not each.trigger and not each.log.uncleanable:
            logs[each.log.topic_partition.topic].append(each)
    for topic, theirs in logs.items():
        yield tick.keys.clean(topic), theirs


def _without(logs: Sequence[Assessment], told: set[str]) -> list[Assessment]:
    return [each for each in logs if str(each.log.topic_partition) not in told]
