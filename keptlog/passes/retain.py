"""Retention, a pass of its own: old segments go from the head of a log, whatever their keys.

    named logs --plan--> which segments are too old, too many, or below the log start --commit--> gone, log start moved
                          data; changes nothing                                          one catalog commit a topic

Nothing is read or rewritten, so it needs no engine. A topic whose commit fails costs only its own logs, and a log that
changed since it was planned costs only itself. An uncleanable log is retained like any other. A compacted log that is
being cleaned waits: its clean would lose the race, and with it the work. No clean ever comes to another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError
from keptlog.log.broker import BrokerConfig
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.plan import Plan, RetentionPlan, make_retention_plan, why_off
from keptlog.log.segment import Log
from keptlog.log.steps import Retain
from keptlog.passes.judging import topics_apart
from keptlog.passes.landing import land_fresh
from keptlog.table.waiting.reaching import why_not_landed

if TYPE_CHECKING:
    from keptlog.passes.names import NamedLogs
    from keptlog.table.store import LogStore

BEING_CLEANED = "it is being cleaned, or may be; its old segments go after that"


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What a pass removed."""

    run_id: str
    plan: RetentionPlan
    committed: tuple[Retain, ...]
    failed: dict[str, KeptlogError]
    """Topic-partition, or name if its logs can't even be read, to the error; nothing of it went."""


def _nowhere(_: Log) -> bool:
    return False


def retention_plan(
    logs: Iterable[Log], broker: BrokerConfig, now_ms: int, is_clean_under_way: Callable[[Log], bool] = _nowhere
) -> RetentionPlan:
    """What would be removed from these logs; of a compacted one nothing where a clean is, or may be, at work on it now.

    One that only waits for its turn is none: it plans when it begins, and loses nothing.
    A topic with a log of which nobody can tell it is ``unplanned``, and is nothing to the others.
    """
    now_ms = passed_now_ms(now_ms)
    left_alone: dict[str, str] = {}
    retained: list[Log] = []
    for log in logs:
        if off := why_off(log, broker):
            left_alone[str(log.topic_partition)] = off
        else:
            retained.append(log)
    found, unplanned = topics_apart(retained, lambda of_topic: make_retention_plan(of_topic, now_ms))
    planned = [found[topic] for topic in sorted(found)]
    told = {name: why for plan in planned for name, why in plan.left_alone.items()}
    compacted = {log.topic_partition: log for log in retained if log.config.is_compacted}
    steps: list[Retain] = []
    for step in (step for plan in planned for step in plan.steps):
        may_clean = compacted.get(step.topic_partition)
        if may_clean and is_clean_under_way(may_clean):
            left_alone[str(step.topic_partition)] = BEING_CLEANED
        else:
            steps.append(step)
    return Plan(now_ms, tuple(steps), told | left_alone, unplanned)


@dataclass(frozen=True, slots=True)
class Retainer:
    """Removes old segments from the logs of one store."""

    store: LogStore
    broker: BrokerConfig = field(default_factory=BrokerConfig)

    def plan(
        self, logs: Iterable[Log], now_ms: int, *, is_clean_under_way: Callable[[Log], bool] = _nowhere
    ) -> RetentionPlan:
        """What would be removed from these logs, as ``retention_plan`` says."""
        return retention_plan(logs, self.broker, now_ms, is_clean_under_way)

    def retain(
        self, named: NamedLogs, run_id: str, *, now_ms: int, is_clean_under_way: Callable[[Log], bool] = _nowhere
    ) -> RetentionResult:
        """Remove old segments from these logs, as ``retention_plan`` says; what is unreadable has failed.

        Raises:
            InvalidConfig: the home is a copy, or was moved.
        """
        self.store.require_writable()
        plan = self.plan(named.logs, now_ms, is_clean_under_way=is_clean_under_way)
        by_topic: dict[str, list[Retain]] = defaultdict(list)
        for step in plan.steps:
            by_topic[step.topic_partition.topic].append(step)
        committed: list[Retain] = []
        failed = {**named.unreadable, **named.by_name(plan.unplanned)}
        for topic, steps in sorted(by_topic.items()):
            stale: dict[str, KeptlogError] = {}
            try:
                land_fresh(partial(self._commit, topic, run_id), steps, lambda step: step.topic_partition, stale)
                committed += steps
            except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
                failed |= {str(step.topic_partition): why_not_landed(topic, error) for step in steps}
            failed |= stale
        return RetentionResult(run_id, plan, tuple(committed), failed)

    def _commit(self, topic: str, run_id: str, steps: Sequence[Retain]) -> None:
        self.store.retain(topic, steps, run_id)
