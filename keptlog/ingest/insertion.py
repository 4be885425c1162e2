"""Puts tombstones among what was read and staged of one log, at offsets that no record there has.

Only the segments that some of them fall into are written once more, each by a task of its own. The others stay as they
are staged:

    staged       [120 ... 180)   [180 ... 240)   [240 ... 300)
    tombstones        133                                       305
    written once more  |                         for itself      |
    staged then  [120 ... 180)'  [180 ... 240)   [240 ... 300)  [305]
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keptlog.engine.jobs import Jobs, run_each
from keptlog.engine.reconcile_tasks import InsertTask, free_offsets
from keptlog.errors import KeptlogError
from keptlog.ingest.result import Intake
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.words.counted import counted
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.table.commits.topics import Topic


def places_for(files: Files, intake: Intake, gone: set[bytes], deleted: Mapping[bytes, int]) -> dict[int, bytes]:
    """By offset, the keys that a tombstone deletes: those at their own offsets, and as many others as there is room."""
    placed = {offset: key for key, offset in deleted.items()}
    if not gone:
        return placed
    read, count = intake.range, len(gone) + len(deleted)
    free = free_offsets(files, intake.segments, read.end_offset, read.from_offset, count)
    offsets = [offset for offset in reversed(free) if offset not in placed][: len(gone)]
    return placed | dict(zip(sorted(offsets), sorted(gone), strict=False))


@dataclass(frozen=True, slots=True)
class Insertion:
    """What is needed to stage segments of one topic once more."""

    jobs: Jobs
    files: Files
    topic: Topic

    def segments_with(self, intake: Intake, tombstones: Sequence[Record]) -> tuple[Segment, ...]:
        """The segments of what was read, with tombstones among them, which are given by rising offset.

        Raises:
            KeptlogError: what was staged can't be read, or nothing can be written.
        """
        into: dict[int, list[Record]] = defaultdict(list)
        ends = [segment.last_offset for segment in intake.segments]
        for each in tombstones:
            into[bisect_left(ends, each.offset)].append(each)
        tasks = [self._task(intake, index, found) for index, found in into.items()]
        weights = [task.segment.size_bytes if task.segment else 0 for task in tasks]
        doing = f"writing {counted(len(tombstones), 'tombstone')} for {intake.topic_partition}"
        outcomes = run_each(self.jobs, tasks, weights, doing)
        written = {
            index: tuple(Segment(**each) for each in outcome["segments"])
            for index, outcome in zip(into, outcomes, strict=True)
            if not isinstance(outcome, KeptlogError)
        }
        for outcome in outcomes:
            if isinstance(outcome, KeptlogError):
                discard(self.files, [segment.path for segments in written.values() for segment in segments])
                raise outcome
        kept = {index: (segment,) for index, segment in enumerate(intake.segments)}
        together = kept | written
        return tuple(segment for index in sorted(together) for segment in together[index])

    def _task(self, intake: Intake, index: int, tombstones: Sequence[Record]) -> InsertTask:
        """That of one segment, by its place; behind the last one there is none."""
        segment = intake.segments[index] if index < len(intake.segments) else None
        location, segment_bytes = self.topic.data_location, self.topic.config.segment_bytes
        return InsertTask(intake.topic_partition, segment, tuple(tombstones), location, segment_bytes)
