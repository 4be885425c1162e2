"""Brings in what was read from a source: the segments and the positions that they reach, in one commit.

The log end offset is the position at the source (ADR 23). So there is nothing to keep in step, and nothing to repair:
whatever dies, either the records are in the log and the position is behind them, or neither is.

    planned    position 120, read [120, 200)
    committed  segments [120..151][153..197], log end offset 200        198 and 199 were markers of transactions

Offsets can't be chosen again, as an append does, so whoever comes second gets ``StalePlan``: its position is no longer
the stored one. So does who has landed before, and is then found by its id.

A commit may bring no file at all, where only markers or aborted records were read, or an empty topic-partition is seen
for the first time. It makes a snapshot all the same: the positions move by compare-and-swap (ADR 10).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.errors import InvariantViolated, StalePlan
from keptlog.log.run_id import valid_run_id
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity, StoredSource
from keptlog.log.words.counted import counted
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.freshness import require_staged
from keptlog.table.commits.staged import discard_unreferenced
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.partitions import PARTITIONS
from keptlog.table.metadata.reached import ReachedEpoch, ReachedTime
from keptlog.table.metadata.state import (
    SOURCE,
    as_of,
    ingest_stopped,
    leader_epoch,
    log_end_offset,
    log_start_offset,
    read_source,
    source_to_json,
)
from keptlog.table.metadata.stored_json import to_json


@dataclass(frozen=True)
class Ingestion:
    """What one run has read for one topic, on its way to be live."""

    topic: str
    arrivals: Sequence[Arrival]
    """At most one for each partition."""
    source: SourceIdentity
    partitions: int
    run_id: str
    topic_id: str | None = None
    """The topic in whose folder the segments are; null if it does not matter."""

    def commit(self, committer: Committer, files: TableFiles) -> None:
        """Check and commit; nothing to commit if nothing arrived and nothing new is known of the source.

        Raises:
            StalePlan: a position or the source moved meanwhile, or a staged file is gone; nothing landed.
            InvariantViolated: segments that do not belong to their range.
        """
        for each in self.arrivals:
            self._require_sound(each)
        numbers = [each.range.partition for each in self.arrivals]
        if len(set(numbers)) < len(numbers):
            raise self._broken(f"partitions {numbers} arrived, one of them twice")

        def prepare(fresh: Table) -> Land | None:
            stored = read_source(self.topic, fresh.properties)
            self._require_fresh(stored)
            require_staged(files, fresh, (segment.path for each in self.arrivals for segment in each.segments))
            state = self._state(stored, fresh.properties.get(SOURCE))
            # Of a position that the log has left; it says nothing there, and would again if the log came back.
            notes = (ingest_stopped(each.range.partition) for each in self.arrivals)
            state |= {name: "" for name in notes if fresh.properties.get(name)}
            if state.items() <= fresh.properties.items():
                return None
            return self._written(fresh, state)

        change = Change(self.topic, self.topic_id, self._commit_id)
        landed = committer.commit(change, prepare)
        if landed:
            # Another process with the same run id may have been faster: then its segments are live, and not these.
            staged = [segment.path for each in self.arrivals for segment in each.segments]
            discard_unreferenced(committer.catalog, files, change, landed, staged)

    @property
    def _commit_id(self) -> str:
        """Of the run and of its ranges: a run that is tried again, and finds more at the source, commits again.

        So does one that reads again what was truncated since.
        """
        ranges = repr(sorted(_identity_of(each.range) for each in self.arrivals))
        return f"{valid_run_id(self.run_id)}/{hashlib.sha256(ranges.encode()).hexdigest()}"

    def _require_sound(self, arrival: Arrival) -> None:
        """The segments of a range rise inside of it, behind the position."""
        read = arrival.range
        where = f"{self.topic}-{read.partition}"
        if not 0 <= read.partition < self.partitions:
            raise self._broken(f"{where} arrived, of a topic with {counted(self.partitions, 'partition')}")
        if not (read.position or 0) <= read.from_offset <= read.end_offset:
            raise self._broken(f"{where}: [{read.from_offset}, {read.end_offset}) was read at {read.position}")
        lowest = read.from_offset
        for segment in arrival.segments:
            if not lowest <= segment.base_offset <= segment.last_offset < read.end_offset:
                raise self._broken(
                    f"{where}: {segment.path} has offsets [{segment.base_offset}, {segment.last_offset}] outside of "
                    f"what is left of its range, [{lowest}, {read.end_offset}) (G2, G3)"
                )
            lowest = segment.last_offset + 1

    def _require_fresh(self, stored: StoredSource) -> None:
        """Whether source and positions still are those of the plan."""
        if stored.source is None and any(position is not None for position in stored.positions):
            raise self._stale("records of its own were appended to it")
        if stored.source and not stored.source.may_be(self.source):
            raise self._stale(f"it comes from {stored.source}, not from {self.source}")
        if len(stored.positions) > self.partitions:
            raise self._stale(f"it has {counted(len(stored.positions), 'partition')}, planned were {self.partitions}")
        positions = dict(enumerate(stored.positions))
        for each in self.arrivals:
            partition, planned, now = each.range.partition, each.range.position, positions.get(each.range.partition)
            if now != planned:
                was, is_now = ("none" if each is None else each for each in (planned, now))
                raise self._stale(f"the position of partition {partition} was {was}, now it is {is_now}")
            if each.range.truncations != stored.truncations.get(partition, 0):
                # It may be at the same position again, but what was read there is of the log before.
                raise self._stale(f"partition {partition} was truncated")

    def _state(self, stored: StoredSource, stored_text: str | None) -> dict[str, str]:
        """The properties that change; a source of which nothing new is known stays as it was written."""
        source = stored.source.updated(self.source) if stored.source else self.source
        state = {PARTITIONS: str(self.partitions)}
        if source != stored.source:
            state[SOURCE] = source_to_json(source, stored_text)
        for each in self.arrivals:
            state[log_end_offset(each.range.partition)] = str(each.range.end_offset)
            if each.range.end_epoch is not None:
                reached = ReachedEpoch(each.range.end_offset, each.range.end_epoch)
                state[leader_epoch(each.range.partition)] = to_json(reached)
            if each.range.end_as_of_ms is not None:
                time = ReachedTime(each.range.end_offset, each.range.end_as_of_ms, each.is_compacted)
                state[as_of(each.range.partition)] = to_json(time)
            if each.range.is_first:
                state[log_start_offset(each.range.partition)] = str(each.range.from_offset)
        return state

    def _written(self, table: Table, state: dict[str, str]) -> Land:
        summary = {RUN_ID: self.run_id, COMMIT_ID: self._commit_id, OPERATION: "ingest"}
        added = [data_file_of(each.range.partition, segment) for each in self.arrivals for segment in each.segments]
        return FileChange(summary, state, added).written(table)

    def _stale(self, what: str) -> StalePlan:
        return StalePlan(f"topic {self.topic} changed since its source was read: {what}; nothing lost, ingest again")

    def _broken(self, what: str) -> InvariantViolated:
        return InvariantViolated(f"an ingest of topic {self.topic}: {what}; nothing was committed, please report this")


def _identity_of(read: OffsetRange) -> tuple[int | None, ...]:
    """What tells a range from others; the first format did not count truncations, so none are none."""
    fields = (read.partition, read.position, read.from_offset, read.end_offset)
    return (*fields, read.truncations) if read.truncations else fields
