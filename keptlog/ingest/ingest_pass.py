"""One ingest: what sources hold, into topics here; whatever kind of source it is.

    plan --> parts --Spark tasks--> staged segments --one commit a topic--> live
      |        |                        |
      |        cut by the source        invisible
      data; changes nothing

What is to be read is planned from the positions here and what is there (``keptlog.log.source``). The source cuts each
offset range into **parts** and knows how to read one; the tasks of all topics run in one Spark job and write segments
with the writer that cleans use. Then each topic gets one commit, which moves its positions too. Until then nothing is
visible; what a run staged and did not commit is left for a purge.

A part that can't be read stops its topic-partition there, and nobody else:

    orders-0    [ part ][ part ][ broken ][ part ]      the first two land, and the position is where the third begins
    orders-1    [ part ][ part ]                        lands

A run that is killed, or tried again, or runs twice at once, brings every record once: a commit goes only from the
position that was planned from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.engine.engine import Engine
from keptlog.engine.ingest_tasks import IngestTask, Part
from keptlog.engine.jobs import Jobs, TaskOutcome, run_each
from keptlog.errors import InvalidConfig, InvariantViolated, KeptlogError
from keptlog.log.counted import counted
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.source import Arrival, IngestPlan, OffsetRange, SourceTopic, plan_ingest
from keptlog.log.topic_partition import TopicPartition
from keptlog.progress import Progress, silent
from keptlog.table.store import LogStore

__all__ = ["Ingest", "IngestResult", "Ingested", "Part", "TopicIngest"]


@dataclass(frozen=True, slots=True)
class TopicIngest:
    """What is to be done to one topic: its plan, and the parts that cover the plan's ranges."""

    plan: IngestPlan
    parts: tuple[Part, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    """The topic's settings, if it does not exist yet."""
    confirm: Callable[[], None] = lambda: None
    """Called between reading and commit; raises a KeptlogError if what was read must not land."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one topic-partition got; its log ends at the end of ``range`` now."""

    topic_partition: TopicPartition
    range: OffsetRange
    segments: tuple[Segment, ...]
    skipped: tuple[str, ...]
    """What was broken at the source and is left out, a line each."""

    @property
    def records(self) -> int:
        return sum(segment.record_count for segment in self.segments)

    @property
    def tombstones(self) -> int:
        return sum(segment.tombstone_count for segment in self.segments)

    @property
    def unkeyed(self) -> int:
        return sum(segment.unkeyed_count for segment in self.segments)

    @property
    def bytes(self) -> int:
        """Of the files that were written."""
        return total_bytes(self.segments)


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a run did. A topic-partition may be in both: some of it landed, and then something failed."""

    run_id: str
    created: tuple[str, ...]
    """The topics that were seen for the first time."""
    committed: tuple[Ingested, ...]
    failed: dict[str, KeptlogError]
    """Topic-partition, or topic if none of it could be begun, to the error; nothing of it is lost."""
    warnings: tuple[str, ...] = ()
    """What stopped nothing and should be known, a line each."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """Brings records from sources into one store with one Spark engine."""

    store: LogStore
    engine: Engine

    def plan(self, topic: str, found: SourceTopic, *, skip_lost: bool = False) -> IngestPlan:
        """What to read for a topic here, which need not exist; changes nothing.

        Raises:
            InvalidConfig: the topic has another source, or records of its own.
        """
        if topic not in self.store.topics():
            return plan_ingest(topic, None, (), found, skip_lost=skip_lost)
        stored = self.store.source_of(topic)
        return plan_ingest(topic, stored.source, stored.positions, found, skip_lost=skip_lost)

    def run(self, ingests: Sequence[TopicIngest], run_id: str, progress: Progress = silent) -> IngestResult:
        """Carry plans out, one for each topic; a topic-partition or topic that fails stops no other.

        Raises:
            StorageUnavailable: Spark can't be started, or fails; nothing was committed.
            InvariantViolated: parts don't cover their plan's ranges.
        """
        run = _Run(self.store, run_id, progress)
        # Before anything is created: without Spark nothing can be read.
        jobs = self.engine.start_jobs(run_id, progress) if any(ingest.parts for ingest in ingests) else None
        for ingest in ingests:
            _require_covered(ingest)
        for ingest in ingests:
            run.begin(ingest)
        if jobs:
            run.write(jobs)
        for ingest in run.begun:
            run.land(ingest)
        return IngestResult(run_id, tuple(run.created), tuple(run.committed), run.failed, tuple(run.warnings))


@dataclass
class _Run:
    """A run on its way: begin every topic, write all their parts, land every topic."""

    store: LogStore
    run_id: str
    progress: Progress
    begun: list[TopicIngest] = field(default_factory=list)
    tasks: list[IngestTask] = field(default_factory=list)
    outcomes: dict[TopicPartition, list[tuple[Part, TaskOutcome]]] = field(default_factory=lambda: defaultdict(list))
    created: list[str] = field(default_factory=list)
    committed: list[Ingested] = field(default_factory=list)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    compacted: set[str] = field(default_factory=set)
    """Topics, whose cleans remove records without a key."""

    def begin(self, ingest: TopicIngest) -> None:
        """Let the topic exist, and queue its parts."""
        plan = ingest.plan
        for partition, reason in plan.stopped.items():
            self.failed[str(TopicPartition(plan.topic, partition))] = InvalidConfig(reason)
        try:
            self._create(ingest)
            topic = self.store.describe_topic(plan.topic)
        except KeptlogError as error:
            self.failed[plan.topic] = error
            return
        if topic.config.is_compacted:
            self.compacted.add(topic.name)
        location, segment_bytes = topic.data_location, topic.config.segment_bytes
        self.tasks += [IngestTask(part, location, segment_bytes) for part in ingest.parts]
        self.begun.append(ingest)

    def write(self, jobs: Jobs) -> None:
        """Stage all parts in one job."""
        doing = f"reading {counted(len(self.tasks), 'part')} of {counted(len(self.begun), 'topic')}"
        outcomes = run_each(jobs, self.tasks, [task.part.weight for task in self.tasks], doing)
        for task, outcome in zip(self.tasks, outcomes, strict=True):
            self.outcomes[task.part.topic_partition].append((task.part, outcome))

    def land(self, ingest: TopicIngest) -> None:
        """Commit what was read of a topic, of each topic-partition as far as nothing is missing before it."""
        plan = ingest.plan
        landing: list[Ingested] = []
        broken: dict[str, KeptlogError] = {}
        for each in plan.ranges:
            name = TopicPartition(plan.topic, each.partition)
            landed, error = _landed(name, each, self.outcomes[name])
            landing += [landed] if landed else []
            broken |= {str(name): error} if error else {}
        self.failed |= broken
        if not landing and (broken or plan.stopped):
            return
        arrived = [Arrival(each.range, each.segments) for each in landing]
        try:
            if landing:
                ingest.confirm()
            self.store.ingest(plan.topic, arrived, plan.source, plan.partitions, self.run_id)
        except KeptlogError as error:
            self.failed |= {str(each.topic_partition): error for each in landing} or {plan.topic: error}
            return
        self.committed += landing
        self.warnings += [_unkeyed(each) for each in landing if each.unkeyed and plan.topic in self.compacted]
        if records := sum(each.records for each in landing):
            self.progress(f"{plan.topic}: {counted(records, 'record')} in")

    def _create(self, ingest: TopicIngest) -> None:
        topic = ingest.plan.topic
        if topic in self.store.topics():
            return
        try:
            self.store.create_topic(topic, ingest.plan.partitions, ingest.config)
        except InvalidConfig:
            # Another run may have been faster; whether it has the same source is seen at the commit.
            if topic not in self.store.topics():
                raise
        else:
            self.created.append(topic)


def _landed(
    name: TopicPartition, planned: OffsetRange, outcomes: Sequence[tuple[Part, TaskOutcome]]
) -> tuple[Ingested | None, KeptlogError | None]:
    """What of a range can be committed: all of it, or what lies before the first part that failed, and why it did."""
    segments: list[Segment] = []
    skipped: list[str] = []
    for part, outcome in outcomes:
        if isinstance(outcome, KeptlogError):
            if part.from_offset == planned.from_offset:
                return None, outcome
            before = replace(planned, end_offset=part.from_offset)
            return Ingested(name, before, tuple(segments), tuple(skipped)), outcome
        segments += [Segment(**segment) for segment in outcome["segments"]]
        skipped += outcome["skipped"]
    return Ingested(name, planned, tuple(segments), tuple(skipped)), None


def _unkeyed(ingested: Ingested) -> str:
    name, topic = ingested.topic_partition, ingested.topic_partition.topic
    return (
        f"{name}: {ingested.unkeyed} of {ingested.records} records have no key, and cleans remove those from a "
        f"compacted topic: keep them with keptlog topic alter {topic} --config cleanup.policy=delete"
    )


def _require_covered(ingest: TopicIngest) -> None:
    """Whether the parts, in their order, are the ranges of the plan; a gap would be records that nobody reads.

    Raises:
        InvariantViolated: they are not.
    """
    ends = {TopicPartition(ingest.plan.topic, each.partition): each.from_offset for each in ingest.plan.ranges}
    for part in ingest.parts:
        if ends.get(part.topic_partition) != part.from_offset:
            raise _uncovered(part.topic_partition, part.from_offset)
        ends[part.topic_partition] = part.end_offset
    for each in ingest.plan.ranges:
        name = TopicPartition(ingest.plan.topic, each.partition)
        if ends[name] != each.end_offset:
            raise _uncovered(name, ends[name])


def _uncovered(name: TopicPartition, offset: int) -> InvariantViolated:
    return InvariantViolated(f"{name}: the parts to read don't cover what is planned around {offset}; report this")
