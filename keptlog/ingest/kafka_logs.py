"""Kafka's log directories as a source, read without a broker.

    survey     one job scans every log: where it ends, what is aborted
    cut        between segments, into parts that keep all cores busy and are not tiny; a segment is never cut, for only
               its beginning is known
    tombstones only up to where the broker's cleaner has come is noted, if that
    confirm    nothing: a segment that became shorter since it was listed is not read

A directory is one broker's, which may hold only some partitions of a topic: the others are left as they are, and may
come from another directory. A topic's id, if the directory notes it, is stored with the topic: so an import can go on
from a newer copy of the directory, or from the broker itself, and never from another topic of the same name.

A broker with tiered storage notes where a log begins, which may lie before its first segment in the directory: the head
is not read then, and that is told.

A log is read up to its high watermark, where the directory notes one: what lies above could still be taken back when it
was copied (ADR 33).

A copy may lack a segment. Where an index lies without its segment, the log stops. Offsets in no segment, where no
cleaner has come, and an end below the high watermark are told.

What the broker's cleaner noted is not taken over: all that arrives is dirty, and the first clean here cleans it
(ADR 24).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.engine.bundles import contiguous_runs
from keptlog.engine.jobs import Jobs, run_each
from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt
from keptlog.ingest.source import EpochEnds, Survey, TopicSurvey
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity, SourceLog, SourceTopic, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.sources.kafka_log.batches import NO_END
from keptlog.sources.kafka_log.segments import end_written_ms, lost_segment, segments_to_read, why_torn
from keptlog.sources.kafka_log.tasks import LogPart, Noted, ScanTask, scan_from

if TYPE_CHECKING:
    from keptlog.sources.kafka_log.batches import LogSegment
    from keptlog.sources.kafka_log.directory import LogDirectory
    from keptlog.sources.kafka_log.transactions import LogScan

_PARTS_PER_CORE = 4
_LEAST_PART_BYTES = 64 * 2**20
"""Each part ends a segment here: smaller ones are not worth their files."""
_MOST_PART_BYTES = 2**30
"""So that a task that fails repeats no more than that; a single segment may be larger."""


@dataclass(frozen=True, slots=True)
class _ScannedLog:
    """One log, looked at."""

    name: TopicPartition
    """The one here."""
    segments: tuple[LogSegment, ...]
    scan: LogScan
    epoch_starts: tuple[tuple[int, int], ...]

    def as_source(self, as_of_ms: int | None, position: int) -> SourceLog:
        """As a plan wants to know it; what is damaged there now, and came in before, is not missing."""
        epochs = self.epoch_starts
        latest = epochs[-1][0] if epochs else None
        scan = self.scan
        start, end = scan.log_start_offset, scan.last_stable_offset
        if scan.torn and scan.log_end_offset < position <= scan.torn.end_offset < NO_END:
            end = position
        return SourceLog(self.name.partition, start, end, latest, epochs or None, as_of_ms)


@dataclass
class KafkaLogs:
    """Logs in the directories of brokers. To scan them takes a job; nothing is started before there is one to scan."""

    logs: Mapping[str, Sequence[LogDirectory]]
    """The topic here to the logs of one topic there."""
    config: Mapping[str, str]
    """The settings of topics that don't exist yet."""
    start_jobs: Callable[[], Jobs]
    skip_corrupt: bool = False
    """Leave out what is broken in the middle of a log, rather than stop there."""
    above_high_watermark: bool = False
    """Read what lies above the high watermark too."""
    _scanned: dict[TopicPartition, _ScannedLog] = field(default_factory=dict)
    _as_of_ms: dict[TopicPartition, int] = field(default_factory=dict)
    _torn_as_of_ms: dict[TopicPartition, int] = field(default_factory=dict)
    """The same, should the end turn out to be torn: it is then in the last segment with any bytes."""
    _lost: dict[TopicPartition, str] = field(default_factory=dict)
    """What says that a segment is missing, where that is skipped."""

    @property
    def topics(self) -> Collection[str]:
        return self.logs.keys()

    @property
    def is_copy(self) -> bool:
        return True

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        """As ``Source`` says; a log that can't be read to its end fails alone."""
        failed: dict[str, KeptlogError] = {}
        identities: dict[str, SourceIdentity] = {}
        for topic in stored:
            try:
                identities[topic] = _identity_of(self.logs[topic])
            except InvalidConfig as error:
                failed[topic] = error
        tasks, unlisted = self._scan_tasks({topic: stored[topic] for topic in identities})
        if not tasks:
            return Survey((), failed | unlisted)
        # They read the source alone, for which no catalog vends anything.
        scanned, unread = _scans(self.start_jobs().within(()), tasks)
        self._scanned |= {log.name: log for log in scanned}
        by_topic: dict[str, list[_ScannedLog]] = defaultdict(list)
        for log in scanned:
            by_topic[log.name.topic].append(log)
        topics = [
            TopicSurvey(
                topic,
                _found(identities[topic], logs, self._times_ms(logs), stored[topic]),
                self.config,
                lacking=self._lacking(logs),
            )
            for topic, logs in by_topic.items()
        ]
        warnings: list[str] = []
        for log in scanned:
            position = _position(stored[log.name.topic], log.name)
            noted = self._noted(log.name)
            warnings += [*_warnings(log, position), *_of_a_copy(log, noted, position or 0)]
            warnings += _doubtful(log, noted, position or 0)
            warnings += [f"{log.name}: {self._lost[log.name]}"] if log.name in self._lost else []
        return Survey(tuple(topics), failed | unlisted | unread, tuple(warnings))

    def ends_of_epochs(self, _plans: Sequence[IngestPlan]) -> EpochEnds:
        """Never asked: a directory has the beginnings of all epochs."""
        return {}, {}

    def cut(self, plans: Sequence[IngestPlan], cores: int) -> list[tuple[LogPart, ...]]:
        """As ``Source`` says."""
        to_read = {
            TopicPartition(plan.topic, each.partition): each
            for plan in plans
            for each in plan.ranges
            if each.from_offset < each.end_offset
        }
        total_bytes = sum(
            segment.size_bytes for name, each in to_read.items() for segment in _segments_in(self._scanned[name], each)
        )
        even_bytes = -(-total_bytes // (cores * _PARTS_PER_CORE))
        target_bytes = min(max(even_bytes, _LEAST_PART_BYTES), _MOST_PART_BYTES)
        parts: dict[str, list[LogPart]] = defaultdict(list)
        for name, each in to_read.items():
            parts[name.topic] += _parts(self._scanned[name], each, target_bytes, skip_corrupt=self.skip_corrupt)
        return [tuple(parts[plan.topic]) for plan in plans]

    def tombstones_kept_ms(self, plan: IngestPlan, partitions: Collection[int]) -> dict[int, int | None]:
        """As ``Source`` says. A directory has no settings of topics, and notes up to where its cleaner has come."""
        cleaned = {log.topic_partition.partition: log.first_dirty_offset for log in self.logs[plan.topic]}
        positions = {each.partition: each.position for each in plan.ranges}

        def may_have_cleaned(partition: int) -> bool:
            first_dirty, position = cleaned[partition], positions[partition]
            return first_dirty is None or position is None or first_dirty > position

        return {partition: None for partition in partitions if may_have_cleaned(partition)}

    def confirm(self, plan: IngestPlan) -> None:
        """Says nothing: a part has noticed what its segments lost since they were listed."""

    def _scan_tasks(
        self, topics: Mapping[str, StoredSource | None]
    ) -> tuple[dict[TopicPartition, ScanTask], dict[str, KeptlogError]]:
        """A task for each log of these topics, and the logs whose folder, or a note in it, can't be read."""
        tasks: dict[TopicPartition, ScanTask] = {}
        failed: dict[str, KeptlogError] = {}
        for topic, stored in topics.items():
            for log in self.logs[topic]:
                name = TopicPartition(topic, log.topic_partition.partition)
                if log.unreadable:
                    failed[str(name)] = log.unreadable
                    continue
                try:
                    segments = tuple(segments_to_read(log.folder))
                    self._look_for_lost(name, log, segments)
                    ends = self._high_watermark(log, stored), log.epoch_starts, _position(stored, name) or 0
                    tasks[name] = ScanTask(segments, Noted(log.log_start_offset, *ends), self.skip_corrupt)
                    self._as_of_ms |= {name: end_written_ms(segments)} if segments else {}
                    filled = [segment for segment in segments if segment.size_bytes]
                    self._torn_as_of_ms |= {name: end_written_ms(filled)} if filled else {}
                except KeptlogError as error:
                    failed[str(name)] = error
        return tasks, failed

    def _look_for_lost(self, name: TopicPartition, log: LogDirectory, segments: Sequence[LogSegment]) -> None:
        if why := lost_segment(log.folder, segments):
            if not self.skip_corrupt:
                raise LogCorrupt(
                    f"{why}: restore that file, remove what is left of its segment if it was deleted, or skip what is "
                    "corrupt and lose its records"
                )
            self._lost[name] = why

    def _times_ms(self, logs: Sequence[_ScannedLog]) -> dict[TopicPartition, int]:
        """As of when each log ends where it does: what ends at its high watermark, as of when that was noted."""
        times_ms = {log.name: self._as_of_ms[log.name] for log in logs if log.name in self._as_of_ms}
        torn = {log.name for log in logs if log.scan.torn}
        times_ms |= {name: self._torn_as_of_ms[name] for name in torn if name in self._torn_as_of_ms}
        for log in logs:
            noted_ms = self._noted(log.name).high_watermark_ms
            if log.scan.uncommitted_from is not None and noted_ms is not None and log.name in times_ms:
                times_ms[log.name] = min(times_ms[log.name], noted_ms)
        return times_ms

    def _lacking(self, logs: Sequence[_ScannedLog]) -> dict[int, str]:
        """By partition, what shows that a segment is missing."""
        gaps = {log.name: _unexplained(log, self._noted(log.name), 0) for log in logs}
        told = {name: _in_no_segment(name, found) for name, found in gaps.items() if found}
        lost = {log.name: self._lost[log.name] for log in logs if log.name in self._lost}
        return {name.partition: why for name, why in (told | lost).items()}

    def _noted(self, name: TopicPartition) -> LogDirectory:
        return next(log for log in self.logs[name.topic] if log.topic_partition.partition == name.partition)

    def _high_watermark(self, log: LogDirectory, stored: StoredSource | None) -> int | None:
        """Up to where a log is read; null for all of it. What is here already is not taken back."""
        if self.above_high_watermark or log.high_watermark is None:
            return None
        return max(log.high_watermark, _position(stored, log.topic_partition) or 0)


def _position(stored: StoredSource | None, log: TopicPartition) -> int | None:
    """Up to where a log of a topic is here; null if nothing was ever read."""
    positions = stored.positions if stored else ()
    return positions[log.partition] if log.partition < len(positions) else None


def _scans(jobs: Jobs, tasks: Mapping[TopicPartition, ScanTask]) -> tuple[list[_ScannedLog], dict[str, KeptlogError]]:
    """Every log that can be read to its end, and why the others can't."""
    scanned: list[_ScannedLog] = []
    failed: dict[str, KeptlogError] = {}
    weights = [task.weight for task in tasks.values()]
    outcomes = run_each(jobs, list(tasks.values()), weights, f"looking at {counted(len(tasks), 'log')}")
    for (name, task), outcome in zip(tasks.items(), outcomes, strict=True):
        if isinstance(outcome, KeptlogError):
            failed[str(name)] = outcome
        else:
            scanned.append(_ScannedLog(name, task.segments, scan_from(outcome), task.noted.epoch_starts))
    return scanned, failed


def _found(
    identity: SourceIdentity,
    logs: Sequence[_ScannedLog],
    as_of_ms: Mapping[TopicPartition, int],
    stored: StoredSource | None,
) -> SourceTopic:
    """A topic as these of its logs show it; other partitions are in other brokers' directories."""
    found = (log.as_source(as_of_ms.get(log.name), _position(stored, log.name) or 0) for log in logs)
    return SourceTopic(identity, tuple(found), is_whole=False)


def _identity_of(logs: Sequence[LogDirectory]) -> SourceIdentity:
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


def _warnings(log: _ScannedLog, position: int | None) -> list[str]:
    lines: list[str] = []
    scan = log.scan
    if scan.absent_from is not None and (position or 0) < scan.log_start_offset:
        lines.append(
            f"{log.name}: the broker noted that it begins at {scan.absent_from}, and its segments here begin at "
            f"{scan.log_start_offset}: what lies between is elsewhere (tiered storage), or was deleted since, and does "
            "not come in"
        )
    if scan.torn:
        why = why_torn(scan.torn, position or 0)
        lines.append(f"{log.name}: it ends at {scan.log_end_offset}, {why}: {scan.torn}")
    behind = [each for each in scan.corrupt if each.next_offset >= scan.log_end_offset]
    if behind:
        lines.append(f"{log.name}: it ends at {scan.log_end_offset}, and what lies behind is corrupt: {behind[0]}")
    committed_end = scan.log_end_offset if scan.uncommitted_from is None else scan.uncommitted_from
    if scan.uncommitted_from is not None:
        lines.append(
            f"{log.name}: offsets {scan.uncommitted_from} to {scan.log_end_offset - 1} lie above its high watermark: "
            "another leader may have taken them back; they stay out until a newer copy has them below it, or take them "
            "now (--above-high-watermark)"
        )
    if scan.last_stable_offset < committed_end:
        may_be_over = [
            each.lost_from
            for each in scan.doubtful
            if each.marker_offset is None and each.first_offset <= scan.last_stable_offset
        ]
        why = f", and what is lost from offset {min(may_be_over)} on may have ended it" if may_be_over else ""
        lines.append(
            f"{log.name}: a transaction is open from offset {scan.last_stable_offset} on{why}; offsets up to "
            f"{committed_end - 1} stay out until a copy of the directory has its end"
        )
    return lines


def _doubtful(log: _ScannedLog, noted: LogDirectory, position: int) -> list[str]:
    """Of transactions that end behind the position, those of which nobody can tell whether they were committed.

    A gap between segments that the broker's cleaner left has lost no marker.
    """
    of_cleaner = {start for start, end in log.scan.between_segments}
    of_cleaner -= {start for start, end in log.scan.between_segments if end > _cleaned_to(log, noted)}
    found = [
        each
        for each in log.scan.doubtful
        if each.marker_offset is not None and each.marker_offset >= position and each.lost_from not in of_cleaner
    ]
    if not found:
        return []
    one, more = found[0], len(found) - 1
    others = f" (and so with {counted(more, 'more transaction')})" if more else ""
    taken_for = "aborted" if one.is_aborted else "committed"
    return [
        f"{log.name}: what is lost from offset {one.lost_from} on may have ended the transaction that begins at "
        f"{one.first_offset}: its records are taken for {taken_for}, as the next marker of its producer says, at "
        f"{one.marker_offset}{others}; compare with the broker, and read on from a whole copy (keptlog truncate "
        f"{log.name} {min(each.first_offset for each in found)})"
    ]


def _unexplained(log: _ScannedLog, noted: LogDirectory, position: int) -> list[tuple[int, int]]:
    """Offsets [from, end) between segments, behind a position and behind what the broker's cleaner has cleaned."""
    known_to = max(_cleaned_to(log, noted), position)
    return [(max(start, known_to), end) for start, end in log.scan.between_segments if end > known_to]


def _cleaned_to(log: _ScannedLog, noted: LogDirectory) -> int:
    """Below it the broker's cleaner, or what deletes from the head, explains what is in no segment."""
    return max(noted.first_dirty_offset or 0, log.scan.log_start_offset)


def _in_no_segment(name: TopicPartition, gaps: Sequence[tuple[int, int]]) -> str:
    (start, end), more = gaps[0], len(gaps) - 1
    others = f", nor are those of {counted(more, 'more gap')}" if more else ""
    what = f"{name}: offsets {start} to {end - 1} are in no segment{others}"
    return f"{what}, and nothing notes that the broker's cleaner has come there"


def _of_a_copy(log: _ScannedLog, noted: LogDirectory, position: int) -> list[str]:
    """What a log seems to lack in this copy, as far as it is not here yet."""
    lines: list[str] = []
    scan = log.scan
    if gaps := _unexplained(log, noted, position):
        lines.append(
            f"{_in_no_segment(log.name, gaps)}: if a file is missing or was cut off, its records did not come in, and "
            "no later import brings them; compare with the broker, and read on from a whole copy (keptlog truncate "
            f"{log.name} {gaps[0][0]})"
        )
    if noted.high_watermark is not None and noted.high_watermark > max(scan.log_end_offset, position):
        lines.append(
            f"{log.name}: it ends at {scan.log_end_offset}, and the broker noted that all replicas have what lies "
            f"below {noted.high_watermark}: what lies between is not in this copy, and comes in with one that has it"
        )
    return lines
