"""Shows again what was failed before a run that somebody has ended, or deleted, or that only planned.

Dagster shows what it has heard last. A run by hand is planned when it is made: its topic-partitions, and its checks. So
is what a clean is about to do. If such a run is ended, Dagster goes back to the materialization before, and shows the
checks as skipped. But a log that could not be cleaned still can't be, and one that was found broken still is.

It goes by what Dagster shows, and not by runs: which run hides something is not known when that run ends, as another
may be deleted later. The sections that an ended run has planned are looked at once it has ended, and all in turn.

So is told what was cleaned and is shown as failed all the same: by a run that lost a race for example, and failed only
after the winner's clean was seen.

Of a failed run that was deleted Dagster keeps no plan. Then there is none that could be the last again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.attempts import fail_again, failed_before, last_attempts
from keptlog.dagster.assets.checks import bring_back, broken_before
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration.still_told import in_turn
from keptlog.dagster.orchestration.untold_cleans import Told, seen_since, untold_cleans
from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment
from keptlog.log.words.counted import some_of
from keptlog.passes.observer import Overview

_SHARED_MS = 60_000
"""What another sensor has seen in this time needs no look of its own."""
_TOLD = 5
_BROUGHT_NOTHING = [dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.SUCCESS]
"""How a run has ended that had planned a log, told nothing of it since, and has not failed: of both alike.

The op ``plan`` can be run alone, and succeeds.
"""


@dataclass
class _Asked:
    """Of one mount, when each section was last asked for what had been cleaned, and for what is to be failed again.

    A tick may have no room left for the one, and has it for the other.
    """

    cleaned_ms: dict[dg.AssetKey, int] = field(default_factory=dict)
    failed_ms: dict[dg.AssetKey, int] = field(default_factory=dict)


def show_in_turn(tick: Tick, most: int) -> list[str]:
    """Let a few sections of the home be shown as they are: failed again, or no more; gives what was shown.

    Of cleans at most so many are told. The section at which that ends has its turn again in the next tick.
    """
    now_ms, left, shown = tick.now_ms(), most, list[str]()
    # A home that can't be looked at is told by the sensors that look at each tick. No run has died because of it.
    with suppress(KeptlogError):
        seen = seen_since(tick, now_ms - _SHARED_MS)
        asked = tick.log_store.remembered(_Asked, lambda _: _Asked(), tick.mount.name_prefix)
        topics = {tick.keys.clean(topic): topic for topic in seen.locations}
        told: Told = {}
        for key in _in_turn(tick, asked.cleaned_ms, seen, now_ms) if left else ():
            cleaned = _tell_cleaned(tick, seen, topics[key], left, told)
            left -= len(cleaned)
            if cleaned:
                shown.append(f"{some_of(cleaned, _TOLD)} had been cleaned, and is not shown as failed any more")
            if not left:
                break  # The turn of a section is noted once the next one is asked for.
        for key in _in_turn(tick, asked.failed_ms, seen, now_ms):
            shown += show_failed_again(tick, [key], seen)
    return shown


def _tell_cleaned(tick: Tick, seen: Overview, topic: str, most: int, told: Told) -> list[str]:
    """Tell of cleans of a topic that have landed, and of which Dagster takes the logs for failed; gives their names."""
    events = untold_cleans(tick, seen, [topic], most, told)
    for event in events:
        tick.context.instance.report_runless_asset_event(event)
    return [event.partition or "" for event in events]


def _in_turn(tick: Tick, at_ms: dict[dg.AssetKey, int], seen: Overview, now_ms: int) -> Iterator[dg.AssetKey]:
    """The sections whose turn it is. Those that are known to be wrong have places of their own.

    Of a thousand topics few are, and a turn of all of them takes more than an hour.
    """
    topics = {each.log.topic_partition.topic for each in seen.assessments if each.log.uncleanable}
    wrong = {tick.keys.clean(topic) for topic in topics}
    others = [key for key in map(tick.keys.clean, seen.locations) if key not in wrong]
    yield from in_turn(at_ms, sorted(wrong), now_ms)
    yield from in_turn(at_ms, others, now_ms)


def show_failed_again(tick: Tick, sections: Collection[dg.AssetKey], seen: Overview) -> list[str]:
    """Let the logs be failed again whose last attempt brought nothing, and that are not as they should be; so checks.

    Gives which logs of these clean sections that were, for people. Told twice it changes nothing.
    """
    instance, logs = tick.context.instance, defaultdict[dg.AssetKey, list[Assessment]](list)
    for each in seen.assessments:
        logs[tick.keys.clean(each.log.topic_partition.topic)].append(each)
    shown = []
    for key in sections:
        bring_back(instance, key, logs[key][0].log.topic_id if logs[key] else None)
        ended = last_attempts(instance, key, _BROUGHT_NOTHING)
        wrong = _wrong(tick, [each for each in logs[key] if str(each.log.topic_partition) in ended])
        for plan in failed_before(instance, key, wrong):
            fail_again(instance, key, plan)
            shown.append(plan.name)
    told = f"{some_of(shown, _TOLD)} had failed before a run that brought nothing, and is shown as failed again"
    return [told] if shown else []


def _wrong(tick: Tick, logs: Collection[Assessment]) -> dict[str, str | None]:
    """Those of one topic that are uncleanable, or were last found broken; each with its topic's id."""
    found: dict[str, str | None] = {}
    for topic, topic_id in {(each.log.topic_partition.topic, each.log.topic_id) for each in logs}:
        broken = broken_before(tick, topic, topic_id)
        for each in logs:
            name = each.log.topic_partition
            if each.log.uncleanable or name.partition in broken:
                found[str(name)] = topic_id
    return found
