"""Removes old segments from the head of a log, whole: what retention has planned, or what an operator deletes.

    before   [ 0..9 ][10..19][20..29]            log start 0, first dirty 10
    after                    [20..29]            log start 20, first dirty 20

One commit a topic. It moves the log start offset, and with it a checkpoint that would lie below. Both are properties,
so the commit must be a compare-and-swap: it removes files, or, where records are deleted up to the middle of a segment
and no file goes, it adds an empty snapshot (ADR 10). A clean that is under way for such a log gets ``StalePlan``.

Readers begin at the log start. What lies below it in the first segment goes with that segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.errors import InvariantViolated, StalePlan, UnknownTopic
from keptlog.log.counted import counted
from keptlog.log.retention import log_start_after_deletion
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.commit import OPERATION, RUN_ID, Committer, Land, commit_id_of
from keptlog.table.file_metrics import LiveFile
from keptlog.table.freshness import require_old
from keptlog.table.lineage import COMMIT_ID
from keptlog.table.live_files import LiveFiles, logs_of
from keptlog.table.manifests import FileChange
from keptlog.table.mark import tell_cleared
from keptlog.table.state import LogState, first_dirty_offset, log_start_offset, uncleanable
from keptlog.table.topics import load_topic_table, topic_of


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What a deletion of records left. ``removed`` are the segments that went with it."""

    topic_partition: TopicPartition
    log_start_offset: int
    removed: tuple[Segment, ...]


@dataclass(frozen=True)
class SegmentRemoval:
    """The retention of one topic's logs, on its way to be carried out."""

    topic: str
    steps: Sequence[Retain]
    run_id: str

    def commit(self, committer: Committer, live_files: LiveFiles, broker_settings: Mapping[str, str]) -> None:
        """Check and commit.

        Raises:
            StalePlan: a log or its settings are no longer what the plan was made from; nothing landed.
            InvariantViolated: a step would remove nothing, or is of another topic.
        """
        for step in self.steps:
            if step.topic_partition.topic != self.topic or not step.segments:
                raise InvariantViolated(
                    f"retention of topic {self.topic} was given {step.topic_partition} with "
                    f"{counted(len(step.segments), 'segment')}: it must be of the topic and remove some (I1); "
                    "nothing was committed, please report this"
                )

        def prepare(table: Table) -> Land:
            live = live_files.of(table)
            logs = logs_of(self.topic, table.properties, live, topic_of(table, broker_settings).config)
            moved: dict[str, str] = {}
            for step in self.steps:
                log = logs[step.topic_partition.partition]
                require_old(step, log)
                moved |= _moved(log, step.new_log_start_offset, step.segments)
            removed = {segment.path for step in self.steps for segment in step.segments}
            summary = {RUN_ID: self.run_id, COMMIT_ID: self._commit_id, OPERATION: "retain"}
            return _landing(self.topic, FileChange(summary, moved, (), _live_at(live, removed), live), table)

        try:
            committer.commit(self.topic, prepare, self._commit_id)
        except UnknownTopic:
            raise StalePlan(f"topic {self.topic} was deleted meanwhile; there is nothing to do") from None

    @property
    def _commit_id(self) -> str:
        return commit_id_of(self.run_id, (segment for step in self.steps for segment in step.segments))


@dataclass(frozen=True)
class DeleteRecords:
    """The deletion of a log's records below an offset; -1 for all there are."""

    topic_partition: TopicPartition
    before_offset: int
    run_id: str

    def commit(self, committer: Committer, live_files: LiveFiles, broker_settings: Mapping[str, str]) -> DeletionResult:
        """Commit, on whatever the log is then; nothing to commit if it begins there already.

        Raises:
            UnknownTopic: no such topic or partition.
            InvalidConfig: the offset lies outside of the log.
        """
        topic, partition = self.topic_partition.topic, self.topic_partition.partition
        done: DeletionResult | None = None

        def prepare(table: Table) -> Land | None:
            nonlocal done
            described = topic_of(table, broker_settings)
            if partition >= described.partitions:
                raise UnknownTopic(f"topic {topic!r} has no partition {partition}: use 0 to {described.partitions - 1}")
            live = live_files.of(table)
            log = logs_of(topic, table.properties, live, described.config)[partition]
            start = log_start_after_deletion(log, self.before_offset)
            gone = tuple(segment for segment in log.segments if segment.last_offset < start)
            done = DeletionResult(self.topic_partition, start, gone)
            if start == log.log_start_offset:
                return None
            removed = _live_at(live, {segment.path for segment in gone})
            summary = {RUN_ID: self.run_id, COMMIT_ID: self.run_id, OPERATION: "delete-records"}
            return _landing(topic, FileChange(summary, _moved(log, start, gone), (), removed, live), table)

        committer.commit(topic, prepare, self.run_id)
        if done is None:  # an earlier call of the same run has landed
            properties = load_topic_table(committer.catalog, topic).properties
            return DeletionResult(
                self.topic_partition, LogState.read(topic, partition, properties).log_start_offset, ()
            )
        return done


def _moved(log: Log, start: int, removed: Iterable[Segment]) -> dict[str, str]:
    """The log's state once it begins at ``start``; with its last dirty segment, the reason for a mark is gone."""
    partition = log.topic_partition.partition
    moved = {log_start_offset(partition): str(start)}
    if log.checkpoint is not None and log.checkpoint < start:
        moved[first_dirty_offset(partition)] = str(start)
    gone = {segment.path for segment in removed}
    first_dirty = max(log.checkpoint or 0, start)
    if log.uncleanable and not any(s.last_offset >= first_dirty for s in log.segments if s.path not in gone):
        moved[uncleanable(partition)] = ""
    return moved


def _landing(topic: str, change: FileChange, table: Table) -> Land:
    before = table.properties

    def land() -> None:
        change.land(table)
        tell_cleared(topic, before, change.properties)

    return land


def _live_at(live: Mapping[int, Sequence[LiveFile]], paths: set[str]) -> list[LiveFile]:
    return [file for files in live.values() for file in files if file.segment.path in paths]
