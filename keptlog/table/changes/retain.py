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
from dataclasses import dataclass, replace

from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, InvariantViolated, StalePlan, UnknownTopic
from keptlog.log.retention import log_start_after_deletion
from keptlog.log.sections import first_dirty_of
from keptlog.log.segment import Log, Segment, total_bytes
from keptlog.log.steps import Retain
from keptlog.log.told.history import DELETE_RECORDS
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.table.changes.mark import tell_cleared
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.freshness import require_each, require_old
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.topics import require_partition, topic_of
from keptlog.table.metadata.change import Change, commit_id_of, log_change
from keptlog.table.metadata.live_files import LiveFiles, live_at, logs_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.runs import DELETED, LandedChange
from keptlog.table.metadata.state import LogState, first_dirty_offset, log_start_offset, uncleanable
from keptlog.table.metadata.stored_json import from_json, to_json
from keptlog.table.removal.held import HeldFile, held_below
from keptlog.table.waiting.reaching import reaching


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What a deletion of records left: where the log begins now, and the segments that went with it."""

    topic_partition: TopicPartition
    log_start_offset: int
    segments: int
    bytes: int
    run_id: str
    is_repeated: bool = False
    """Whether this run id has deleted before: then this is what it did at that time, and nothing more went."""
    held: tuple[HeldFile, ...] = ()
    """Live segments in which deleted records still lie: they go with those."""


@dataclass(frozen=True, slots=True)
class _StoredDeletion:
    """What a deletion did, as its snapshot tells it."""

    log_start_offset: int
    segments: int
    bytes: int


@dataclass(frozen=True)
class SegmentRemoval:
    """The retention of one topic's logs, on its way to be carried out."""

    topic: str
    steps: Sequence[Retain]
    run_id: str

    def commit(self, committer: Committer, live_files: LiveFiles, broker_settings: Mapping[str, str]) -> None:
        """Check and commit.

        Raises:
            StalePlan: a log or its settings are no longer what the plan was made from; nothing landed. Its ``logs`` are
                those, if the others could land without them.
            InvariantViolated: a step would remove nothing, or is of another topic.
        """
        for step in self.steps:
            if step.topic_partition.topic != self.topic or not step.segments:
                raise InvariantViolated(
                    f"retention of topic {self.topic} was given {step.topic_partition} with "
                    f"{counted(len(step.segments), 'segment')}: it must be of the topic and remove some (I1); "
                    "nothing was committed, please report this"
                )
        change = self._change

        def prepare(table: Table) -> Land:
            live = live_files.of(table)
            logs = logs_of(self.topic, table.properties, live, topic_of(table, broker_settings).config)
            by_log = {str(step.topic_partition): step for step in self.steps}
            require_each(by_log, lambda step: require_old(step, logs[step.topic_partition.partition]))
            moved: dict[str, str] = {}
            for step in self.steps:
                moved |= _moved(logs[step.topic_partition.partition], step.new_log_start_offset, step.segments)
            removed = {segment.path for step in self.steps for segment in step.segments}
            summary = change.summary("retain")
            return _landing(self.topic, FileChange(summary, moved, (), live_at(live, removed), live), table)

        try:
            committer.commit(change, prepare)
        except UnknownTopic:
            raise StalePlan(f"topic {self.topic} was deleted meanwhile; there is nothing to do") from None

    @property
    def _change(self) -> Change:
        commit_id = commit_id_of(self.run_id, (segment.path for step in self.steps for segment in step.segments))
        return Change(self.topic, next((step.topic_id for step in self.steps), None), commit_id)


def what_goes(log: Log, before_offset: int) -> tuple[int, tuple[Segment, ...]]:
    """Where a log begins once its records below an offset (-1: all) are deleted, and the segments that go at once.

    Raises:
        InvalidConfig: the offset lies outside of the log.
    """
    start = log_start_after_deletion(log, before_offset)
    return start, tuple(segment for segment in log.segments if segment.last_offset < start)


@dataclass(frozen=True)
class DeleteRecords:
    """The deletion of a log's records below an offset; -1 for all there are.

    All there are is more at each call. So a run id that was given may have deleted before, and then deletes no more.
    """

    topic_partition: TopicPartition
    before_offset: int
    run_id: str
    is_new_run: bool
    """Whether its run id was made for it, so that it can't have deleted before."""
    topic_id: str | None = None
    """The topic that is meant; null for the one that has the name."""

    def commit(self, committer: Committer, live_files: LiveFiles, broker_settings: Mapping[str, str]) -> DeletionResult:
        """Commit, on whatever the log is then.

        Where it begins there already nothing is committed, unless a run id was given: then it is remembered that it is
        done.

        Raises:
            UnknownTopic: no such topic or partition.
            InvalidConfig: the offset lies outside of the log, or its run id has deleted before, and nobody knows where.
            StalePlan: the topic that was meant is gone, and a later one has its name.
        """
        topic, partition = self.topic_partition.topic, self.topic_partition.partition
        change = self._change
        done: _StoredDeletion | None = None
        held: tuple[HeldFile, ...] = ()

        def prepare(table: Table) -> Land | None:
            nonlocal done, held
            described = topic_of(table, broker_settings)
            require_partition(described, partition)
            live = live_files.of(table)
            log = logs_of(topic, table.properties, live, described.config)[partition]
            start, gone = what_goes(log, self.before_offset)
            done = _StoredDeletion(start, len(gone), total_bytes(gone))
            held = held_below(replace(log, log_start_offset=start, segments=log.segments[len(gone) :]))
            is_done = start == log.log_start_offset
            if is_done and self.is_new_run:
                return None
            removed = live_at(live, {segment.path for segment in gone})
            summary = change.summary(DELETE_RECORDS) | {DELETED: to_json(done)}
            moved = {} if is_done else _moved(log, start, gone)
            return _landing(topic, FileChange(summary, moved, (), removed, live), table)

        landed, mine = committer.commit(change, prepare), done
        if done is None or (landed and not self.is_new_run):
            # Another process may have carried out the same run id, on another log than what was seen here.
            table = load_topic_table(committer.catalog, topic)
            done = self._earlier(landed, table)
            config = topic_of(table, broker_settings).config
            held = held_below(logs_of(topic, table.properties, live_files.of(table), config)[partition])
        is_repeated = done != mine
        numbers = (done.log_start_offset, done.segments, done.bytes)
        return DeletionResult(self.topic_partition, *numbers, self.run_id, is_repeated, held)

    def has_landed(self, committer: Committer) -> bool:
        """Whether its run id has deleted before, so that nothing more would go.

        Raises:
            InvalidConfig: it has, and nobody knows of which log.
        """
        with reaching(f"topic {self.topic_partition.topic} can't be read"):
            table = load_topic_table(committer.catalog, self.topic_partition.topic)
            landed = committer.find_earlier(self._change, table)
            if landed:
                self._require_of_this_log(landed, table)
            return landed is not None

    @property
    def _change(self) -> Change:
        log, is_new_run = self.topic_partition, self.is_new_run
        return log_change(log, self.run_id, DELETE_RECORDS, is_new_run=is_new_run, topic_id=self.topic_id)

    def _earlier(self, landed: LandedChange | None, table: Table) -> _StoredDeletion:
        """What an earlier call of the same run has done; before format 1.1 nobody wrote that down."""
        topic, partition = self.topic_partition.topic, self.topic_partition.partition
        if landed:
            self._require_of_this_log(landed, table)
        if landed is None or landed.result is None:
            return _StoredDeletion(LogState.read(topic, partition, table.properties).log_start_offset, 0, 0)
        where, remedy = f"topic {topic}: run {self.run_id}: {DELETED}", "use another run id"
        return from_json(_StoredDeletion, landed.result, where, "result of a deletion", remedy)

    def _require_of_this_log(self, landed: LandedChange, table: Table) -> None:
        """Raises InvalidConfig if what has landed may be of another log: it has no partition in its id."""
        topic = topic_of(table, {})
        if landed.commit_id != self._change.commit_id and topic.partitions > 1:
            raise InvalidConfig(
                f"run id {self.run_id} has deleted records of topic {topic.name} before, and a keptlog of then did not "
                "note of which log: nothing was deleted now, use another run id"
            )


def _moved(log: Log, start: int, removed: Iterable[Segment]) -> dict[str, str]:
    """The log's state once it begins at ``start``; with its last dirty segment, the reason for a mark is gone."""
    partition = log.topic_partition.partition
    moved = {log_start_offset(partition): str(start)}
    if log.checkpoint is not None and log.checkpoint < start:
        moved[first_dirty_offset(partition)] = str(start)
    gone = {segment.path for segment in removed}
    # A checkpoint that lies outside of the log says nothing: then all is dirty.
    first_dirty, _ = first_dirty_of(replace(log, log_start_offset=start))
    if log.uncleanable and not any(s.last_offset >= first_dirty for s in log.segments if s.path not in gone):
        moved[uncleanable(partition)] = ""
    return moved


def _landing(topic: str, change: FileChange, table: Table) -> Land:
    before = table.properties
    commit = change.written(table)

    def land() -> None:
        commit()
        tell_cleared(topic, before, change.properties)

    return land
