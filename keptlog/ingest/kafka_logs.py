"""Kafka's log directories into topics here, read without a broker.

    logs --scan, job 1--> where each ends, what is aborted --plan--> ranges --cut--> parts --ingest, job 2--> live

Both jobs work on many logs at once. A log is cut between its segments, into parts that keep all cores busy and are not
tiny; a segment is never cut, for only its beginning is known.

A directory is one broker's, which may hold only some partitions of a topic: the others are left as they are, and may
come from another directory. A topic's id, if the directory notes it, is stored with the topic: so an import can go on
from a newer copy of the directory, or from the broker itself, and never from another topic of the same name.

What the broker's cleaner noted is not taken over: all that arrives is dirty, and the first clean here cleans it
(ADR 24).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.engine.bundles import contiguous_runs
from keptlog.engine.jobs import Jobs, run_each
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.ingest.ingest_pass import Ingest, IngestResult, TopicIngest
from keptlog.log.counted import counted
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity, SourceLog, SourceTopic
from keptlog.log.topic_partition import TopicPartition
from keptlog.progress import Progress
from keptlog.sources.kafka_log.batches import LogSegment
from keptlog.sources.kafka_log.directory import LogDirectory
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.tasks import LogPart, ScanTask, scan_from
from keptlog.sources.kafka_log.transactions import LogScan

_PARTS_PER_CORE = 4
_LEAST_PART_BYTES = 64 * 2**20
"""Each part ends a segment here: smaller ones are not worth their files."""
_MOST_PART_BYTES = 2**30
"""So that a task that fails repeats no more than that; a single segment may be larger."""


@dataclass(frozen=True, slots=True)
class WantedLogs:
    """What to import, and how."""

    logs: Mapping[str, Sequence[LogDirectory]]
    """The topic here, which need not exist, to the logs of one topic there."""
    config: Mapping[str, str]
    """The settings of topics that don't exist yet."""
    skip_corrupt: bool = False
    """Leave out what is broken in the middle of a log, rather than stop there."""
    skip_lost: bool = False
    """Go on where a log begins now, although records before that were never read."""


@dataclass(frozen=True, slots=True)
class _ScannedLog:
    """One log, looked at."""

    name: TopicPartition
    """The one here."""
    segments: tuple[LogSegment, ...]
    scan: LogScan


Scanned = Mapping[str, Mapping[int, _ScannedLog]]
"""The logs by topic and partition here."""


def import_logs(ingest: Ingest, wanted: WantedLogs, run_id: str, progress: Progress) -> IngestResult:
    """Scan, plan, read and commit; a topic or topic-partition that fails stops no other.

    Raises:
        StorageUnavailable: Spark can't be started, or fails; nothing was committed.
    """
    run = _Import(ingest, wanted)
    sources = run.sources()
    if not sources:
        return IngestResult(run_id, (), (), run.failed)
    jobs = ingest.engine.start_jobs(run_id, progress)
    scanned = run.scan(jobs, sources)
    result = ingest.run(run.cut(run.plans(sources, scanned), scanned, jobs.cores), run_id, progress)
    warnings = [line for logs in scanned.values() for log in logs.values() for line in _warnings(log)]
    return replace(result, failed=run.failed | result.failed, warnings=(*warnings, *result.warnings))


@dataclass
class _Import:
    """An import on its way. ``failed`` takes topics and topic-partitions that can't be had, with the error."""

    ingest: Ingest
    wanted: WantedLogs
    failed: dict[str, KeptlogError] = field(default_factory=dict)

    def sources(self) -> dict[str, SourceIdentity]:
        """The source of each topic here."""
        sources: dict[str, SourceIdentity] = {}
        for topic, logs in self.wanted.logs.items():
            try:
                sources[topic] = _source_of(logs)
            except InvalidConfig as error:
                self.failed[topic] = error
        return sources

    def scan(self, jobs: Jobs, topics: Mapping[str, SourceIdentity]) -> Scanned:
        """Every log of these topics that can be read to its end, by topic and partition."""
        tasks: dict[TopicPartition, ScanTask] = {}
        for topic in topics:
            for log in self.wanted.logs[topic]:
                name = TopicPartition(topic, log.topic_partition.partition)
                try:
                    segments = tuple(segments_to_read(log.folder))
                    tasks[name] = ScanTask(segments, log.log_start_offset, self.wanted.skip_corrupt)
                except KeptlogError as error:
                    self.failed[str(name)] = error
        weights = [task.weight for task in tasks.values()]
        outcomes = run_each(jobs, list(tasks.values()), weights, f"looking at {counted(len(tasks), 'log')}")
        scanned: dict[str, dict[int, _ScannedLog]] = defaultdict(dict)
        for (name, task), outcome in zip(tasks.items(), outcomes, strict=True):
            if isinstance(outcome, KeptlogError):
                self.failed[str(name)] = outcome
            else:
                scanned[name.topic][name.partition] = _ScannedLog(name, task.segments, scan_from(outcome))
        return scanned

    def plans(
        self, sources: Mapping[str, SourceIdentity], scanned: Mapping[str, Mapping[int, _ScannedLog]]
    ) -> list[IngestPlan]:
        """What to read of each topic."""
        plans: list[IngestPlan] = []
        for topic, logs in scanned.items():
            found = [
                SourceLog(partition, log.scan.log_start_offset, log.scan.last_stable_offset)
                for partition, log in logs.items()
            ]
            there = SourceTopic(sources[topic], tuple(found))
            try:
                plan = self.ingest.plan(topic, there, skip_lost=self.wanted.skip_lost)
            except KeptlogError as error:
                self.failed[topic] = error
                continue
            # Other partitions are in other brokers' directories.
            stopped = {partition: why for partition, why in plan.stopped.items() if partition in logs}
            plans.append(replace(plan, stopped=stopped))
        return plans

    def cut(self, plans: Sequence[IngestPlan], scanned: Scanned, cores: int) -> list[TopicIngest]:
        """The plans with their parts."""
        to_read = [
            (plan, each, scanned[plan.topic][each.partition])
            for plan in plans
            for each in plan.ranges
            if each.from_offset < each.end_offset
        ]
        total_bytes = sum(segment.size_bytes for _, each, log in to_read for segment in _segments_in(log, each))
        even_bytes = -(-total_bytes // (cores * _PARTS_PER_CORE))
        target_bytes = min(max(even_bytes, _LEAST_PART_BYTES), _MOST_PART_BYTES)
        parts: dict[str, list[LogPart]] = defaultdict(list)
        for plan, each, log in to_read:
            parts[plan.topic] += _parts(log, each, target_bytes, skip_corrupt=self.wanted.skip_corrupt)
        return [TopicIngest(plan, tuple(parts[plan.topic]), self.wanted.config) for plan in plans]


def _source_of(logs: Sequence[LogDirectory]) -> SourceIdentity:
    """The topic there.

    Raises:
        InvalidConfig: its partitions are of several topics that have, or had, one name.
    """
    topic = logs[0].topic_partition.topic
    with_id = {log.topic_id: log for log in logs if log.topic_id is not None}
    if len(with_id) > 1:
        found = ", ".join(f"{log.folder.name} has {topic_id}" for topic_id, log in sorted(with_id.items()))
        raise InvalidConfig(
            f"the partitions of {topic} in {logs[0].folder.parent} are not of one topic: {found}; move those away that "
            "are left of a topic that was deleted"
        )
    return SourceIdentity(topic, next(iter(with_id), None))


def _segments_in(log: _ScannedLog, read: OffsetRange) -> list[LogSegment]:
    return [
        segment
        for segment in log.segments
        if segment.end_offset > read.from_offset and segment.base_offset < read.end_offset
    ]


def _parts(log: _ScannedLog, read: OffsetRange, target_bytes: int, *, skip_corrupt: bool) -> list[LogPart]:
    """A range cut into parts of about ``target_bytes``."""
    runs = contiguous_runs(_segments_in(log, read), target_bytes) or [()]
    starts = [read.from_offset, *(run[0].base_offset for run in runs[1:])]
    ends = [*starts[1:], read.end_offset]
    return [
        LogPart(log.name, run, log.scan.between(start, end), start, end, skip_corrupt)
        for run, start, end in zip(runs, starts, ends, strict=True)
    ]


def _warnings(log: _ScannedLog) -> list[str]:
    lines: list[str] = []
    scan = log.scan
    if scan.torn:
        lines.append(f"{log.name}: it ends at {scan.log_end_offset}, its last batch was not written whole: {scan.torn}")
    if scan.last_stable_offset < scan.log_end_offset:
        lines.append(
            f"{log.name}: a transaction is open from offset {scan.last_stable_offset} on; offsets up to "
            f"{scan.log_end_offset - 1} stay out until a copy of the directory has its end"
        )
    return lines
