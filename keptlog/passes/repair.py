"""Repair, for a topic whose snapshot somebody else has moved: it is told what happened, what can be done, what is lost.

    plan --> told, and asked about --> one commit --> verified
     |
     data; changes nothing

How state and snapshot come together again stands in ``keptlog.table.changes.repair``. Here it is found out, before
anything is changed, what an adoption costs: which acknowledged offsets are no longer there. Only the files that are in
one of the two and not in the other are read for it, and of those the offsets alone; where readers are registered, who
are told in the same commit, also which of them were tombstones. And a table that would be no log is not adopted: the
checks of ``verify``, and the columns of files that others have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.erasures.erasure import Erasure
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.record import TimestampType
from keptlog.log.segment import Log, Segment
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.check import CheckResult
from keptlog.passes.columns_beside import values_beside
from keptlog.passes.undone_erasures import Offsets, joined, reaches_into, tombstones_in, undone_erasures
from keptlog.passes.verify import verify_log
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_reader import open_segment, read_row_groups
from keptlog.storage.watermark_file import read_any_watermarks
from keptlog.table.changes.notes import NotesRepair
from keptlog.table.doctor.topic_exam import examined
from keptlog.table.metadata.logs import has_readers
from keptlog.table.metadata.state import SNAPSHOT_ID, damaged_notes
from keptlog.table.reading.readers import MissedTombstones
from keptlog.table.removal.erasure_look import read_register
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    import pyarrow as pa

    from keptlog.table.changes.repair import RepairPlan
    from keptlog.table.store import LogStore

Span = tuple[int, int]
"""First and last of some offsets that follow on each other."""
_SegmentsByLog = Mapping[TopicPartition, tuple[Segment, ...]]
_SHOWN = 3
_ALWAYS_THERE = ("partition", "offset", "timestamp", "timestamp_type")
"""Columns in which every record has a value."""


@dataclass(frozen=True)
class RepairProposal:
    """A repair that could be done, and what it would cost."""

    plan: RepairPlan
    lost: Mapping[TopicPartition, tuple[Span, ...]]
    """Acknowledged offsets that would have no record any more."""
    is_exact: bool
    """Whether it is those and no others. If the recorded snapshot is gone, they are all behind the last record that is
    there; if only files of it are, all that these may have held."""
    foreign_segments: Mapping[TopicPartition, tuple[Segment, ...]]
    """Segments that would be part of the log, and were written by others."""
    ended_erasures: tuple[str, ...] | LogCorrupt
    """Ids of verified requests below whose bounds the log would get segments: records of their keys may be back. Or why
    nobody can tell."""
    undone_erasures: tuple[str, ...] | LogCorrupt
    """Ids of open requests that would lose tombstones, or have the records again that they had removed: they would
    never remove what is left of their keys. Or why nobody can tell."""
    other_columns: Mapping[str, int] = field(default_factory=dict)
    """Columns that are none of a topic's, to how many values adopted files have there: the next cleans drop them."""


@dataclass(frozen=True, slots=True)
class Repairer:
    """Repairs the topics of one store."""

    store: LogStore

    def propose(self, topic: str, *, is_adoption: bool = False, now_ms: int) -> RepairProposal | None:
        """What a repair would do, and lose; null if there is nothing to repair. Changes nothing.

        Raises:
            LogCorrupt: it can't be done this way; says why, and what can be.
        """
        now_ms = passed_now_ms(now_ms)
        plan = self.store.plan_repair(topic, is_adoption=is_adoption)
        if plan is None:
            return None
        foreign = self._foreign_segments(plan)
        if is_adoption and not plan.is_own:
            self._require_log(plan, foreign, now_ms)
        unread: set[TopicPartition] = set()
        lost = self._lost(plan, unread) if is_adoption else {}
        is_exact = plan.acknowledged is not None and not unread
        if not is_adoption:
            return RepairProposal(plan, lost, is_exact, foreign, (), ())
        not_acknowledged = _not_acknowledged(plan, foreign)
        adopted = () if plan.is_own else chain.from_iterable(not_acknowledged.values())
        beside = values_beside(self.store.files, adopted)
        erasures = self._erasures(topic)
        waits = isinstance(erasures, LogCorrupt) or any(each.is_open for each in erasures)
        if waits or has_readers(self.store.load_table(topic).properties):
            plan = replace(plan, given_up=tuple(self._given_up(plan, lost, now_ms)))
        if isinstance(erasures, LogCorrupt):
            return RepairProposal(plan, lost, is_exact, foreign, erasures, erasures, beside)
        back = {name.partition: segments[0].base_offset for name, segments in not_acknowledged.items() if segments}
        ended = (each.id for each in erasures if each.ended_ms is not None and reaches_into(each, back))
        undone = undone_erasures(erasures, plan, back, self.store.files)
        return RepairProposal(plan, lost, is_exact, foreign, tuple(ended), undone, beside)

    def damaged_notes(self, topic: str) -> tuple[str, ...]:
        """The properties beside the logs of a topic that say nothing that can be read."""
        return tuple(sorted(damaged_notes(topic, self.store.load_table(topic).properties)))

    def damaged_notes_first(self, topic: str) -> tuple[str, ...]:
        """The same, if nothing can be proposed before they are written anew; else none."""
        notes = self.damaged_notes(topic)
        return notes if SNAPSHOT_ID in notes else ()

    def mend_snapshot_id(self, topic: str) -> tuple[str, ...]:
        """Write anew what tells whether there is anything to propose, if it says nothing; tells which that was.

        Raises:
            StalePlan: others kept committing first.
        """
        if not self.damaged_notes_first(topic):
            return ()
        with reaching(f"topic {topic} can't be read"):
            return NotesRepair(topic, self.store.committer, self.store.files).mend_snapshot_id()

    def mend_notes(self, topic: str, run_id: str, *, now_ms: int) -> tuple[str, ...]:
        """Write these anew, and tell which they were: what was a number of erasures is counted again, others go.

        Raises:
            LogCorrupt: its erasures themselves can't be read.
            StalePlan: others kept committing first.
        """
        now_ms = passed_now_ms(now_ms)
        with reaching(f"topic {topic} can't be read"):
            return NotesRepair(topic, self.store.committer, self.store.files).mend(run_id, now_ms)

    def damage(self, topic: str) -> tuple[str, ...]:
        """What is wrong with a topic that no other program has changed, as far as a look tells that reads no record.

        Files of watermarks are read: the table has no size of them, and an adoption gives up those that are damaged.

        Raises:
            LogCorrupt: it can't be read; says which file is damaged or gone.
            StorageUnavailable: something can't be looked at now.
        """
        seen = examined(self.store, topic)
        watermarks = self._damaged_watermarks(seen.logs)
        runs = seen.damaged_runs if isinstance(seen.damaged_runs, tuple) else (seen.damaged_runs,)
        erasures = seen.erasures if isinstance(seen.erasures, KeptlogError) else None
        beside = (seen.unusable_property, erasures, *runs, seen.damaged_reader)
        outage = next((error for error in beside if isinstance(error, StorageUnavailable)), None)
        if outage:
            raise outage
        return (*map(str, seen.wrong_files), *watermarks, *(str(error) for error in beside if error))

    def repair(self, proposal: RepairProposal, run_id: str, *, now_ms: int) -> dict[str, list[CheckResult]]:
        """Do it, and check the logs as they are then: topic-partition to one result a check.

        Raises:
            StalePlan: the topic changed since, or somebody else repaired it in another way; nothing was repaired.
        """
        now_ms = passed_now_ms(now_ms)
        self.store.repair(proposal.plan, run_id)
        return {
            str(log.topic_partition): verify_log(self.store, log, now_ms)
            for log in self.store.logs(proposal.plan.topic, proposal.plan.topic_id)
        }

    def _damaged_watermarks(self, logs: Sequence[Log]) -> list[str]:
        """What is wrong with the files of watermarks that are there: the table keeps no size of them."""
        found = []
        for log in logs:
            name, path = log.topic_partition, log.watermarks_path
            try:
                with reaching(f"{name}: its watermarks can't be read"), suppress(FileNotFoundError):
                    if path:
                        read_any_watermarks(self.store.files, path, name.topic)
            except LogCorrupt as error:
                found.append(f"{name}: {error}")
        return found

    def _foreign_segments(self, plan: RepairPlan) -> dict[TopicPartition, tuple[Segment, ...]]:
        if plan.acknowledged is None:
            return {}
        known = {segment.path for segments in plan.acknowledged.values() for segment in segments}
        found = {
            log.topic_partition: tuple(segment for segment in log.segments if segment.path not in known)
            for log in plan.logs
        }
        return {name: segments for name, segments in found.items() if segments}

    def _erasures(self, topic: str) -> tuple[Erasure, ...] | LogCorrupt:
        try:
            with reaching(f"topic {topic} can't be read"):
                return read_register(self.store.files, lambda: self.store.load_table(topic))
        except LogCorrupt as error:
            return error

    def _lost(self, plan: RepairPlan, unread: set[TopicPartition]) -> dict[TopicPartition, tuple[Span, ...]]:
        """``unread`` gets the logs of which a file that was acknowledged is gone, so that all of it counts as lost."""
        lost: dict[TopicPartition, tuple[Span, ...]] = {}
        for log in plan.logs:
            if plan.acknowledged is None:
                first = max(log.segments[-1].last_offset + 1 if log.segments else 0, log.log_start_offset)
                gone = np.arange(first, max(first, log.log_end_offset))
            else:
                before = plan.acknowledged.get(log.topic_partition.partition, ())
                gone = self._no_longer_there(log, before, unread)
            if spans := spans_of(gone[gone >= log.log_start_offset]):
                lost[log.topic_partition] = spans
        return lost

    def _no_longer_there(self, log: Log, before: Sequence[Segment], unread: set[TopicPartition]) -> Offsets:
        stay = {segment.path for segment in log.segments} & {segment.path for segment in before}
        has = [self._offsets(segment) for segment in log.segments if segment.path not in stay]
        had = []
        for segment in before:
            if segment.path not in stay:
                try:
                    had.append(self._offsets(segment))
                except (LogCorrupt, FileNotFoundError):
                    unread.add(log.topic_partition)
                    had.append(np.arange(segment.base_offset, segment.last_offset + 1))
        return np.setdiff1d(joined(had), joined(has))

    def _given_up(
        self, plan: RepairPlan, lost: Mapping[TopicPartition, tuple[Span, ...]], now_ms: int
    ) -> Iterator[MissedTombstones]:
        """Tombstones that would not be there any more; where nobody can tell, all that would be lost."""
        for log in plan.logs:
            number = log.topic_partition.partition
            spans: list[tuple[int, int, int]] = [(*span, 0) for span in lost.get(log.topic_partition, ())]
            if plan.acknowledged is not None:
                spans = self._tombstones_gone(log, plan.acknowledged.get(number, ()))
            for first, last, tombstones in sorted(spans):
                if last >= log.log_start_offset:
                    yield MissedTombstones(number, first, last, tombstones, now_ms, now_ms)

    def _tombstones_gone(self, log: Log, before: Sequence[Segment]) -> list[tuple[int, int, int]]:
        """First offset, last one and number of tombstones that were acknowledged, and are none any more."""
        now = {segment.path for segment in log.segments}
        went = [segment for segment in before if segment.path not in now and segment.tombstone_count]
        known = {segment.path for segment in before}
        had: list[Offsets] = []
        spans = []
        for segment in went:
            try:
                had.append(tombstones_in(self.store.files, segment))
            except (LogCorrupt, FileNotFoundError):
                spans.append((segment.base_offset, segment.last_offset, segment.tombstone_count))
        came = [segment for segment in log.segments if segment.path not in known] if went else []
        gone = np.setdiff1d(joined(had), joined([tombstones_in(self.store.files, segment) for segment in came]))
        return spans + [(first, last, last - first + 1) for first, last in spans_of(gone)]

    def _offsets(self, segment: Segment) -> Offsets:
        return joined([table["offset"].to_numpy() for table in read_row_groups(self.store.files, segment, ["offset"])])

    def _require_log(self, plan: RepairPlan, foreign: _SegmentsByLog, now_ms: int) -> None:
        """Whether what would be adopted is a log.

        Raises:
            LogCorrupt: naming what breaks which guarantee.
        """
        problems: list[str] = []
        for name, written in _not_acknowledged(plan, foreign).items():
            for segment in written:
                problem = self._other_columns(segment) or self._other_values(segment, name.partition)
                problems += [f"{name}: {problem}"] if problem else []
        if not problems:
            problems = [
                f"{log.topic_partition}: {result.name} is {result.outcome}: {result.description}"
                for log in plan.logs
                for result in verify_log(self.store, log, now_ms)
                if not (result.passed or result.warns_only)
            ]
        if problems:
            more = len(problems) - _SHOWN
            raise LogCorrupt(
                f"topic {plan.topic} can't be adopted, what is there is no log: {'; '.join(problems[:_SHOWN])}"
                + (f"; and {more} more" if more > 0 else "")
                + f"; {plan.way_back()}"
            )

    def _other_columns(self, segment: Segment) -> str | None:
        """What is wrong with the columns of a file."""
        with open_segment(self.store.files, segment) as opened:
            found = {field.name: field.type for field in opened.schema}
        wrong = [
            f"{field.name} is {found.get(field.name, 'not there')}"
            for field in SCHEMA
            if field.name not in found or _plain(found[field.name]) != _plain(field.type)
        ]
        return f"{segment.path} has other columns ({', '.join(wrong)})" if wrong else None

    def _other_values(self, segment: Segment, partition: int) -> str | None:
        """What no record has, and a file has all the same: nobody could read it."""
        for table in read_row_groups(self.store.files, segment, [*_ALWAYS_THERE, "headers"]):
            headers = pc.list_flatten(table["headers"])
            has_null = [name for name in _ALWAYS_THERE if table[name].null_count]
            if table["headers"].null_count or headers.null_count or pc.struct_field(headers, "key").null_count:
                has_null.append("headers")
            if has_null:
                return f"{segment.path} has nulls in {', '.join(has_null)}"
            for name, values in (("partition", {partition}), ("timestamp_type", set(TimestampType))):
                if others := set(table[name].unique().to_pylist()) - values:
                    return f"{segment.path} has {name} {min(others)}"
        return self._value_that_expires(segment)

    def _value_that_expires(self, segment: Segment) -> str | None:
        """A delete horizon beside a value: once it has passed, a clean would take the record for an old tombstone."""
        if not segment.stamped_count:
            return None
        for table in read_row_groups(self.store.files, segment, ["offset", "value", "delete_horizon"]):
            wrong = table["offset"].filter(pc.and_(table["value"].is_valid(), table["delete_horizon"].is_valid()))
            if len(wrong):
                return f"{segment.path} has a value with a delete horizon, as tombstones have, at offset {wrong[0]}"
        return None


def _not_acknowledged(plan: RepairPlan, foreign: _SegmentsByLog) -> dict[TopicPartition, tuple[Segment, ...]]:
    """What others may have written: all segments, where nobody can tell which were acknowledged."""
    return {
        log.topic_partition: log.segments if plan.acknowledged is None else foreign.get(log.topic_partition, ())
        for log in plan.logs
    }


def _plain(kind: pa.DataType) -> str:
    """A type without what may be null in it: programs write that as they like."""
    return str(kind).replace(" not null", "")


def spans_of(offsets: Offsets) -> tuple[Span, ...]:
    """Rising offsets as spans without gaps."""
    if not offsets.size:
        return ()
    cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
    return tuple((int(piece[0]), int(piece[-1])) for piece in np.split(offsets, cuts))
