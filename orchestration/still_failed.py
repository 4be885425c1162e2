"""Shows again what was failed before a run that somebody has ended.

Dagster shows what it has heard last. A run by hand is planned when it is made: its topic-partitions, and its checks. So
is what a clean is about to do. If such a run is ended, Dagster goes back to the materialization before, and shows the
checks as skipped. But a log that could not be cleaned still can't be, and one that was found broken still is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import dagster as dg

from keptlog.dagster.assets.attempts import ended_attempts, fail_again, failed_before
from keptlog.dagster.assets.checks import bring_back, broken_before
from keptlog.dagster.assets.mount import Tick
from keptlog.log.assessment import Assessment
from keptlog.passes.observer import Overview


def show_failed_again(tick: Tick, run: dg.DagsterRun, planned: Collection[dg.AssetKey], seen: Overview) -> list[str]:
    """Let the logs be failed again that a run has planned that was ended, and that are not as they should be.

    Gives their names. ``planned`` are the clean sections of which it has planned some. Told twice it changes nothing.
    """
    instance, logs = tick.context.instance, defaultdict[dg.AssetKey, list[Assessment]](list)
    for each in seen.assessments:
        logs[tick.keys.clean(each.log.topic_partition.topic)].append(each)
    shown = []
    for key in planned:
        bring_back(instance, key, run.run_id)
        ended = ended_attempts(instance, key, run.run_id)
        wrong = _wrong(tick, [each for each in logs[key] if str(each.log.topic_partition) in ended])
        for plan in failed_before(instance, key, wrong):
            fail_again(instance, key, plan)
            shown.append(plan.name)
    return shown


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
