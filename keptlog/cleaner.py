"""One cleaning pass: observe, plan, rewrite, verify, commit.

    store.logs() --assess--> plan --rewrite on Spark--> staged --verify--> commit --> live
                              |                            |                 |
                              data; changes nothing        invisible         one catalog commit a topic

``Cleaner`` holds the only place where the table and Spark meet. Each stage can be called by itself: the Dagster ops
call one each, the command line calls ``clean``, and both get the same numbers back. A pass may stop, or be killed,
after any stage: until the commit nothing is visible, after it everything is.

Two passes over one log at once are harmless: the first commit wins and the other one gets ``StalePlan``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.plan import Plan, Step, StepKind, make_plan
from keptlog.log.result import Rewritten, verify
from keptlog.log.segment import Log
from keptlog.log.selection import Assessment, assess
from keptlog.log.topic_partition import TopicPartition
from keptlog.spark.engine import SparkEngine
from keptlog.table.store import LogStore

Progress = Callable[[str], None]
"""Takes one line about what is being done now."""


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What a pass did: each step is either committed, had nothing to commit, or failed with the reason."""

    run_id: str
    plan: Plan
    committed: tuple[Rewritten, ...] = ()
    unchanged: tuple[Rewritten, ...] = ()
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic-partition to the error that kept its commit from landing; nothing of it is lost."""


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Cleans the logs of one store with one Spark engine."""

    store: LogStore
    engine: SparkEngine

    def plan(self, names: Iterable[str] = (), *, now_ms: int, requested: bool = False) -> Plan:
        """What a pass over these logs would do; changes nothing."""
        return make_plan(observe(self.store, names, now_ms=now_ms), now_ms, requested=requested)

    def rewrite(self, steps: Sequence[Step], run_id: str, progress: Progress | None = None) -> list[Rewritten]:
        """Run steps on Spark and verify each outcome; everything is staged, nothing visible. No steps, no session.

        Raises:
            InvariantViolated: an outcome would break a guarantee.
        """
        if not steps:
            return []
        locations = {topic: self.store.data_location(topic) for topic in {s.topic_partition.topic for s in steps}}
        outcomes = self.engine.rewrite(steps, locations, run_id, progress)
        for outcome in outcomes:
            verify(outcome)
        return outcomes

    def commit(self, plan: Plan, outcomes: Sequence[Rewritten], run_id: str) -> CleanResult:
        """Make the outcomes live, all logs of a topic in one commit. A topic that fails does not stop the others."""
        by_topic: dict[str, list[Rewritten]] = defaultdict(list)
        for outcome in outcomes:
            by_topic[outcome.step.topic_partition.topic].append(outcome)
        committed: list[Rewritten] = []
        failed: dict[str, KeptlogError] = {}
        for topic, of_topic in sorted(by_topic.items()):
            changed = [outcome for outcome in of_topic if not outcome.is_empty]
            try:
                if changed:
                    self.store.swap(topic, changed, run_id)
                    committed += changed
            except KeptlogError as error:
                failed |= {str(outcome.step.topic_partition): error for outcome in changed}
        unchanged = tuple(outcome for outcome in outcomes if outcome.is_empty)
        return CleanResult(run_id, plan, tuple(committed), unchanged, failed)

    def clean(self, plan: Plan, run_id: str, progress: Progress | None = None) -> CleanResult:
        """Carry a plan out: the stages in order."""
        return self.commit(plan, self.rewrite(plan.steps, run_id, progress), run_id)

    def expire(self, plan: Plan, run_id: str, progress: Progress | None = None) -> CleanResult:
        """Carry out only the plan's expiry of tombstones."""
        return self.commit(plan, self.rewrite(plan.only(StepKind.EXPIRE), run_id, progress), run_id)


def observe(store: LogStore, names: Iterable[str] = (), *, now_ms: int) -> list[Assessment]:
    """Judge the logs that ``names`` select; see ``select_logs``."""
    return [assess(log, now_ms) for log in select_logs(store, names)]


def select_logs(store: LogStore, names: Iterable[str] = ()) -> list[Log]:
    """The logs that ``names`` mean, each once; all of them if there are no names.

    A name is a topic if one is called so, else a topic-partition.

    Raises:
        UnknownTopic: a name is neither.
    """
    names = list(names)
    topics = store.topics()
    if not names:
        return [log for topic in topics for log in store.logs(topic)]
    selected: dict[TopicPartition, Log] = {}
    for name in names:
        topic, partition = (name, None) if name in topics else _topic_and_partition(name)
        found = [log for log in store.logs(topic) if partition in {None, log.topic_partition.partition}]
        if not found:
            raise UnknownTopic(f"topic {topic!r} has no partition {partition}: see keptlog topic describe {topic}")
        selected.update((log.topic_partition, log) for log in found)
    return list(selected.values())


def _topic_and_partition(name: str) -> tuple[str, int | None]:
    try:
        parsed = TopicPartition.parse(name)
    except KeptlogError:
        return name, None
    return parsed.topic, parsed.partition
