"""One ingest: what a source holds, into topics here; whatever kind of source it is (``keptlog.ingest.source``).

    survey --> plans --> parts --Spark tasks--> staged segments --confirm, one commit a topic--> live
               |         |                      |
               |         cut by the source      invisible
               data; changes nothing

What is to be read is planned from the positions here and what is there (``keptlog.log.source``). The source cuts each
offset range into **parts** and knows how to read one; the tasks of all topics run in one Spark job and write segments
with the writer that cleans use. Then each topic gets one commit, which moves its positions too. Until then nothing is
visible. What a run staged and did not commit is deleted; of a run that dies, or gets no answer, a purge does it.

A part that can't be read stops its topic-partition there, and nobody else:

    orders-0    [ part ][ part ][ broken ][ part ]      the first two land, and the position is where the third begins
    orders-1    [ part ][ part ]                        lands

A run that is killed, or tried again, or runs twice at once, brings every record once: a commit goes only from the
position that was planned from. Positions are read before the source is surveyed: so none of them can lie behind what
the survey saw because another ingest was faster in between.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from keptlog.engine.ingest_tasks import IngestTask, LeftOut, Part
from keptlog.engine.jobs import Jobs, TaskOutcome, error_in, run_each
from keptlog.errors import IngestStopped, InvalidConfig, KeptlogError
from keptlog.ingest.plans import IngestPlans, PlannedTopic, require_covered
from keptlog.ingest.reconcile import Reconciliation
from keptlog.ingest.result import IngestResult, Intake
from keptlog.ingest.stops import remember_stops, stops_of
from keptlog.log.cut_off import erase_again
from keptlog.log.lost_deletions import (
    SeenCurrent,
    TombstoneRetention,
    cut_short,
    missing_offsets,
    seen_current,
    warning_of_deletions,
    why_compared_too_slowly,
    why_deletions_may_lack,
    with_times,
)
from keptlog.log.refilled import without_refilled
from keptlog.log.segment import Segment
from keptlog.log.source import IngestPlan, OffsetRange, StoredSource, plan_ingest, with_leader_epochs, with_truncations
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.progress import Progress, silent
from keptlog.storage.leftover import discard
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.state import read_source
from keptlog.table.waiting.reaching import parted, why_not_landed
from keptlog.table.waiting.side_by_side import each_apart

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.ingest.source import Source
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

NOTHING_SEEN: Mapping[str, SeenCurrent] = MappingProxyType({})
_logger = logging.getLogger(__name__)
"""What a result tells anyway is information here, and no warning: or people would be told twice."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """Brings records from sources into one store with one Spark engine."""

    store: LogStore
    engine: Engine
    clock_ms: Callable[[], int]

    def plan(
        self,
        source: Source,
        topics: Collection[str] | None = None,
        *,
        skip_lost: bool = False,
        reconcile: bool = False,
        seen: Mapping[str, SeenCurrent] = NOTHING_SEEN,
    ) -> IngestPlans:
        """What to read for a source's topics, or for some of them; changes nothing. A topic that can't be had fails.

        ``skip_lost`` goes on where a log begins there, although records before that were never read, where a log was
        cut off and has other records now, or where deletions may have been missed. ``reconcile`` finds those, and
        deletes here what is gone there (``keptlog.ingest.reconcile``). ``seen`` says of topic-partitions
        (``orders-0``) when somebody has seen that they lacked nothing, and at which position.

        Raises:
            InvalidConfig: nobody has said where the source is, or deletions are to be found and to be skipped.
            StorageUnavailable: the catalog can't be reached, or the source needs Spark to look and it fails.
            KeptlogError: the source has none of the topics to give, and nothing else is wrong with any.
        """
        if skip_lost and reconcile:
            raise InvalidConfig("--skip-lost and --reconcile are both given: give one of the two")
        stored, failed = self._stored(source.topics if topics is None else topics)
        now_ms = self.clock_ms()
        survey = source.survey(stored)
        if survey.refusal and not failed:
            raise survey.refusal
        failed |= survey.failed
        planned: list[PlannedTopic] = []
        for each in survey.topics:
            known = seen_current(stored[each.topic] or StoredSource(None, ()), each.topic, seen)
            try:
                plan = plan_ingest(each.topic, known, each.there, skip_lost=skip_lost)
                plan = plan if skip_lost else with_leader_epochs(plan, known, each.there)
                plan = without_refilled(plan, known, each.there, skip_lost=skip_lost)
                plan = with_times(plan, known, each.there, now_ms, confirm_all=reconcile)
                plan = with_truncations(plan, known)
            except KeptlogError as error:
                failed[each.topic] = error
            else:
                starts = {log.partition: log.log_start_offset for log in each.there.logs}
                waits = {log.partition: log.waiting for log in each.there.logs if log.waiting}
                positions = tuple(known.positions)
                planned.append(PlannedTopic(plan, each.config, each.left_out, starts, positions, each.lacking, waits))
        return IngestPlans(source, tuple(planned), failed, survey.warnings, skip_lost, reconcile)

    def carry_out(self, plans: IngestPlans, run_id: str, progress: Progress = silent) -> IngestResult:
        """Read and commit what was planned; a topic-partition or topic that fails stops no other.

        Raises:
            StorageUnavailable: Spark can't be started, or fails; nothing was committed.
        """
        plans = plans.asked_for_cuts()
        # Before anything is created: without Spark nothing can be read.
        is_work = plans.reconcile or any(plans.lag.values())
        jobs = self.engine.start_jobs(run_id, progress) if is_work else None
        reconciliation: Reconciliation | None = None
        if jobs and plans.reconcile:
            # It reads the source alone.
            reconciliation = Reconciliation(self.store, jobs.within(()), self.clock_ms())
            reconciliation.look(plans.source, plans.topics)
            plans = self._up_to_now(plans)
        cut = plans.source.cut([each.plan for each in plans.topics], jobs.cores if jobs else 1)
        run = _Run(self.store, plans, run_id, progress, self.clock_ms, reconciliation=reconciliation)
        for topic, parts in zip(plans.topics, cut, strict=True):
            run.begin(topic, parts)
        if jobs:
            jobs = jobs.within(sorted(described.data_location for _, described in run.begun))
            if reconciliation:
                reconciliation.jobs = jobs
            run.write(jobs)
        for plan, described in run.begun:
            run.land(plan, described)
        failed, warnings = plans.failed | run.failed, (*plans.warnings, *run.warnings)
        return IngestResult(run_id, tuple(run.created), tuple(run.committed), failed, warnings)

    def _up_to_now(self, plans: IngestPlans) -> IngestPlans:
        """The plans after a comparison, in what their source holds by now (``keptlog.ingest.reconcile``)."""
        if plans.source.is_copy:
            return plans
        stored, failed = self._stored([each.plan.topic for each in plans.topics])
        looked_ms = self.clock_ms()
        return plans.up_to(plans.source.survey(stored), stored, failed, looked_ms)

    def _stored(self, topics: Collection[str]) -> tuple[dict[str, StoredSource | None], dict[str, KeptlogError]]:
        """What each topic here remembers, null for one that does not exist; and those that can't be read."""
        existing = set(self.store.topics())

        def read(topic: str) -> StoredSource | None:
            if topic not in existing:
                return None
            table = self.store.load_table(topic)
            require_own(table)
            return read_source(topic, table.properties)

        return parted(each_apart(read, topics))


@dataclass
class _Run:
    """A run on its way: begin every topic, write all their parts, land every topic."""

    store: LogStore
    plans: IngestPlans
    run_id: str
    progress: Progress
    clock_ms: Callable[[], int]
    begun: list[tuple[IngestPlan, Topic]] = field(default_factory=list)
    tasks: list[IngestTask] = field(default_factory=list)
    outcomes: dict[TopicPartition, list[tuple[Part, TaskOutcome]]] = field(default_factory=lambda: defaultdict(list))
    created: list[str] = field(default_factory=list)
    committed: list[Intake] = field(default_factory=list)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    compacted: set[str] = field(default_factory=set)
    """Topics, whose cleans remove records without a key."""
    reconciliation: Reconciliation | None = None

    def begin(self, planned: PlannedTopic, parts: Sequence[Part]) -> None:
        """Let the topic exist, and queue its parts."""
        plan = planned.plan
        for partition, reason in plan.stopped.items():
            self.failed[str(TopicPartition(plan.topic, partition))] = InvalidConfig(reason)
        try:
            require_covered(plan, parts)
            self._create(planned)
            topic = self.store.describe_topic(plan.topic)
        except KeptlogError as error:
            self.failed[plan.topic] = error
            return
        if topic.config.is_compacted:
            self.compacted.add(topic.name)
        location, segment_bytes = topic.data_location, topic.config.segment_bytes
        self.tasks += [IngestTask(part, location, segment_bytes) for part in parts]
        self.begun.append((plan, topic))

    def write(self, jobs: Jobs) -> None:
        """Stage all parts in one job."""
        doing = f"reading {counted(len(self.tasks), 'part')} of {counted(len(self.begun), 'topic')}"
        outcomes = run_each(jobs, self.tasks, [task.part.weight for task in self.tasks], doing)
        for task, outcome in zip(self.tasks, outcomes, strict=True):
            self.outcomes[task.part.topic_partition].append((task.part, outcome))

    def land(self, plan: IngestPlan, topic: Topic) -> None:
        """Commit what was read of a topic, of each topic-partition as far as nothing is missing before it."""
        intakes, broken = self._read(plan)
        intakes, doubted = self._without_doubt(plan, intakes, topic.config.delete_retention_ms)
        broken |= doubted
        if self.reconciliation:
            intakes, unequal = self._completed(self.reconciliation, topic, intakes)
            broken |= unequal
        for name, error in broken.items():
            _logger.info("%s was not read to its end: %s", name, error)
        self.failed |= broken
        taken = [segment.path for each in intakes for segment in each.segments]
        discard(self.store.files, self._staged(plan) - set(taken))
        if (intakes or not (broken or plan.stopped)) and not self._has_landed(plan, topic, intakes, taken):
            return
        remember_stops(self.store, plan, topic, stops_of(plan, broken, intakes, self.clock_ms()))

    def _has_landed(self, plan: IngestPlan, topic: Topic, intakes: Sequence[Intake], taken: Sequence[str]) -> bool:
        """Commit; whether that went well."""
        try:
            with discarded_if_refused(self.store.files, lambda: taken):
                self._commit(plan, topic, intakes)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
            why = why_not_landed(plan.topic, error)
            _logger.info("what was read of %s did not land: %s", plan.topic, why)
            self.failed |= {str(each.topic_partition): why for each in intakes} or {plan.topic: why}
            return False
        self._report(plan.topic, intakes)
        return True

    def _staged(self, plan: IngestPlan) -> set[str]:
        """The files of all parts, also of those that lie behind one that can't be read."""
        names = [TopicPartition(plan.topic, each.partition) for each in plan.ranges]
        results = [outcome for name in names for _, outcome in self.outcomes[name]]
        return {segment["path"] for each in results if isinstance(each, dict) for segment in each["segments"]}

    def _read(self, plan: IngestPlan) -> tuple[list[Intake], dict[str, KeptlogError]]:
        """What can be committed of each range, and why it is not more, by topic-partition."""
        intakes: list[Intake] = []
        broken: dict[str, KeptlogError] = {}
        for each in plan.ranges:
            name = TopicPartition(plan.topic, each.partition)
            intake, error = _read_of(name, each, self.outcomes[name])
            if intake:
                intakes.append(intake)
            if error:
                broken[str(name)] = error
        return intakes, broken

    def _completed(
        self, reconciliation: Reconciliation, topic: Topic, intakes: Sequence[Intake]
    ) -> tuple[list[Intake], dict[str, KeptlogError]]:
        """Those with tombstones for what is gone at the source, and why others may not land."""
        completed: list[Intake] = []
        failed: dict[str, KeptlogError] = {}
        for each in intakes:
            try:
                completed.append(reconciliation.completed(self.plans.source, topic, each, self.clock_ms()))
            except KeptlogError as error:
                failed[str(each.topic_partition)] = error
        for each in completed:
            if each.reconciled:
                told = f"{counted(each.reconciled, 'key')} deleted here, whose tombstone did not come in"
                self.progress(f"{each.topic_partition}: {told}")
        return completed, failed

    def _without_doubt(
        self, plan: IngestPlan, intakes: Sequence[Intake], own_ms: int
    ) -> tuple[list[Intake], dict[str, KeptlogError]]:
        """Those that have missed no deletion, and why the others may not land; some are taken with a warning.

        ``own_ms`` is the topic's ``delete.retention.ms`` here.
        """
        gapped = {each.range.partition for each in intakes if missing_offsets(each.range, each.records)}
        compared = self.reconciliation
        if not gapped or self.plans.skip_lost or (compared and self.plans.source.is_copy):
            return list(intakes), {}
        try:
            kept_ms = self.plans.source.tombstones_kept_ms(plan, gapped)
        except KeptlogError as error:
            doubted = {str(each.topic_partition): error for each in intakes if each.range.partition in gapped}
            return [each for each in intakes if each.range.partition not in gapped], doubted
        now_ms = self.clock_ms()
        taken: list[Intake] = []
        stopped: dict[str, KeptlogError] = {}
        for each in intakes:
            read = each.range
            if read.partition not in kept_ms:
                taken.append(each)
                continue
            told_ms = kept_ms[read.partition]
            kept = TombstoneRetention(own_ms, is_known=False) if told_ms is None else TombstoneRetention(told_ms)
            try:
                if compared and not read.is_first:
                    self._require_compared_in_time(compared, plan, each, kept)
                    read = replace(read, position_as_of_ms=compared.since_ms)
                elif why := why_deletions_may_lack(plan.topic, read, kept, now_ms):
                    raise IngestStopped(why + erase_again(plan.topic, plan.kept))
            except KeptlogError as error:
                stopped[str(each.topic_partition)] = error
                continue
            taken.append(each)
            self.warnings += filter(None, [warning_of_deletions(plan.topic, read, kept, now_ms)])
        return taken, stopped

    def _require_compared_in_time(
        self, compared: Reconciliation, plan: IngestPlan, intake: Intake, kept: TombstoneRetention
    ) -> None:
        """Refuse what took longer than tombstones stay, unless all that is to be the latest here is there still."""
        why = why_compared_too_slowly(plan.topic, compared.since_ms, kept, self.clock_ms())
        if why and compared.has_lost_more(self.plans.source, plan, intake):
            raise IngestStopped(why + erase_again(plan.topic, plan.kept))

    def _commit(self, plan: IngestPlan, topic: Topic, intakes: Sequence[Intake]) -> None:
        """One commit, also without anything read: it remembers the source."""
        is_compacted = self.plans.source.confirm(plan) if intakes else None
        arrivals = [each.as_arrival(is_compacted) for each in intakes]
        self.store.ingest(topic, arrivals, plan.source, plan.partitions, self.run_id)

    def _report(self, topic: str, intakes: Sequence[Intake]) -> None:
        self.committed += [each for each in intakes if each.range.is_first or each.range.reads_something]
        if topic in self.compacted:
            self.warnings += [_unkeyed(each) for each in intakes if each.unkeyed]
        if records := sum(each.records for each in intakes):
            self.progress(f"{topic}: {counted(records, 'record')} in")

    def _create(self, planned: PlannedTopic) -> None:
        topic = planned.plan.topic
        # One that was there and is not any more was deleted meanwhile, and is not to come back.
        if not planned.is_new or topic in self.store.topics():
            return
        try:
            self.store.create_topic(topic, planned.plan.partitions, planned.config)
        except InvalidConfig:
            # Another run may have been faster; whether it has the same source is seen at the commit.
            if topic not in self.store.topics():
                raise
            _logger.info("topic %s was created by another run at this moment; going on with it", topic)
        else:
            self.created.append(topic)


def _read_of(
    name: TopicPartition, planned: OffsetRange, outcomes: Sequence[tuple[Part, TaskOutcome]]
) -> tuple[Intake | None, KeptlogError | None]:
    """What of a range can be committed: all of it, or what lies before the first place that can't be read, and why."""
    segments: list[Segment] = []
    left_out = LeftOut()

    def taken(read: OffsetRange, error: KeptlogError | None) -> Intake:
        told = tuple(left_out.skipped), tuple(left_out.unfit)
        return Intake(name, read, tuple(segments), *told, cut_short_by=error)

    for part, outcome in outcomes:
        if isinstance(outcome, KeptlogError):
            if part.from_offset == planned.from_offset:
                return None, outcome
            before = cut_short(planned, part.from_offset)
            return taken(before, outcome), outcome
        segments += [Segment(**segment) for segment in outcome["segments"]]
        left_out.skipped += outcome["skipped"]
        left_out.unfit += outcome["unfit"]
        if error := error_in(outcome.get("stopped", {})):
            before = cut_short(planned, outcome["end_offset"])
            return taken(before, error), error
    return taken(planned, None), None


def _unkeyed(intake: Intake) -> str:
    name, topic = intake.topic_partition, intake.topic_partition.topic
    return (
        f"{name}: {intake.unkeyed} of {counted(intake.records, 'record')} without a key, and cleans remove those "
        f"from a compacted topic: keep them with keptlog topic alter {topic} --config cleanup.policy=delete"
    )
