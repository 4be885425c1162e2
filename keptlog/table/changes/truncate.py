"""Removes the end of a log that is ingested, so that the next ingest reads it again: what a follower does in Kafka.

    here    [ 0 ... 99 ][ 1048676 .. 1048695 ]      log end 1048696: a damaged batch was taken at a wrong offset
    there   [ 0 ............ 119 ]                  the source ends at 120, before the position: nothing goes on
    truncated to 120
    here    [ 0 ... 99 ]                            log end 100, and the next ingest reads [100, 120)

The log end moves behind the last record that is left, and not to the offset itself: what lies between may never have
been read. To read an offset again does no harm, since records keep theirs. A segment that lies on both sides is written
again without its end.

That is refused where an offset that is read again would change what has been done already: below a checkpoint, where a
clean has removed what later records superseded; after an erasure, whose records would come back; and where a registered
reader is, or may be, beyond it, who would not see what comes there. Of a topic without a source nothing can be read
again, and an offset is given once.

A reader may be reading just now, and a restore keeps its position at its target, where nobody may be looking. So the
log remembers where it was truncated (``keptlog.log.truncations``), and whoever turns out to have been beyond that goes
on no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from keptlog.errors import InvalidConfig
from keptlog.log.cut_off import Kept, erase_again
from keptlog.log.holds import RESTORE_READER
from keptlog.log.sections import GIVEN_UP, cleaned_to
from keptlog.log.segment import Log, Segment
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.storage.segment_reader import read_row_groups
from keptlog.table.changes.partition_writers import PartitionWriters, SegmentPaths
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.staged import discard_unreferenced, discarded_if_refused
from keptlog.table.commits.topics import require_partition, topic_of
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import Change, log_change
from keptlog.table.metadata.file_metrics import LiveFile, data_file_of
from keptlog.table.metadata.live_files import LiveFiles, live_at, logs_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.runs import TRUNCATED, LandedChange
from keptlog.table.metadata.state import log_end_offset, read_source, remembers_erasures, truncations
from keptlog.table.metadata.stored_json import from_json, to_json
from keptlog.table.reading.readers import PositionFiles, registrations
from keptlog.table.waiting.reaching import reaching

_TRUNCATION = "truncate"


@dataclass(frozen=True, slots=True)
class TruncationResult:
    """What a truncation does to a log, or did."""

    topic_partition: TopicPartition
    log_end_offset_before: int
    log_end_offset: int
    records: int
    """That go, or went."""
    is_repeated: bool = False
    """Whether this run id has truncated the log before: then this is what it did at that time, and no more went."""


@dataclass(frozen=True, slots=True)
class _StoredTruncation:
    """What a truncation did, as its snapshot tells it."""

    log_end_offset_before: int
    log_end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """What of a log goes."""

    live: Mapping[int, Sequence[LiveFile]]
    """All files of the topic."""
    log: Log
    end_offset: int
    gone: tuple[Segment, ...]
    """Segments with a record that goes; the first may have others."""
    records: int

    @property
    def result(self) -> TruncationResult:
        return TruncationResult(self.log.topic_partition, self.log.log_end_offset, self.end_offset, self.records)


@dataclass
class Truncation:
    """The removal of a log's records from an offset on. ``new_id`` never returns the same text twice.

    What goes is read again, and would go again. So a run id that was given may have truncated before, and then
    truncates no more.
    """

    topic_partition: TopicPartition
    offset: int
    run_id: str
    new_id: Callable[[], str]
    is_new_run: bool = True
    """Whether its run id was made for it, so that it can't have truncated before."""
    topic_id: str | None = None
    """The topic that is meant, which a preview finds out; null for the one that has the name."""
    _staged: list[str] = field(default_factory=list)

    def preview(self, committer: Committer, files: TableFiles) -> TruncationResult:
        """What ``commit`` would do, or has done before; changes nothing. It raises what that does, too.

        What is committed then is for this topic, and not for a later one of its name.
        """
        with reaching(f"topic {self.topic_partition.topic} can't be read"):
            table = load_topic_table(committer.catalog, self.topic_partition.topic)
            self.topic_id = str(table.metadata.table_uuid)
            landed = committer.find_earlier(self._change, table)
            return self._earlier(landed) if landed else self._cut(files, table).result

    def commit(self, committer: Committer, files: TableFiles) -> TruncationResult:
        """Truncate, in one commit.

        Where there is nothing beyond the offset nothing is committed, unless a run id was given: then it is remembered
        that it is done.

        Raises:
            UnknownTopic: no such topic or partition.
            InvalidConfig: the log can't be truncated there; says why, and what can be done.
            StalePlan: others kept committing first, or the topic is another one now; nothing landed.
            CommitStateUnknown: the catalog did not say whether it landed; the same call again finds out.
            LogCorrupt: a segment is damaged.
        """
        cuts: list[_Cut] = []
        change, number = self._change, self.topic_partition.partition

        def prepare(table: Table) -> Land | None:
            cut = self._cut(files, table)
            cuts.append(cut)
            is_done = cut.end_offset == cut.log.log_end_offset
            if is_done and self.is_new_run:
                return None
            removed = live_at(cut.live, {segment.path for segment in cut.gone})
            added = [data_file_of(number, segment) for segment in self._kept(files, table, cut)]
            done = to_json(_StoredTruncation(cut.log.log_end_offset, cut.end_offset, cut.records))
            summary = change.summary(_TRUNCATION) | {TRUNCATED: done}
            truncated = cut.log.truncations.with_one_to(cut.end_offset)
            moved = {log_end_offset(number): str(cut.end_offset), truncations(number): to_json(truncated)}
            state = {} if is_done else moved
            return FileChange(summary, state, added, removed, cut.live).written(table)

        with discarded_if_refused(files, lambda: self._staged):
            landed = committer.commit(change, prepare)
        if landed or len(cuts) > 1:
            discard_unreferenced(committer.catalog, files, change, landed, self._staged)
        mine = cuts[-1].result if cuts else None
        if mine and (landed is None or self.is_new_run):
            return mine
        # Another process may have carried out the same run id, on another log than what was seen here.
        earlier = self._earlier(landed)
        return mine if mine == replace(earlier, is_repeated=False) else earlier

    @property
    def _change(self) -> Change:
        log, is_new_run = self.topic_partition, self.is_new_run
        return log_change(log, self.run_id, _TRUNCATION, is_new_run=is_new_run, topic_id=self.topic_id)

    def _earlier(self, landed: LandedChange | None) -> TruncationResult:
        """What an earlier call of the same run has done.

        Raises:
            InvalidConfig: a keptlog from before has not noted it.
        """
        if landed and landed.commit_id != self._change.commit_id:
            raise InvalidConfig(
                f"run id {self.run_id} has truncated a log of topic {self.topic_partition.topic} before, and a keptlog "
                "of then did not note which one: nothing was truncated now, use another run id"
            )
        where, remedy = f"topic {self.topic_partition.topic}: run {self.run_id}: {TRUNCATED}", "use another run id"
        stored = (landed.result if landed else None) or ""
        done = from_json(_StoredTruncation, stored, where, "result of a truncation", remedy)
        return TruncationResult(self.topic_partition, **asdict(done), is_repeated=True)

    def _cut(self, files: TableFiles, table: Table) -> _Cut:
        topic = topic_of(table, {})
        require_partition(topic, self.topic_partition.partition)
        live = LiveFiles().of(table)
        log = logs_of(topic.name, table.properties, live, topic.config)[self.topic_partition.partition]
        self._require_truncatable(table, log)
        gone = tuple(segment for segment in log.segments if segment.last_offset >= self.offset)
        left = [segment.last_offset for segment in log.segments if segment.last_offset < self.offset]
        records = sum(segment.record_count for segment in gone)
        for rows in _rows_below(files, gone, self.offset, ["offset"]):
            records -= rows.num_rows
            left.append(rows["offset"][-1].as_py())
        if log.log_end_offset <= self.offset:
            return _Cut(live, log, log.log_end_offset, (), 0)
        end_offset = max([log.log_start_offset, cleaned_to(log), *(offset + 1 for offset in left)])
        self._require_read_by_nobody(files, table, end_offset)
        return _Cut(live, log, end_offset, gone, records)

    def _kept(self, files: TableFiles, table: Table, cut: _Cut) -> tuple[Segment, ...]:
        """What is left of the segment that lies on both sides, staged."""
        topic, number = topic_of(table, {}), self.topic_partition.partition
        paths = SegmentPaths(topic.data_location, self.run_id, self.new_id)
        writers = PartitionWriters(files, paths, topic.config.segment_bytes)
        try:
            for rows in _rows_below(files, cut.gone, self.offset, None):
                writers.write(number, rows)
            kept = writers.finish().get(number, ())
        except BaseException:
            writers.discard()
            raise
        self._staged += [segment.path for segment in kept]
        return kept

    def _require_truncatable(self, table: Table, log: Log) -> None:
        topic, offset = self.topic_partition.topic, self.offset
        if read_source(topic, table.properties).source is None:
            raise self._refused("its records were appended, so nothing could be read again: see keptlog delete-records")
        if offset < log.log_start_offset:
            raise self._refused(f"it begins at offset {log.log_start_offset}: give that or a later one")
        again, kept = f"(--into {topic}-again)", Kept(remembers_erasures(topic, table.properties))
        if offset < cleaned_to(log):
            raise self._refused(
                f"{_how_far_cleaned(log)}, and what went there is not all at its source: ingest it into another topic "
                f"{again}, or delete the one here first (keptlog topic delete {topic}){erase_again(topic, kept)}"
            )
        if kept.has_erasures:
            raise self._refused(
                "keys were erased in its topic, and would come back with what is read again: ingest it into another "
                f"topic {again}, and erase there too what is at its source still (keptlog erase {topic}-again)"
            )

    def _require_read_by_nobody(self, files: TableFiles, table: Table, end_offset: int) -> None:
        topic, partition = self.topic_partition.topic, self.topic_partition.partition
        readers = registrations(topic, table.properties)
        positions = PositionFiles(files, table.location()).read(readers) if readers else {}
        for reader, each in sorted(positions.items()):
            if each.problem:
                who = f"registered reader {reader} may be beyond it, {each.problem}"
                raise self._refused(f"{who}, or let it start over ({'; '.join(_to_start_over(topic, [reader]))})")
        beyond = sorted(reader for reader, each in positions.items() if each.of(partition) > end_offset)
        if beyond:
            who = f"{counted(len(beyond), 'registered reader')} would miss what comes there again"
            raise self._refused(f"{who}: let them start over ({'; '.join(_to_start_over(topic, beyond))})")

    def _refused(self, why: str) -> InvalidConfig:
        return InvalidConfig(f"{self.topic_partition} can't be truncated to offset {self.offset}: {why}")


def _how_far_cleaned(log: Log) -> str:
    if log.checkpoint == GIVEN_UP and log.cleaning_to is None:
        return "an older keptlog has repaired it, and kept no note of how far it is cleaned"
    return f"it is cleaned up to offset {cleaned_to(log)}"


def _to_start_over(topic: str, readers: Sequence[str]) -> Iterator[str]:
    """What to do with the first of each kind: a restore that is run again would go on at its target, and is refused."""
    restores = [reader for reader in readers if reader.startswith(RESTORE_READER)]
    others = [reader for reader in readers if reader not in restores]
    if others:
        yield f"keptlog reader remove {topic} {others[0]}, and then add it"
    if restores:
        yield f"keptlog reader remove {topic} {restores[0]}, and then restore to another --topic"


def _rows_below(
    files: TableFiles, segments: tuple[Segment, ...], offset: int, columns: list[str] | None
) -> Iterator[pa.Table]:
    """The rows of segments that stay, of those on both sides; no table is empty."""
    for segment in segments:
        if segment.base_offset < offset:
            for table in read_row_groups(files, segment, columns):
                rows = table.filter(pc.less(table["offset"], offset))
                if rows.num_rows:
                    yield rows
