"""Appends a batch: all of its records get their offsets and become visible in one commit, or none of them does.

The records are staged first, with offsets from the log ends as they are now, and then committed. If another append has
taken those offsets meanwhile, only the staged segments that are in its way are written again.

A run id that was given may have been appended before, and then is not appended twice: the result is the first one's,
whatever the records are this time, and says so (``is_repeated``). Its snapshot tells it, or what a purge remembered.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.interrupted import note_sent
from keptlog.log.record import NewRecord
from keptlog.log.run_id import valid_run_id
from keptlog.storage.leftover import discard
from keptlog.table.changes.partition_writers import SegmentPaths
from keptlog.table.changes.staging import StagedPartition, Stager, shifted
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.freshness import require_staged
from keptlog.table.commits.staged import discard_unreferenced, discarded_if_refused
from keptlog.table.commits.topics import Topic
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change, may_have_landed_since
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.lineage import COMMIT_ID, require_own
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.runs import APPEND, APPENDED, LandedChange
from keptlog.table.metadata.state import LogState, log_end_offset, read_source
from keptlog.table.metadata.stored_json import from_json
from keptlog.table.removal.own_folder import require_not_inside
from keptlog.table.waiting.reaching import reaching

_logger = logging.getLogger(__name__)


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
    run_id: str
    is_repeated: bool = False
    """Whether this run id was appended before: then this is what it brought at that time, and nothing was added."""

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.partitions)

    @property
    def segments(self) -> int:
        return sum(each.segments for each in self.partitions)


Beside = Callable[[Table, Sequence[AppendedPartition]], Mapping[str, str]]


@dataclass
class Append:
    """One batch on its way into one topic."""

    topic: Topic
    committer: Committer
    files: TableFiles
    paths: SegmentPaths
    now_ms: int
    is_new_run: bool
    """Whether its run id was made for it, so that it can't have been appended before."""
    purpose: str = ""
    """Tells it from an append of the same run id that is for something else."""
    beside: Beside | None = None
    """Gives properties of the topic that move in the same commit, from the table that is built on and what is added."""

    def append(self, table: Table, records: Iterable[NewRecord]) -> AppendResult:
        """Stage the records and commit them.

        Raises:
            InvalidConfig: the topic has a source, which alone gives offsets.
            InvalidRecord: one can't be appended; nothing was.
            StalePlan, StorageUnavailable: the commit did not land; what was staged is gone again.
            CommitStateUnknown: nobody knows whether it landed, so what was staged stays.
        """
        valid_run_id(self.paths.run_id)
        since = may_have_landed_since(is_new_run=self.is_new_run)
        change = Change(self.topic.name, self.topic.id, self._commit_id, since)
        with reaching(f"topic {self.topic.name} can't be read"):
            earlier = self.committer.find_earlier(change, table)
        if earlier:
            _logger.info("topic %s, run %s: it was appended before", self.topic.name, self.paths.run_id)
            return self._repeated(earlier)
        require_own(table)
        with reaching(f"topic {self.topic.name} can't be read"):
            require_not_inside(self.committer.catalog, table)  # before anything is staged there
        _require_no_source(self.topic.name, table.properties)
        staged = self._stage(records, log_end_offsets(self.topic.name, table.properties))
        if not staged:
            return AppendResult(self.topic.name, (), self.paths.run_id)
        return self._commit(replace(change, since=table.last_sequence_number), staged)

    @property
    def _commit_id(self) -> str:
        # Others have an operation in theirs (``commit_id_for``); the first format gave an append the bare run id.
        return f"{self.paths.run_id}/{self.purpose}" if self.purpose else self.paths.run_id

    def _commit(self, change: Change, staged: list[StagedPartition]) -> AppendResult:
        was_sent = False

        def staged_paths() -> list[str]:
            return [segment.path for each in staged for segment in each.segments]

        def prepare(fresh: Table) -> Land:
            nonlocal was_sent
            _require_no_source(self.topic.name, fresh.properties)
            require_staged(self.files, fresh, staged_paths())
            self._move_to_the_ends(staged, log_end_offsets(self.topic.name, fresh.properties))
            land = self._written(fresh, staged)
            was_sent = True
            note_sent(self.paths.run_id)
            return land

        with discarded_if_refused(self.files, staged_paths):
            landed = self.committer.commit(change, prepare)
        if landed is None:
            return AppendResult(self.topic.name, _appended(staged), self.paths.run_id)
        # Another process with the same run id may have been faster, also after this one had been sent.
        if not was_sent:
            discard(self.files, staged_paths())
            return self._repeated(landed)
        kept = discard_unreferenced(self.committer.catalog, self.files, change, landed, staged_paths())
        return replace(self._repeated(landed), is_repeated=not kept)

    def _stage(self, records: Iterable[NewRecord], ends: Mapping[int, int]) -> list[StagedPartition]:
        if not isinstance(records, Iterable):
            raise InvalidRecord(
                f"topic {self.topic.name}: what is to be appended is of type {type(records).__name__}: "
                "give a list of NewRecord; nothing was appended"
            )
        stager = Stager(self.files, self.topic, ends, self.paths, self.now_ms)
        try:
            for record in records:
                stager.add(record)
            return stager.finish()
        except BaseException:
            stager.discard()
            raise

    def _move_to_the_ends(self, staged: list[StagedPartition], ends: Mapping[int, int]) -> None:
        """Give the staged segments offsets that are still free: written again where another append was faster."""
        segment_bytes = self.topic.config.segment_bytes
        for index, each in enumerate(staged):
            if each.base_offset != ends[each.partition]:
                staged[index] = shifted(self.files, each, ends[each.partition], self.paths, segment_bytes)

    def _written(self, table: Table, staged: list[StagedPartition]) -> Land:
        appended = _appended(staged)
        summary = {
            RUN_ID: self.paths.run_id,
            COMMIT_ID: self._commit_id,
            OPERATION: APPEND,
            APPENDED: json.dumps([asdict(each) for each in appended]),
        }
        added = [data_file_of(each.partition, segment) for each in staged for segment in each.segments]
        ends = {log_end_offset(each.partition): str(each.last_offset + 1) for each in appended}
        others = self.beside(table, appended) if self.beside else {}
        return FileChange(summary, ends | dict(others), added).written(table)

    def _repeated(self, landed: LandedChange) -> AppendResult:
        """What an earlier commit of the same run has appended.

        Raises:
            InvalidConfig: it was no append; a keptlog from before gave other changes an append's commit id.
        """
        # What is remembered by one from before has no operation; then a result that is a list is an append's.
        if landed.operation not in {None, APPEND} or not (landed.result or "").startswith("["):
            what = f" ({landed.operation})" if landed.operation else ""
            raise InvalidConfig(
                f"run id {self.paths.run_id} was used for another change of topic {self.topic.name}{what}: nothing was "
                "appended, use another run id"
            )
        where = f"topic {self.topic.name}: run {self.paths.run_id}: {APPENDED}"
        remedy = "the batch has landed all the same, don't append it again"
        stored = landed.result or ""
        partitions = from_json(tuple[AppendedPartition, ...], stored, where, "result of an append", remedy)
        return AppendResult(self.topic.name, partitions, self.paths.run_id, is_repeated=True)


def log_end_offsets(topic: str, properties: Mapping[str, str]) -> dict[int, int]:
    """The next offset of every partition, also of those that came since the topic was looked at."""
    numbers = range(partition_count(topic, properties))
    states = {number: LogState.read(topic, number, properties) for number in numbers}
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
