"""Brings state and snapshot of a topic together again (``lineage``), in one commit on top of what is there.

    state of C    main A <- B <- C <- f <- R     forward: R has the files of C
                                                 adopt: R has the files of f, and the state is fitted to them
    state of C    main A <- R                    forward: C is not on main any more, but still there

**Forward** undoes what others did. Nothing that was acknowledged is lost: R has the files of the recorded snapshot, and
those that an older keptlog has appended since, which did not see that it should not. Its offsets are behind those of
the recorded snapshot, for the log end never went back. If it has cleaned, its checkpoint speaks of other files, and is
given up. It needs the recorded snapshot with all of its files, and no watermarks: lost ones are given up later.

**Adopt** takes the table as it is. The log end stays, or moves behind the last offset that is there, so that none is
given twice; the log start stays, and files below it go; watermarks stay; the checkpoint is given up. Whether the files
make a log at all is for the caller to check before (``keptlog.passes.repair``). Where others have changed nothing, it
gives up the watermarks whose file is gone or damaged, and that is all.

What was undone stays in the history until a purge. A repair that was killed has landed or not; the next one sees which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table import Table

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.log.segment import Log, Segment
from keptlog.log.words.advice import WHOLE_BACKUP
from keptlog.log.words.counted import counted
from keptlog.storage.watermark_file import read_any_watermarks
from keptlog.table.changes.foreign_files import delete_files, difference, of_kind
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.adoption_doubt import without_checkpoint
from keptlog.table.metadata.change import OPERATION, RUN_ID, SAME_AGAIN, Change
from keptlog.table.metadata.file_metrics import LiveFile, live_file
from keptlog.table.metadata.lineage import (
    COMMIT_ID,
    Lineage,
    blaming,
    describe_snapshot,
    is_ours,
    lineage_of,
    require_columns,
    require_written_format,
    summary_of,
)
from keptlog.table.metadata.live_files import LiveFiles, segments_of
from keptlog.table.metadata.logs import config_of, logs_from
from keptlog.table.metadata.manifests import FileChange, OtherBase
from keptlog.table.metadata.metadata_reading import entries_of, manifests_of
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.runs import Undone, undone
from keptlog.table.metadata.state import (
    SOURCE,
    UNDONE,
    LogState,
    log_end_offset,
    watermarks,
)
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.reading.overruns import told_of_given_up
from keptlog.table.reading.readers import MissedTombstones

_ByPartition = dict[int, list[LiveFile]]
_BRINGS_RECORDS = ("append", "ingest")
_SHOWN = 3
_NOTHING_BUT_WATERMARKS = "no other program has changed its logs, but files of watermarks are gone or damaged"


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What a repair would do to a topic; changes nothing."""

    topic: str
    topic_id: str
    sequence_number: int = field(compare=False)
    """The last one of the table by then: whatever a later snapshot has, somebody made since."""
    is_adoption: bool
    is_own: bool
    """Whether no other program has changed the topic: then only watermarks that are lost are given up."""
    happened: str
    """One sentence without an end: how the snapshot came to be another one."""
    way_back: Callable[[], str] = field(compare=False)
    """What helps instead, where it can't be adopted, as a clause; looks whether a repair can be made."""
    foreign: tuple[str, ...]
    """The commits of other programs, each in words."""
    recorded_id: int | None
    current_id: int | None
    acknowledged: Mapping[int, tuple[Segment, ...]] | None = field(hash=False)
    """By partition, what was acknowledged; null where the recorded snapshot is gone, and nobody can tell."""
    logs: tuple[Log, ...]
    """As they would be."""
    came: tuple[str, ...]
    """Files that the table would have again."""
    went: tuple[str, ...]
    """Files that it would no longer have; of a manifest list or a manifest that can't be read, only that itself."""
    deletes: tuple[str, ...]
    """Delete files of other programs that it would no longer have: what they took from readers comes back."""
    state: Mapping[str, str] = field(hash=False)
    """The properties that would change."""
    forgotten_watermarks: tuple[int, ...]
    """Partitions whose watermarks are lost: late records may bring back what they deleted."""
    given_up: tuple[MissedTombstones, ...] = field(default=(), compare=False)
    """Tombstones that are lost, by rising offset: readers who are not beyond them are told in the same commit."""


@dataclass(frozen=True)
class Repair:
    """A repair of one topic."""

    topic: str
    is_adoption: bool
    files: TableFiles
    live_files: LiveFiles
    broker_settings: Mapping[str, str]

    def plan(self, table: Table) -> RepairPlan | None:
        """What it would do; null if there is nothing to repair.

        Raises:
            LogCorrupt: it can't be done this way; says why, and what can be.
        """
        made = self._make(table)
        return made[0] if made else None

    def commit(self, committer: Committer, planned: RepairPlan, run_id: str) -> None:
        """Do what was planned; nothing if it was done already, by this repair or by another one of the same plan.

        Raises:
            StalePlan: the table is no longer what it was planned from, or was repaired in another way; nothing landed.
            LogCorrupt: as for ``plan``.
        """
        summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "adopt" if self.is_adoption else "repair"}

        def prepare(fresh: Table) -> Land | None:
            made = self._make(fresh)
            if made is None:
                self._require_done(fresh, planned, summary[OPERATION])
                return None
            plan, change = made
            if plan != planned:
                raise StalePlan(
                    f"topic {self.topic} changed since its repair was planned: nothing was repaired, look at it again"
                )
            left_aside = _left_aside(fresh) if self.is_adoption else {}
            told = told_of_given_up(fresh, self.files, planned.given_up) if planned.given_up else {}
            state = dict(plan.state) | told | left_aside
            return FileChange(summary, state, change.added, change.removed, change.live, change.base).written(fresh)

        change = Change(self.topic, planned.topic_id, run_id, require_fit=_anything_fits, remedy=SAME_AGAIN)
        committer.commit(change, prepare)

    def _require_done(self, table: Table, planned: RepairPlan, operation: str) -> None:
        """Refuse to take another's repair for this one; of the same kind, and on the same snapshot, it is the same."""
        since = (each for each in table.snapshots() if (each.sequence_number or 0) > planned.sequence_number)
        done = {summary_of(each).get(OPERATION) for each in since if each.parent_snapshot_id == planned.current_id}
        if operation not in done:
            how = "adopted it meanwhile, which may have lost records" if "adopt" in done else "mended it in another way"
            raise StalePlan(
                f"topic {self.topic} needs no repair any more: somebody else has {how}; nothing was done now"
            )

    def _make(self, table: Table) -> tuple[RepairPlan, FileChange] | None:
        require_written_format(table)
        require_columns(table)
        lineage = lineage_of(table)
        if lineage.is_own:
            return self._give_up_watermarks(table, lineage) if self.is_adoption else None
        with blaming(table):
            return self._adopt(table, lineage) if self.is_adoption else self._forward(table, lineage)

    def _forward(self, table: Table, lineage: Lineage) -> tuple[RepairPlan, FileChange]:
        self._require_whole_way(table, lineage)
        try:
            live = self.live_files.of(table, lineage.recorded) if lineage.recorded else {}
            manifests = manifests_of(self.topic, lineage.recorded, table.io) if lineage.recorded else []
            carried = _carried(table, lineage)
        except LogCorrupt as error:
            adopt = f"or take the table as it is now: keptlog repair {self.topic} --adopt"
            raise _or_else(error, adopt) from error
        state: dict[str, str] = {}
        if any(summary_of(each).get(OPERATION) == "clean" for each in lineage.own_since):
            state = self._without_checkpoints(table)
        live, below = self._above_log_start(table, live)
        added = _flat(self._above_log_start(table, carried)[0])
        wanted = _flat(live) + added
        missing = [each.segment.path for each in wanted if not self.files.exists(each.segment.path)]
        if missing:
            raise self._gone(missing)
        base = OtherBase(manifests, *difference(table, lineage.current, wanted))
        change = FileChange({}, state, [each.entry.data_file for each in added], below, live, base)
        return self._plan(table, lineage, change, wanted, _segments(wanted)), change

    def _adopt(self, table: Table, lineage: Lineage) -> tuple[RepairPlan, FileChange]:
        if lineage.current is None:
            raise LogCorrupt(f"topic {self.topic} has no current snapshot that could be adopted; {lineage.way_back()}")
        try:
            live = self.live_files.of(table)
        except LogCorrupt as error:
            raise _or_else(error, self._way_back(table, lineage)) from error
        kept, below = self._above_log_start(table, live)
        state = self._without_checkpoints(table)
        for number in self._partitions(table):
            stored = LogState.read(self.topic, number, table.properties)
            files = kept.get(number, [])
            end = max((each.segment.last_offset + 1 for each in files), default=0)
            if end > stored.log_end_offset:
                self._require_appended(table, lineage, files[-1], stored.log_end_offset)
                state[log_end_offset(number)] = str(end)
            if self._lost_watermarks(stored.watermarks_path):
                state[watermarks(number)] = ""
        change = FileChange({}, state, (), below, live)
        try:
            acknowledged = _segments(_flat(self._acknowledged(table, lineage))) if lineage.recorded else None
        except LogCorrupt:
            acknowledged = None
        return self._plan(table, lineage, change, _flat(kept), acknowledged), change

    def _give_up_watermarks(self, table: Table, lineage: Lineage) -> tuple[RepairPlan, FileChange] | None:
        """Where others have changed nothing, and files of watermarks are lost: no clean and no purge does without."""
        paths = {n: table.properties.get(watermarks(n)) for n in self._partitions(table)}
        gone = [number for number, path in paths.items() if self._lost_watermarks(path)]
        if not gone:
            return None
        live = self.live_files.of(table)
        change = FileChange({}, {watermarks(number): "" for number in gone}, (), (), live)
        return self._plan(table, lineage, change, _flat(live), _segments(_flat(live))), change

    def _plan(
        self,
        table: Table,
        lineage: Lineage,
        change: FileChange,
        files: Sequence[LiveFile],
        acknowledged: Mapping[int, tuple[Segment, ...]] | None,
    ) -> RepairPlan:
        properties = dict(table.properties) | dict(change.properties)
        config = config_of(self.topic, properties, self.broker_settings)
        went = change.base.went if change.base else [file.entry.data_file for file in change.removed]
        unread = change.base.unread if change.base else ()
        forgotten = [n for n in self._partitions(table) if change.properties.get(watermarks(n)) == ""]
        return RepairPlan(
            topic=self.topic,
            topic_id=str(table.metadata.table_uuid),
            sequence_number=table.last_sequence_number,
            is_adoption=self.is_adoption,
            is_own=lineage.is_own,
            happened=_NOTHING_BUT_WATERMARKS if lineage.is_own else lineage.told(),
            way_back=partial(self._way_back, table, lineage),
            foreign=tuple(map(describe_snapshot, lineage.foreign)),
            recorded_id=lineage.recorded_id,
            current_id=lineage.current.snapshot_id if lineage.current else None,
            acknowledged=acknowledged,
            logs=tuple(logs_from(self.topic, properties, _segments(files), config)),
            came=tuple(sorted(each.file_path for each in change.base.came)) if change.base else (),
            went=tuple(sorted([*(each.file_path for each in went), *unread])),
            deletes=delete_files(table, lineage.current) if change.base else (),
            state=dict(change.properties),
            forgotten_watermarks=tuple(forgotten),
        )

    def _acknowledged(self, table: Table, lineage: Lineage) -> _ByPartition:
        """What the recorded snapshot holds, and what an older keptlog has brought since, above the log start."""
        found: _ByPartition = defaultdict(list)
        for source in (self.live_files.of(table, lineage.recorded), _carried(table, lineage)):
            for number, files in self._above_log_start(table, source)[0].items():
                found[number] += files
        return dict(found)

    def _above_log_start(self, table: Table, live: _ByPartition) -> tuple[_ByPartition, list[LiveFile]]:
        """The files by partition that lie above the log start, and those that lie wholly below it, and go."""
        starts = {n: LogState.read(self.topic, n, table.properties).log_start_offset for n in self._partitions(table)}
        below = [file for file in _flat(live) if file.segment.last_offset < starts.get(file.partition, 0)]
        paths = {file.segment.path for file in below}
        return {n: [file for file in files if file.segment.path not in paths] for n, files in live.items()}, below

    def _without_checkpoints(self, table: Table) -> dict[str, str]:
        state: dict[str, str] = {}
        for number in self._partitions(table):
            state |= without_checkpoint(self.topic, number, table.properties, is_adoption=self.is_adoption)
        return state

    def _partitions(self, table: Table) -> range:
        return range(partition_count(self.topic, table.properties))

    def _lost_watermarks(self, path: str | None) -> bool:
        """Whether there was a file of watermarks that is gone, or is damaged."""
        if not path:
            return False
        try:
            read_any_watermarks(self.files, path, self.topic)
        except (FileNotFoundError, LogCorrupt):
            return True
        return False

    def _require_whole_way(self, table: Table, lineage: Lineage) -> None:
        """The recorded snapshot must be there, and all that was committed since."""
        recorded = lineage.recorded
        if recorded and lineage.expired_since:
            why = (
                f"its offsets belong to snapshot {recorded.snapshot_id}, and between that and "
                f"{lineage.since[0].snapshot_id} {counted(lineage.expired_since, 'commit')} expired that may have "
                "brought records"
            )
        elif recorded is None and lineage.recorded_id is not None:
            why = f"snapshot {lineage.recorded_id}, which its offsets belong to, was expired by another program"
        else:
            return
        self._adopt(table, lineage)  # where that can't be done either, it says why
        raise LogCorrupt(
            f"topic {self.topic} can't be brought back: {why}; {WHOLE_BACKUP}, or take the table as it is now: "
            f"keptlog repair {self.topic} --adopt"
        )

    def _way_back(self, table: Table, lineage: Lineage) -> str:
        """What helps where the table can't be adopted; a repair, unless that lacks files as well."""
        if lineage.recorded and not lineage.expired_since:
            try:
                self._forward(table, lineage)
            except LogCorrupt:
                return (
                    f"keptlog repair {self.topic} lacks files as well: put them back from a copy of the storage first"
                )
        return lineage.way_back()

    def _require_appended(self, table: Table, lineage: Lineage, last: LiveFile, end: int) -> None:
        if SOURCE in table.properties:
            segment, number = last.segment, last.partition
            raise LogCorrupt(
                f"topic {self.topic} can't be adopted: {segment.path} of partition {number} reaches offset "
                f"{segment.last_offset}, behind the position {end} at its source, whose records would be passed over; "
                f"{lineage.way_back()}"
            )

    def _gone(self, paths: Sequence[str]) -> LogCorrupt:
        more = len(paths) - _SHOWN
        shown = ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return LogCorrupt(
            f"topic {self.topic} can't be brought back: its offsets belong to a snapshot of which these files are "
            f"gone: {shown}; put them back from a backup, or take the table as it is now: keptlog repair {self.topic} "
            "--adopt"
        )


def _anything_fits(_: Table) -> None:
    """A repair is made for what all others refuse."""


def _left_aside(table: Table) -> dict[str, str]:
    """What an adoption notes of the snapshots that it gives up.

    Where a purge has expired the one at which main was left, all behind the oldest of main's is given up but main's.
    """
    lineage = lineage_of(table)
    if lineage.is_own or not (lineage.fork or lineage.since):
        return {}
    behind = (lineage.fork.sequence_number or 0) if lineage.fork else (lineage.since[0].sequence_number or 1) - 1
    kept = tuple(each.sequence_number or 0 for each in lineage.since if is_ours(each))
    note = Undone(behind, table.last_sequence_number + 1, kept)
    return {UNDONE: f"[{','.join(map(to_json, (*undone(table), note)))}]"}


def _or_else(error: LogCorrupt, what: str) -> LogCorrupt:
    """Of a file that can't be read, what helps beside it; of a contradiction others tell that."""
    return error if error.contradiction else error.reworded(f"{error}; {what}")


def _carried(table: Table, lineage: Lineage) -> _ByPartition:
    """The files that an older keptlog's appends and ingests have brought since."""
    found: _ByPartition = defaultdict(list)
    for snapshot in lineage.own_since:
        if summary_of(snapshot).get(OPERATION) in _BRINGS_RECORDS:
            for manifest in of_kind(ManifestContent.DATA, manifests_of(lineage.topic, snapshot, table.io)):
                for entry in entries_of(lineage.topic, manifest, table.io):
                    if entry.status is ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id:
                        file = live_file(lineage.topic, entry, manifest.manifest_path)
                        found[file.partition].append(file)
    return dict(found)


def _flat(live: Mapping[int, Sequence[LiveFile]]) -> list[LiveFile]:
    return [file for files in live.values() for file in files]


def _segments(files: Sequence[LiveFile]) -> dict[int, tuple[Segment, ...]]:
    by_partition: _ByPartition = defaultdict(list)
    for file in sorted(files, key=lambda each: each.segment.base_offset):
        by_partition[file.partition].append(file)
    return segments_of(by_partition)
