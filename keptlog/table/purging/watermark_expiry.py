"""Takes watermarks that are past their time from logs of which no compaction is due.

A compaction takes them with it (``keptlog.log.watermark``). But a log that gets no more records is not cleaned any
more, and would remember its deleted keys for ever. So a purge looks first:

    a compaction is due          it does it, and judges late records before; a new file would only make it stale
    an expiry is due             it takes none, so they go here; one that is under way is planned anew
    nothing is past its time     the first time that something will be is told
    something is                 what is left goes to a new file, and the table names that one, or none

All logs of a topic move in one commit, which adds an empty snapshot (ADR 10). The old file is an orphan then, and goes
as orphans do. One that can't be read stays as it is: the verification tells of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc
from pyiceberg.table import Table

from keptlog.errors import KeptlogError, LogCorrupt
from keptlog.log.assessment import Trigger, assess
from keptlog.log.broker import BrokerConfig, purge_interval_ms
from keptlog.log.plan import plan_step
from keptlog.log.segment import Log
from keptlog.storage.watermark_file import read_any_watermarks, write_watermark_file
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.freshness import require_staged
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.commits.topics import topic_of
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.state import watermarks, watermarks_paths
from keptlog.table.purging.quiet import PurgeTimes
from keptlog.table.reading.readers import with_holds
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ends:
    """When watermarks of a file end, ms; ``next_ms`` is null if all have ended."""

    first_ms: int
    next_ms: int | None


@dataclass(frozen=True, slots=True)
class WatermarkExpiry:
    """The watermarks of one topic, at one time."""

    topic: str
    committer: Committer
    files: TableFiles
    new_id: Callable[[], str]
    broker_settings: Mapping[str, str]
    now_ms: int
    _written: dict[str, str] = field(default_factory=dict)
    """From a file to the one without what is past its time; another attempt takes what the first has written."""

    def expire(self, table: Table, times: PurgeTimes) -> tuple[Table, PurgeTimes]:
        """Take what is past its time; gives the table afterwards, and the times with that of the next watermark.

        What can't be taken now is told in the log, and left to the next purge: this one has other things to do.

        Raises:
            OSError: the storage does not give a file.
        """
        ends = {path: found for path in watermarks_paths(table.properties) if (found := self._ends(path))}
        past = {path for path, found in ends.items() if found.first_ms <= self.now_ms}
        try:
            if past:
                self._commit(str(table.metadata.table_uuid), past)
                table = load_topic_table(self.committer.catalog, self.topic)
        except KeptlogError as error:
            told = "topic %s: watermarks that are past their time are left to the next purge: %s"
            _logger.warning(told, self.topic, one_line(error))
        next_ms = min((each.next_ms for each in ends.values() if each.next_ms is not None), default=None)
        return table, replace(times, watermarks_ms=next_ms)

    def _ends(self, path: str) -> _Ends | None:
        """When the watermarks of a file end; null if it has none, or can't be read."""
        try:
            ends_ms = read_any_watermarks(self.files, path, self.topic)[0]["expires_ms"]
        except (LogCorrupt, FileNotFoundError) as error:
            _logger.warning("topic %s: the watermarks at %s are left: %s", self.topic, path, one_line(error))
            return None
        first_ms = pc.min(ends_ms).as_py()
        later_ms = pc.min(ends_ms.filter(pc.greater(ends_ms, self.now_ms))).as_py()
        return None if first_ms is None else _Ends(first_ms, later_ms)

    def _idle(self, table: Table, past: Collection[str]) -> Iterator[tuple[int, str]]:
        """Partition and file of the logs with these files of which no compaction is due, or none is made."""
        broker = BrokerConfig.of(self.broker_settings)
        logs = LiveFiles().logs(table, topic_of(table, self.broker_settings).config)
        interval_ms = purge_interval_ms(self.broker_settings)
        for log in with_holds(self.files, logs, table.properties, table.metadata_location, interval_ms):
            path, is_made = log.watermarks_path, broker.log_cleaner_enable
            if path and path in past and not (is_made and _is_to_be_compacted(log, self.now_ms, broker)):
                yield log.topic_partition.partition, path

    def _commit(self, topic_id: str, past: Collection[str]) -> None:
        run_id = self.new_id()
        summary = {RUN_ID: run_id, COMMIT_ID: run_id, OPERATION: "forget"}

        def prepare(table: Table) -> Land | None:
            changed = {watermarks(number): self._left_of(path) for number, path in self._idle(table, past)}
            # An attempt that waited for long may find that another purge has swept what it wrote.
            require_staged(self.files, table, filter(None, changed.values()))
            return FileChange(summary, changed).written(table) if changed else None

        with discarded_if_refused(self.files, self._written.values):
            self.committer.commit(Change(self.topic, topic_id, run_id), prepare)

    def _left_of(self, path: str) -> str:
        """The file with what is left of one, written if need be; empty if nothing is."""
        if path not in self._written:
            marks, strategy = read_any_watermarks(self.files, path, self.topic)
            left = marks.filter(pc.field("expires_ms") > self.now_ms)
            if not left.num_rows:
                return ""
            new_path = f"{path.rpartition('/')[0]}/marks-{self.new_id()}.arrow"
            write_watermark_file(self.files, new_path, strategy, left)
            self._written[path] = new_path
        return self._written[path]


def _is_to_be_compacted(log: Log, now_ms: int, broker: BrokerConfig) -> bool:
    """Whether a compaction is due, be it that an expiry has its turn first (``keptlog.log.plan``)."""
    assessment = assess(log, now_ms)
    return assessment.trigger is not Trigger.TOMBSTONE_EXPIRY and plan_step(assessment, broker) is not None
