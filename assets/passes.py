"""A cleaning pass in stages, such that one broken log stops nobody else's.

Both ways to clean, the job's ops and the clean section's asset, go through these stages, and the stages through
``keptlog.cleaner``. What they add is isolation: all logs are planned, and rewritten, together, which is cheap; only if
that fails is the work halved, and halved again, until the log that fails stands alone. It is named with its reason, and
all the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from keptlog.cleaner import Cleaner, Progress
from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.log.plan import Plan, Step, StepKind, make_plan
from keptlog.log.result import Rewritten
from keptlog.log.segment import Log
from keptlog.log.selection import Assessment, assess
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore


@dataclass(frozen=True)
class Pass:
    """A pass on its way from plan to commit; what an op hands to the next."""

    run_id: str
    plan: Plan
    outcomes: tuple[Rewritten, ...] = ()
    """Staged, not visible yet."""
    committed: tuple[Rewritten, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    """Topic-partition, or topic if its logs can't even be read, to the reason."""
    duration_ms: int = 0

    @property
    def cleaned_names(self) -> list[str]:
        return [str(outcome.step.topic_partition) for outcome in self.committed]


def plan_pass(cleaner: Cleaner, names: Sequence[str], run_id: str, now_ms: int, *, requested: bool) -> Pass:
    """Plan a pass over ``names`` (topics or topic-partitions; all if empty)."""
    assessments, failed = observe_each(cleaner.store, names, now_ms)
    return Pass(run_id, make_plan(assessments, now_ms, requested=requested), failed=failed)


def rewrite_pass(
    cleaner: Cleaner, planned: Pass, kinds: Iterable[StepKind], elapsed_ms: Callable[[], int], progress: Progress
) -> Pass:
    """Rewrite the plan's steps of these kinds; everything is staged, nothing visible."""
    steps = [step for kind in kinds for step in planned.plan.only(kind)]
    outcomes, failed = _rewrite_each(cleaner, steps, planned.run_id, progress)
    return replace(
        planned,
        outcomes=planned.outcomes + tuple(outcomes),
        failed=planned.failed | failed,
        duration_ms=planned.duration_ms + elapsed_ms(),
    )


def commit_pass(cleaner: Cleaner, staged: Pass) -> Pass:
    """Make what was staged live, topic by topic."""
    result = cleaner.commit(staged.plan, staged.outcomes, staged.run_id)
    failed = {name: str(error) for name, error in result.failed.items()}
    return replace(staged, committed=result.committed, failed=staged.failed | failed)


def observe_after(cleaner: Cleaner, cleaned: Pass, names: Sequence[str]) -> tuple[Pass, list[Assessment]]:
    """The logs ``names`` as the pass left them; one that can't be read any more counts as failed."""
    if not names:
        return cleaned, []
    after, unreadable = observe_each(cleaner.store, names, cleaned.plan.now_ms)
    return replace(cleaned, failed=cleaned.failed | unreadable), after


def observe_each(store: LogStore, names: Sequence[str], now_ms: int) -> tuple[list[Assessment], dict[str, str]]:
    """Judge the logs that ``names`` select, all if empty; what can't be found or read is returned with the reason.

    A name is a topic-partition if there is one, else a topic: ``a-1`` is partition 1 of ``a`` even if a topic is called
    ``a-1``, because the sensors and the assets name topic-partitions only.
    """
    topics = store.topics()
    selected: dict[TopicPartition, Log] = {}
    failed: dict[str, str] = {}
    known = _Logs(store)
    for name in names or topics:
        try:
            selected.update((log.topic_partition, log) for log in known.named(name, topics))
        except (LogCorrupt, UnknownTopic) as error:
            failed[name] = str(error)
    return [assess(log, now_ms) for log in selected.values()], failed


@dataclass
class _Logs:
    """The logs of a store, each topic read once."""

    store: LogStore
    read: dict[str, list[Log]] = field(default_factory=dict)

    def named(self, name: str, topics: Collection[str]) -> list[Log]:
        topic, _, _ = name.rpartition("-")
        of_partition = [log for log in self._of(topic) if str(log.topic_partition) == name] if topic in topics else []
        if of_partition:
            return of_partition
        if name in topics:
            return self._of(name)
        raise UnknownTopic(f"there is no topic or topic-partition {name!r}: see keptlog topic list")

    def _of(self, topic: str) -> list[Log]:
        if topic not in self.read:
            self.read[topic] = list(self.store.logs(topic))
        return self.read[topic]


def _rewrite_each(
    cleaner: Cleaner, steps: Sequence[Step], run_id: str, progress: Progress
) -> tuple[list[Rewritten], dict[str, str]]:
    try:
        return cleaner.rewrite(steps, run_id, progress), {}
    except Exception as error:  # noqa: BLE001  # whatever a Spark task dies of, the other logs go on
        if len(steps) == 1:
            return [], {str(steps[0].topic_partition): _first_line(error)}
        progress(f"rewriting {len(steps)} logs together failed, they are tried apart: {_first_line(error)}")
    middle = len(steps) // 2
    outcomes, failed = _rewrite_each(cleaner, steps[:middle], run_id, progress)
    more_outcomes, more_failed = _rewrite_each(cleaner, steps[middle:], run_id, progress)
    return outcomes + more_outcomes, failed | more_failed


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
