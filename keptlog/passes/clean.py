"""One cleaning pass: observe, plan, rewrite, verify, commit.

    named logs --assess--> plan --rewrite on Spark--> staged --verify--> commit --> live
                            |                            |                 |
                            data; changes nothing        invisible         one catalog commit a topic

``Cleaner`` holds the only place where the table and Spark meet. The Dagster ops call one stage each, the command line
all of them; both hand a ``Pass`` from one to the next. A pass may stop, or be killed, after any stage: until the commit
nothing is visible, after it everything is. Two passes over one log at once are harmless: the first commit wins and the
other one gets ``StalePlan``.

A log that is too large for one commit is cleaned in legs (``in_legs``), after the others. Their outcomes do not wait
for it: they are committed before. So are its own legs, all but the last.

One broken log stops nobody else's: it is named with its reason, and marked uncleanable in its topic
(``keptlog.log.uncleanable``), so that whoever plans the next pass leaves it alone for a while. An outage of Spark,
catalog or storage is no log's fault: what it has stopped is named too, and not marked (``keptlog.passes.apart``). An
input that is gone is a stale plan if another commit came first, and corruption if it still is live
(``keptlog.table.reading.lost``).

What of the table is needed to rewrite and to commit is imported then: a plan is also made, and handed on, by those who
never open one.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from keptlog.errors import (
    CommitStateUnknown,
    KeptlogError,
    StalePlan,
    StorageUnavailable,
    UnknownTopic,
    first_line,
)
from keptlog.log.assessment import assess
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.offset_map import slot_bytes_for, slots_in
from keptlog.log.plan import CleanPlan, Decision, Plan, decide, plan_of
from keptlog.log.result import RewriteResult
from keptlog.log.run_id import valid_run_id
from keptlog.log.segment import Log, total_bytes
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.log.told.early_end import EarlyEnd, early_ends
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition, possible_topics
from keptlog.log.uncleanable import Backoff, what_helps
from keptlog.log.words.counted import counted
from keptlog.passes.apart import Apart
from keptlog.passes.judging import judged_apart, topics_apart
from keptlog.passes.landing import OUTAGES_BORNE, Landing, land_fresh
from keptlog.passes.marked import Death, Marked
from keptlog.passes.names import named_logs, require_all
from keptlog.passes.rewrites import Rewrites, is_in_legs
from keptlog.progress import Progress, silent
from keptlog.storage.leftover import discard
from keptlog.table.waiting.reaching import why_not_landed

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.table.changes.mark import Failure
    from keptlog.table.store import LogStore

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass on its way from plan to commit; what one stage hands to the next. Pickles."""

    run_id: str
    plan: CleanPlan
    outcomes: tuple[RewriteResult, ...] = ()
    """Staged; visible once they are among ``committed``."""
    committed: tuple[RewriteResult, ...] = ()
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic-partition, or topic if its logs can't even be read, to the error; nothing of it is lost."""
    blameless: frozenset[str] = frozenset()
    """The topic-partitions among ``failed`` that an outage has stopped, and no fault of theirs."""
    outage: KeptlogError | None = None
    """What is down for all logs, so that no later stage tries anything; null if nothing was seen to be."""
    duration_ms: int = 0
    planned_ms: int | None = None
    """When it was planned, if a later run has taken it up; null where that is the time of the plan."""

    def taken_up(self, now_ms: int) -> Pass:
        """The same for a run that goes on with it later: what it finds, marks and reports from now on is of now.

        What is staged keeps its times: steps have their own.
        """
        planned_ms = self.plan.now_ms if self.planned_ms is None else self.planned_ms
        # Made anew, for what an older keptlog has handed on lacks a field; what was not planned is among the failed.
        plan = Plan(now_ms - self.duration_ms, self.plan.steps, self.plan.left_alone)
        return replace(self, plan=plan, planned_ms=planned_ms)

    @property
    def early_ends(self) -> dict[TopicPartition, EarlyEnd]:
        """The logs that were cleaned up to where their offset map was full: another pass goes on from there."""
        return early_ends((each.step for each in self.committed), self.plan.steps)

    @property
    def stopped_by(self) -> KeptlogError | None:
        """What has stopped the first of the blameless logs, whether or not it was down for all; null if none was."""
        return self.failed[min(self.blameless)] if self.blameless else None


def _stands_still() -> int:
    return 0


def clean_plan(logs: Iterable[Log], broker: BrokerConfig, now_ms: int, *, requested: bool = False) -> CleanPlan:
    """What a pass over these logs would do; ``requested`` tries uncleanable ones before their time.

    A topic with a log that can't be judged is ``unplanned``, and is nothing to the others.
    """
    now_ms = passed_now_ms(now_ms)
    if not broker.log_cleaner_enable:
        return Plan(now_ms, (), {str(log.topic_partition): CLEANER_DISABLED for log in logs})
    tried = (replace(log, uncleanable=None) for log in logs) if requested else logs

    def decided(of_topic: list[Log]) -> list[Decision]:
        return [decide(assess(log, now_ms), broker, requested=requested) for log in of_topic]

    planned, unplanned = topics_apart(tried, decided)
    return plan_of(chain.from_iterable(planned.values()), now_ms, unplanned)


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Cleans the logs of one store with one Spark engine. ``monotonic_ms`` tells how long that takes."""

    store: LogStore
    engine: Engine
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    monotonic_ms: Callable[[], int] = _stands_still

    def plan(self, names: Iterable[str] = (), *, now_ms: int, requested: bool = False) -> CleanPlan:
        """What a pass over these logs would do; changes nothing.

        Raises:
            KeptlogError: a name means nothing, or a log can't be read or judged.
        """
        named = named_logs(self.store, names)
        require_all(named.unreadable)
        planned = self.plan_for(named.logs, now_ms, requested=requested)
        require_all(planned.unplanned)
        return planned

    def plan_for(self, logs: Iterable[Log], now_ms: int, *, requested: bool = False) -> CleanPlan:
        """What a pass over these logs would do; ``requested`` tries uncleanable ones before their time."""
        return clean_plan(logs, self.broker, now_ms, requested=requested)

    def begin(self, names: Iterable[str], run_id: str, *, now_ms: int, requested: bool = False) -> Pass:
        """Plan a pass over these logs, all if there are no names; what can't be found, read or judged has failed.

        Raises:
            InvalidConfig: the home is a copy, or was moved.
        """
        self.store.require_writable()
        named = named_logs(self.store, names)
        plan = self.plan_for(named.logs, now_ms, requested=requested)
        return Pass(valid_run_id(run_id), plan, failed={**named.unreadable, **named.by_name(plan.unplanned)})

    def rewrite(self, steps: Sequence[CleanStep], run_id: str, progress: Progress = silent) -> list[RewriteResult]:
        """Run steps on Spark and verify each outcome; everything is staged, nothing visible. All are done, or none.

        Raises:
            StalePlan: a topic was deleted meanwhile, or an input is gone.
            InvariantViolated: an outcome would break a guarantee.
        """
        from keptlog.engine.outcome import all_or_none  # noqa: PLC0415

        return all_or_none(self.store.files, Rewrites(self.store, self.engine, run_id, progress).each(steps))

    def stage(
        self, planned: Pass, kinds: Iterable[type[CleanStep]] = (Compact, Expire), progress: Progress = silent
    ) -> Pass:
        """Rewrite the plan's steps of these kinds; a log that fails stops no other, an outage loses nothing staged.

        Where a log is cleaned in legs, all but its last is live when this is over, and so are the other logs.

        Raises:
            KeptlogError: Spark can't be started, and nothing is staged; that is no log's fault.
        """
        steps = [step for kind in kinds for step in planned.plan.steps if isinstance(step, kind)]
        done = self._staged(planned, [step for step in steps if not is_in_legs(step)], progress)
        for step in filter(is_in_legs, steps):
            # Hours may pass: nobody else waits for it.
            done = self._staged(replace(self._landed(done), outcomes=()), [step], progress)
        return done

    def _staged(self, planned: Pass, steps: Sequence[CleanStep], progress: Progress) -> Pass:
        """Rewrite steps together; a large one alone, in legs, of which the last is staged and the others are live."""
        started_ms = self.monotonic_ms()
        outage = planned.outage
        if steps and not outage:
            try:
                self.engine.start_jobs(planned.run_id, progress)
            except KeptlogError as error:
                if not planned.outcomes and not planned.committed:
                    raise
                outage = error
        if outage:
            names = [str(step.topic_partition) for step in steps]
            failed = planned.failed | dict.fromkeys(names, outage)
            return replace(planned, failed=failed, blameless=planned.blameless.union(names), outage=outage)
        rewrites = Rewrites(self.store, self.engine, planned.run_id, progress)
        apart = Apart(rewrites.done, rewrites.look_for_outage, planned.run_id)
        apart.rewrite_all(steps)
        failed = apart.failed | self._lost_inputs(steps, apart.failed)
        legs = {str(step.topic_partition): rewrites.live_legs(step) for step in steps}
        return replace(
            planned,
            outcomes=planned.outcomes + tuple(apart.outcomes),
            failed=planned.failed | {name: error.after_legs(legs[name]) for name, error in failed.items()},
            blameless=planned.blameless | apart.blameless,
            outage=apart.outage,
            duration_ms=planned.duration_ms + self.monotonic_ms() - started_ms,
        )

    def commit(self, staged: Pass) -> Pass:
        """Make what was staged live, all logs of a topic in one commit, and mark the logs that failed.

        Of a pass that was taken up, what has failed before may have its mark already: it gets no second one.
        """
        done = self._landed(staged)
        self._mark(done, staged.failed)
        return done

    def _landed(self, staged: Pass) -> Pass:
        from keptlog.passes.in_legs import changed_by  # noqa: PLC0415

        by_topic: dict[str, list[RewriteResult]] = defaultdict(list)
        for outcome in staged.outcomes:
            if outcome.is_empty:
                discard(self.store.files, outcome.staged_paths)
            else:
                by_topic[outcome.step.topic_partition.topic].append(outcome)
        stale: dict[str, KeptlogError] = {}

        def swap(topic: str) -> None:
            last_passes = {each.step.topic_partition: self._last_pass(each, staged) for each in by_topic[topic]}
            land_fresh(
                lambda fresh: self.store.swap(topic, fresh, staged.run_id, last_passes),
                by_topic[topic],
                lambda outcome: outcome.step.topic_partition,
                stale,
            )

        landing = Landing(swap, staged.run_id)
        landing.land_all(sorted(by_topic))
        names = {topic: [str(each.step.topic_partition) for each in theirs] for topic, theirs in by_topic.items()}
        failed = {name: error for topic, error in landing.failed.items() for name in names[topic]} | stale
        legs = {str(each.step.topic_partition): changed_by(each.earlier) for each in staged.outcomes}
        return replace(
            staged,
            committed=staged.committed + tuple(each.whole for topic in landing.landed for each in by_topic[topic]),
            failed=staged.failed | {name: error.after_legs(legs[name]) for name, error in failed.items()},
            blameless=staged.blameless.union(*(names[topic] for topic in landing.blameless)),
            outage=staged.outage or landing.outage,
        )

    def mark_still_due(self, death: Death, out_of_reach: set[str], *, now_ms: int) -> Marked:
        """Mark the logs of a run that died, but for those that are not due any more, or were tried since it began.

        ``out_of_reach`` has the topics that took no mark lately, so that several deaths together wait for no more of
        them than one; those that take none now come into it.

        Raises:
            StorageUnavailable: the catalog can't be asked at all; nothing is marked.
        """
        from keptlog.table.changes.mark import Failure  # noqa: PLC0415

        is_full = len(out_of_reach) >= OUTAGES_BORNE
        untried = [name for name in death.names if is_full or not out_of_reach.isdisjoint(possible_topics(name))]
        names = [name for name in death.names if name not in untried]
        if not names:
            return Marked((), {}, tuple(untried))
        named = named_logs(self.store, names)
        unmarked = {name: error for name, error in named.unreadable.items() if not isinstance(error, UnknownTopic)}
        out_of_reach |= {possible_topics(name)[-1] for name, error in unmarked.items() if _is_away(error)}
        by_topic: dict[str, list[Failure]] = defaultdict(list)
        assessments, unjudged = judged_apart(named.logs, now_ms)
        unmarked |= named.by_name(unjudged)
        for each in assessments:
            log = each.log
            is_marked = log.uncleanable is not None and death.reason.startswith(log.uncleanable.reason)
            if each.trigger and not is_marked:
                by_topic[log.topic_partition.topic].append(
                    Failure(
                        log.topic_partition,
                        death.reason,
                        log.checkpoint,
                        topic_id=log.topic_id,
                        began_ms=death.began_ms,
                    )
                )
        done = self._marked(by_topic, out_of_reach, now_ms)
        return replace(done, failed=unmarked | dict(done.failed), untried=(*done.untried, *untried))

    def _marked(self, by_topic: Mapping[str, Sequence[Failure]], out_of_reach: set[str], now_ms: int) -> Marked:
        """Mark logs, topic by topic, as long as not too much is out of reach."""
        marked: list[str] = []
        unmarked: dict[str, KeptlogError] = {}
        untried: list[str] = []
        for topic, failures in by_topic.items():
            theirs = [str(failure.topic_partition) for failure in failures]
            if topic in out_of_reach or len(out_of_reach) >= OUTAGES_BORNE:
                untried += theirs
                continue
            try:
                done = self.store.mark_uncleanable(topic, failures, now_ms, backoff_of(self.broker))
            except Exception as error:  # noqa: BLE001  # what its commit has met, that of the mark meets too
                unmarked |= dict.fromkeys(theirs, why_not_landed(topic, error))
                out_of_reach |= {topic} if _is_away(error) else set()
            else:
                marked += map(str, done)
        return Marked(tuple(marked), unmarked, tuple(untried))

    def _lost_inputs(self, steps: Sequence[CleanStep], failed: Mapping[str, KeptlogError]) -> dict[str, KeptlogError]:
        """The errors of logs whose inputs are not there although they still are live: no other commit came first."""
        by_topic: dict[str, list[CleanStep]] = defaultdict(list)
        for step in steps:
            if isinstance(failed.get(str(step.topic_partition)), StalePlan):
                by_topic[step.topic_partition.topic].append(step)
        lost: dict[str, KeptlogError] = {}
        for topic, stale in by_topic.items():
            # A topic that can't be looked at now, or was deleted, gives no other reason than there is.
            with suppress(KeptlogError):
                files = self.store.lost_files(topic)
                for step in stale:
                    paths = [*(segment.path for segment in step.segments), step.watermarks_path or ""]
                    error = files.first(paths)
                    lost |= {str(step.topic_partition): error} if error else {}
        return lost

    def _last_pass(self, outcome: RewriteResult, staged: Pass) -> LastPass:
        outcome = outcome.whole
        step = outcome.step
        return LastPass(
            ended_ms=staged.plan.now_ms + staged.duration_ms,
            duration_ms=staged.duration_ms,
            bytes_read=total_bytes(step.segments),
            bytes_written=outcome.bytes_written,
            map_keys=outcome.map_keys,
            map_slots=slots_in(self.broker.map_bytes, slot_bytes_for(step.strategy)),
            run_id=staged.run_id,
            is_expiry=isinstance(step, Expire),
        )

    def _mark(self, done: Pass, before: Collection[str]) -> None:
        """Mark the logs that failed through a fault of theirs: no outage has stopped them, nobody else was faster.

        ``before`` are those that had failed before the commit.
        """
        from keptlog.table.changes.mark import Failure  # noqa: PLC0415

        by_topic: dict[str, list[Failure]] = defaultdict(list)
        for step in done.plan.steps:
            name = str(step.topic_partition)
            error = None if name in done.blameless else done.failed.get(name)
            if error and not isinstance(error, StalePlan | CommitStateUnknown):
                reason, action = first_line(error), what_helps(error)
                began_ms = done.planned_ms if name in before else None
                failure = Failure(step.topic_partition, reason, step.checkpoint, action, step.topic_id, began_ms)
                by_topic[step.topic_partition.topic].append(failure)
        result = self._marked(by_topic, set(), done.plan.now_ms + done.duration_ms)
        # The failures themselves are reported, whether or not they can be remembered.
        for topic, failures in by_topic.items():
            if error := result.failed.get(str(failures[0].topic_partition)):
                text = "topic %s: %s can't be marked as uncleanable, the next pass tries again at once: %s"
                _logger.warning(text, topic, counted(len(failures), "log"), first_line(error))
        if result.untried:
            text = "%s not tried to be marked as uncleanable, for too much is out of reach"
            _logger.warning(text, counted(len(result.untried), "log"))


def _is_away(error: BaseException) -> bool:
    """Whether it was waited for an answer; what is refused is answered at once, so nobody waits for the next one."""
    return isinstance(error, StorageUnavailable) and not error.is_refused


def backoff_of(broker: BrokerConfig) -> Backoff:
    """How long a log that failed is left alone."""
    return Backoff(broker.log_cleaner_backoff_ms, broker.keptlog_cleaner_backoff_max_ms)
