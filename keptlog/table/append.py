"""Appends a batch: all of its records get their offsets and become visible in one commit, or none of them does.

The records are staged first, with offsets from the log ends as they are now, and then committed. If another append has
taken those offsets meanwhile, only the staged segments that are in its way are written again. A run that was appended
before is not appended twice: its snapshot tells the result.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import InvalidConfig
from keptlog.log.record import NewRecord
from keptlog.table.commit import OPERATION, RUN_ID, Committer, Land, find_commit
from keptlog.table.file_metrics import data_file_of
from keptlog.table.files import TableFiles
from keptlog.table.freshness import require_staged
from keptlog.table.lineage import COMMIT_ID, require_own
from keptlog.table.manifests import FileChange
from keptlog.table.partition_writers import SegmentPaths
from keptlog.table.staging import StagedPartition, Stager, shifted
from keptlog.table.state import LogState, log_end_offset, read_source
from keptlog.table.stored_json import from_json
from keptlog.table.topics import Topic

_logger = logging.getLogger(__name__)

_APPENDED = "keptlog.appended"


@dataclass(frozen=True, slots=True)
class AppendedPartition:
    """What one partition got, at dense offsets up to and with ``last_offset``; ``bytes`` are those of its segments."""

    partition: int
    base_offset: int
    last_offset: int
    records: int
    bytes: int
    segments: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What an append brought, by partition; empty for an empty batch."""

    topic: str
    partitions: tuple[AppendedPartition, ...]

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.partitions)

    @property
    def segments(self) -> int:
        return sum(each.segments for each in self.partitions)


@dataclass
class Append:
    """One batch on its way into one topic."""

    topic: Topic
    committer: Committer
    files: TableFiles
    paths: SegmentPaths
    now_ms: int

    def append(self, table: Table, records: Iterable[NewRecord]) -> AppendResult:
        """Stage the records and commit them.

        Raises:
            InvalidConfig: the topic has a source, which alone gives offsets.
            InvalidRecord: one can't be appended; nothing was.
            StalePlan, CommitStateUnknown, StorageUnavailable: the commit did not land, or nobody knows. What was staged
                stays where it is, for a purge to sweep: it must not be deleted while the commit could still land.
        """
        earlier = find_commit(table, self.paths.run_id)
        if earlier:
            _logger.info("topic %s, run %s: it was appended before", self.topic.name, self.paths.run_id)
            return _result_of(self.topic.name, earlier)
        require_own(table)
        _require_no_source(self.topic.name, table.properties)
        staged = self._stage(records, log_end_offsets(self.topic, table.properties))
        if not staged:
            return AppendResult(self.topic.name, ())

        def prepare(fresh: Table) -> Land:
            nonlocal staged
            _require_no_source(self.topic.name, fresh.properties)
            require_staged(self.files, fresh, (segment.path for each in staged for segment in each.segments))
            staged = self._at_the_ends(staged, log_end_offsets(self.topic, fresh.properties))
            return lambda: self._land(fresh, staged)

        landed = self.committer.commit(self.topic.name, prepare, self.paths.run_id)
        return _result_of(self.topic.name, landed) if landed else AppendResult(self.topic.name, _appended(staged))

    def _stage(self, records: Iterable[NewRecord], ends: Mapping[int, int]) -> list[StagedPartition]:
        stager = Stager(self.files, self.topic, ends, self.paths, self.now_ms)
        try:
            for record in records:
                stager.add(record)
            return stager.finish()
        except BaseException:
            stager.discard()
            raise

    def _at_the_ends(self, staged: list[StagedPartition], ends: Mapping[int, int]) -> list[StagedPartition]:
        """The staged segments with offsets that are still free; rewritten where another append was faster."""
        segment_bytes = self.topic.config.segment_bytes
        return [
            each
            if each.base_offset == ends[each.partition]
            else shifted(self.files, each, ends[each.partition], self.paths, segment_bytes)
            for each in staged
        ]

    def _land(self, table: Table, staged: list[StagedPartition]) -> None:
        appended = _appended(staged)
        summary = {
            RUN_ID: self.paths.run_id,
            COMMIT_ID: self.paths.run_id,
            OPERATION: "append",
            _APPENDED: json.dumps([asdict(each) for each in appended]),
        }
        added = [data_file_of(each.partition, segment) for each in staged for segment in each.segments]
        ends = {log_end_offset(each.partition): str(each.last_offset + 1) for each in appended}
        FileChange(summary, ends, added).land(table)


def log_end_offsets(topic: Topic, properties: Mapping[str, str]) -> dict[int, int]:
    """The next offset of every partition."""
    states = {number: LogState.read(topic.name, number, properties) for number in range(topic.partitions)}
    return {number: state.log_end_offset for number, state in states.items()}


def _require_no_source(topic: str, properties: Mapping[str, str]) -> None:
    source = read_source(topic, properties).source
    if source:
        raise InvalidConfig(f"topic {topic} is ingested from {source.topic}: produce to it there")


def _appended(staged: Iterable[StagedPartition]) -> tuple[AppendedPartition, ...]:
    return tuple(
        AppendedPartition(
            each.partition, each.base_offset, each.last_offset, each.record_count, each.size_bytes, len(each.segments)
        )
        for each in staged
    )


def _result_of(topic: str, snapshot: Snapshot) -> AppendResult:
    """What an earlier commit of the same run has appended."""
    text = snapshot.summary.additional_properties.get(_APPENDED, "[]") if snapshot.summary else "[]"
    where = f"topic {topic}: snapshot {snapshot.snapshot_id}: {_APPENDED}"
    remedy = "the batch has landed all the same, don't append it again"
    return AppendResult(topic, from_json(tuple[AppendedPartition, ...], text, where, "result of an append", remedy))
