"""Replaces segments by their cleaned ones: the moment at which a clean becomes visible, whole.

Files and checkpoints of all topic-partitions of a topic move in one commit, and only if the log still is what the plan
was made from. Whoever comes second, a zombie or another cleaner, finds that it is not, and gets ``StalePlan``:

    plan      [ a ][ b ][ c ]           removes a, b, c, adds d, checkpoint 0 -> 30
    now       [ a ][ x ]                b and c are not live: somebody else has cleaned them

One log of several that is not is told as such (``StalePlan.logs``). Nothing lands, and the others keep what was staged
of them: whoever sent them sends them again without it. A log in which the same has landed before is told too
(``StalePlan.landed``): a pass may be committed again, because a process that was killed did not tell what landed.

Appends that came meanwhile lie behind the planned range and disturb nobody: the next round builds on them. Settings
that were altered meanwhile count as they are now: a topic that is no longer compacted, that has another strategy, or
whose minimum lag now protects what was cleaned, keeps its segments. So does one that was deleted, and one of which a
tombstone would go that a reader holds who has come meanwhile. Who misses one because his time was up is marked in the
same commit (``readers``).

Of a step that is done in legs, each leg is a swap. The first ones move segments only; the last one moves the
checkpoint, if what the legs before it have left still is there.

A drop of records (``keptlog.log.drop``) goes the same way. It asks no setting, moves no checkpoint and clears no mark
of an earlier failure, for it is no clean. It may change nothing but watermarks: then the commit adds an empty snapshot,
so that it is a compare-and-swap all the same (ADR 10).

Outcomes can be committed again, and by another process: Dagster hands them on. So if they are refused, their files are
deleted only where they can never land any more, and never did: a segment that they replace is gone, and no snapshot
refers to them. That is asked of each log; a drop lands in all logs or is made anew. Of a topic that is gone they are
deleted unless its table may have landed them, and have another name since (``elsewhere``).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from keptlog.errors import InvariantViolated, KeptlogError, LogCorrupt, StalePlan, UnknownTopic
from keptlog.log.broker import purge_interval_ms
from keptlog.log.drop import DropResult, StagedOutcome
from keptlog.log.result import RewriteResult
from keptlog.log.sections import between_segments
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import Compact, Drop
from keptlog.log.told.history import cost_of
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.leftover import discard
from keptlog.table.changes.mark import tell_cleared
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.elsewhere import may_be_elsewhere, metadata_folder_of
from keptlog.table.commits.freshness import (
    require_cleanable,
    require_droppable,
    require_each,
    require_not_held,
    require_staged,
)
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.topics import topic_of
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.adoption_doubt import may_have_gaps, nothing_given_up, without_adoption
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change, commit_id_of
from keptlog.table.metadata.file_metrics import LiveFile, data_file_of
from keptlog.table.metadata.history import COST
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.live_files import LiveFiles, logs_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.references import all_references, comparable
from keptlog.table.metadata.state import (
    LogState,
    cleaning_to,
    first_dirty_offset,
    last_pass,
    read_last_pass,
    uncleanable,
    watermarks,
)
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.reading.overruns import told_of_overruns
from keptlog.table.reading.readers import with_holds
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)

_Outcome = TypeVar("_Outcome", bound=StagedOutcome)
_UNREADABLE: tuple[type[Exception], ...] = (KeptlogError, *OUT_OF_REACH)


@dataclass(frozen=True)
class Swap:
    """The outcomes of one run for one topic, on their way to be live."""

    topic: str
    rewritten: Sequence[StagedOutcome]
    run_id: str
    last_passes: Mapping[TopicPartition, LastPass] = field(default_factory=dict)
    """What the run cost, stored with each log."""

    def commit(
        self, committer: Committer, files: TableFiles, live_files: LiveFiles, broker_settings: Mapping[str, str]
    ) -> None:
        """Check and commit.

        Raises:
            StalePlan: a log is no longer what the plan was made from; nothing landed and nothing is lost. Its ``logs``
                are those, if the others could land without them.
            InvariantViolated: the commit would break an invariant.
        """
        self._require_sound()

        def prepare(table: Table) -> Land:
            config = topic_of(table, broker_settings).config
            live = live_files.of(table)
            logs = logs_of(self.topic, table.properties, live, config)
            require_each(self._by_log, partial(_require_fresh, logs), self._landed_in(table, live))
            self._require_log_afterwards(live)
            self._require_staged(files, table)
            cleaned = [outcome for outcome in self.rewritten if isinstance(outcome, RewriteResult)]
            expiring = [outcome for outcome in cleaned if outcome.counts.expired]
            interval_ms = purge_interval_ms(broker_settings)
            where = table.metadata_location
            held = with_holds(files, logs, table.properties, where, interval_ms) if expiring else logs
            require_each(_by_log(expiring), lambda each: require_not_held(each.step, held[_partition_of(each)]))
            return self._written(table, live, told_of_overruns(table, files, expiring))

        try:
            committer.commit(Change(self.topic, self._topic_id, self._commit_id), prepare)
        except UnknownTopic:
            self._discard_of_gone_topic(committer, files)
            raise StalePlan(f"topic {self.topic} was deleted while it was cleaned; there is nothing to do") from None
        except StalePlan:
            self._discard_what_never_lands(committer, files, live_files)
            raise

    def _discard_what_never_lands(self, committer: Committer, files: TableFiles, live_files: LiveFiles) -> None:
        try:
            table = load_topic_table(committer.catalog, self.topic)
            if self._topic_id not in {None, str(table.metadata.table_uuid)}:
                self._discard_of_gone_topic(committer, files)
                return
            live = {file.segment.path for of_partition in live_files.of(table).values() for file in of_partition}
            gone = [each for each in self.rewritten if not live.issuperset(segment.path for segment in each.removed)]
            if not gone:
                return
            referenced = all_references(table).keys()
        except _UNREADABLE as error:
            _logger.info("what run %s has staged for topic %s is left: %s", self.run_id, self.topic, one_line(error))
            return
        stale = self.rewritten if any(isinstance(each, DropResult) for each in gone) else gone
        paths = [path for outcome in stale for path in outcome.staged_paths]
        discard(files, [path for path in paths if comparable(path) not in referenced])

    def _discard_of_gone_topic(self, committer: Committer, files: TableFiles) -> None:
        paths = self._staged_paths
        if not paths:
            return
        where = (self._topic_id, metadata_folder_of(paths[0]))
        try:
            is_elsewhere = may_be_elsewhere(committer.catalog, files, self.topic, *where)
        except OUT_OF_REACH:  # nobody answers, so nobody knows
            is_elsewhere = True
        if is_elsewhere:
            text = "what run %s has staged for topic %s is left: its table may be there under another name"
            _logger.info(text, self.run_id, self.topic)
            return
        discard(files, paths)

    @property
    def _topic_id(self) -> str | None:
        return next((outcome.step.topic_id for outcome in self.rewritten), None)

    @property
    def _by_log(self) -> dict[str, StagedOutcome]:
        return _by_log(self.rewritten)

    @property
    def _staged_paths(self) -> list[str]:
        return [path for outcome in self.rewritten for path in outcome.staged_paths]

    @property
    def _commit_id(self) -> str:
        moved = {segment.path for outcome in self.rewritten for segment in outcome.removed + outcome.added}
        for outcome in self.rewritten:
            # Of a drop that changes nothing but watermarks there is no segment to tell it by.
            moved |= {outcome.step.watermarks_path or ""} if isinstance(outcome, DropResult) else set()
        return commit_id_of(self.run_id, moved)

    def _require_sound(self) -> None:
        """What can be told without the table: I1, I2, and that the outcomes belong together."""
        partitions = [outcome.step.topic_partition for outcome in self.rewritten]
        if len(set(partitions)) < len(partitions) or any(each.topic != self.topic for each in partitions):
            raise InvariantViolated(
                f"a swap of topic {self.topic} was given {', '.join(map(str, partitions))}: each must be of the topic, "
                "and occur once; nothing was committed, please report this"
            )
        for outcome in self.rewritten:
            if outcome.is_empty:
                raise InvariantViolated(
                    f"{outcome.step.topic_partition}: the commit would remove no segment, so that a second one "
                    "could not be told from it (I1); nothing was committed, please report this"
                )

    def _landed_in(self, table: Table, live: Mapping[int, Sequence[LiveFile]]) -> set[str]:
        """The logs in which some of these outcomes have landed before, maybe by another process."""
        paths = {file.segment.path for files in live.values() for file in files}
        return {
            name
            for name, outcome in self._by_log.items()
            if paths.isdisjoint(segment.path for segment in outcome.removed)
            and paths.issuperset(segment.path for segment in outcome.added)
            and (outcome.added or self._was_last_in(table, outcome.step.topic_partition.partition))
        }

    def _was_last_in(self, table: Table, partition: int) -> bool:
        """Whether this run was the last to clean a log: nothing else tells who has left no segment."""
        try:
            last = read_last_pass(self.topic, partition, table.properties)
        except LogCorrupt:  # a note, which the next clean writes anew
            return False
        return last is not None and last.run_id == self.run_id

    def _require_staged(self, files: TableFiles, table: Table) -> None:
        """That all that was staged is there: asked of all at once, and of each log only if something is not."""
        try:
            require_staged(files, table, self._staged_paths)
        except StalePlan:
            require_each(self._by_log, lambda outcome: require_staged(files, table, outcome.staged_paths))
            raise

    def _require_log_afterwards(self, live: Mapping[int, Sequence[LiveFile]]) -> None:
        """No path is used twice (I2), and no two segments of a log overlap (G2)."""
        referenced = {file.segment.path for files in live.values() for file in files}
        for outcome in self.rewritten:
            log = outcome.step.topic_partition
            reused = [segment.path for segment in outcome.added if segment.path in referenced]
            if reused:
                raise InvariantViolated(
                    f"{log}: {reused[0]} is live already (I2); nothing was committed, please report this"
                )
            referenced.update(segment.path for segment in outcome.added)
            for earlier, later in itertools.pairwise(_segments_afterwards(live, outcome)):
                if later.base_offset <= earlier.last_offset:
                    raise InvariantViolated(
                        f"{log}: {later.path} would overlap {earlier.path} at offset {later.base_offset} (G2); "
                        "nothing was committed, please report this"
                    )

    def _written(self, table: Table, live: Mapping[int, Sequence[LiveFile]], told: Mapping[str, str]) -> Land:
        """What commits; ``told`` are the registrations of readers who miss something by it."""
        operation = "drop" if any(isinstance(outcome, DropResult) for outcome in self.rewritten) else "clean"
        duration_ms = max((each.duration_ms for each in self.last_passes.values()), default=None)
        cost = to_json(cost_of(self.rewritten, duration_ms))
        summary = {RUN_ID: self.run_id, COMMIT_ID: self._commit_id, OPERATION: operation, COST: cost}
        before = table.properties
        changed: dict[str, str] = dict(told)
        added: list[DataFile] = []
        removed: list[LiveFile] = []
        forgotten: list[str] = []
        for outcome in self.rewritten:
            step, partition = outcome.step, outcome.step.topic_partition.partition
            gone = {segment.path for segment in outcome.removed}
            removed += [file for file in live.get(partition, ()) if file.segment.path in gone]
            added += [data_file_of(partition, segment) for segment in outcome.added]
            ends_step = not isinstance(outcome, RewriteResult) or outcome.ends_step
            if isinstance(step, Compact) and ends_step:
                changed[first_dirty_offset(partition)] = str(step.end_offset)
            if isinstance(step, Compact):
                reached = _cleaning_to(table, live, outcome, step.end_offset, ends_step=ends_step)
                if reached is not None:
                    changed |= {cleaning_to(partition): reached} | without_adoption(partition, before)
                else:
                    names = (cleaning_to(partition), nothing_given_up(partition))
                    forgotten += [name for name in names if name in before]
            if outcome.watermarks_path != step.watermarks_path:
                changed[watermarks(partition)] = outcome.watermarks_path or ""
            if step.topic_partition in self.last_passes:
                changed[last_pass(partition)] = to_json(self.last_passes[step.topic_partition])
            if not isinstance(step, Drop) and ends_step:
                # Emptied, not removed: a mark that was set since the table was loaded is taken back as well.
                changed[uncleanable(partition)] = ""
        commit = FileChange(summary, changed, added, removed, live, removed_properties=forgotten).written(table)

        def land() -> None:
            commit()
            tell_cleared(self.topic, before, changed)

        return land


def _cleaning_to(
    table: Table, live: Mapping[int, Sequence[LiveFile]], outcome: StagedOutcome, end_offset: int, *, ends_step: bool
) -> str | None:
    """How far cleans have begun, in a commit of one that goes up to ``end_offset``; null if nothing is to say that.

    One that was broken off may have gone further: what it has removed for records behind this one's end stays removed.

    While a segment that an adoption may have given up is missing behind the end, that stays known, by an empty text.
    Where none is missing, one that is missing later was lost (``verify``).
    """
    partition = _partition_of(outcome)
    state = LogState.read(outcome.step.topic_partition.topic, partition, table.properties)
    before = state.cleaning_to or 0
    if not ends_step or before > end_offset:
        return str(max(before, end_offset))
    if not may_have_gaps(partition, table.properties):
        return None
    return "" if between_segments(_segments_afterwards(live, outcome), end_offset, state.log_end_offset) else None


def _segments_afterwards(live: Mapping[int, Sequence[LiveFile]], outcome: StagedOutcome) -> list[Segment]:
    """Those of a log as a commit leaves it, in offset order."""
    removed = {segment.path for segment in outcome.removed}
    files = live.get(_partition_of(outcome), ())
    kept = [file.segment for file in files if file.segment.path not in removed]
    return sorted([*kept, *outcome.added], key=lambda segment: segment.base_offset)


def _by_log(outcomes: Sequence[_Outcome]) -> dict[str, _Outcome]:
    return {str(outcome.step.topic_partition): outcome for outcome in outcomes}


def _partition_of(outcome: StagedOutcome) -> int:
    return outcome.step.topic_partition.partition


def _require_fresh(logs: Sequence[Log], outcome: StagedOutcome) -> None:
    log = logs[_partition_of(outcome)]
    if isinstance(outcome, DropResult):
        require_droppable(outcome.step, log)
        return
    if not log.config.is_compacted:
        topic = log.topic_partition.topic
        raise StalePlan(f"topic {topic} is no longer compacted (cleanup.policy); nothing lost, plan again")
    require_cleanable(outcome.step, log)
