"""Drops the records of wanted keys from logs: their segments, and their watermarks, each by itself in some task.

    steps --> segments, watermarks --bundled by weight--> tasks --> outcomes, a step each

Nothing of one segment depends on another, so there is one job, and nothing that one hands on.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from keptlog.engine.attempt import Attempt
from keptlog.engine.bundles import bundled
from keptlog.engine.jobs import Jobs, Result
from keptlog.engine.search_tasks import described_hits, hits_in
from keptlog.engine.stretches import in_stretches
from keptlog.kernels.drop import RecordDrop
from keptlog.kernels.wanted_keys import KeyFinder, WantedKeys
from keptlog.log.drop import DropResult
from keptlog.log.search import KeyHits
from keptlog.log.segment import Segment
from keptlog.log.steps import Drop
from keptlog.log.words.counted import counted
from keptlog.storage.key_hash import KeyHasher

_WATERMARKS_BYTES = 2**20
"""What a file of watermarks is taken to weigh: nobody knows before it is opened."""


@dataclass(frozen=True, slots=True)
class DroppedLog:
    """A log from which records are to be dropped, as a task gets it. Plain data that pickles."""

    step_index: int
    step: Drop
    """Without its segments."""
    location: str
    """Where the topic's data lies."""


@dataclass(frozen=True, slots=True)
class DropTask:
    """Drop records from some segments, and some watermarks, of some logs."""

    hasher: KeyHasher
    parts: tuple[tuple[DroppedLog, Segment | None], ...]
    """A log with a segment of it; with null it is its watermarks."""
    row_group_bytes: int

    @property
    def inputs(self) -> Sequence[Segment]:
        """What it reads, for whoever tells people how much that is."""
        return [segment for _, segment in self.parts if segment]

    def run(self, attempt: Attempt) -> Result:
        """What became of each segment that has such records, and of the watermarks."""
        finders: dict[int, KeyFinder] = {}
        segments: list[Result] = []
        watermarks: list[Result] = []
        for files, stretch in in_stretches(attempt.files, self.parts, _inputs_of):
            for log, segment in stretch:
                if log.step_index not in finders:
                    finders[log.step_index] = KeyFinder(WantedKeys(self.hasher, tuple(sorted(log.step.end_offsets))))
                drop = RecordDrop(files, log.step, finders[log.step_index], self.row_group_bytes)
                if segment is None:
                    path, dropped = drop.watermarks(attempt.watermarks(log.location, log.step.topic_partition))
                    watermarks.append({"step_index": log.step_index, "path": path, "dropped": dropped})
                else:
                    segments += _dropped(log, drop, segment, attempt)
        return {"segments": segments, "watermarks": watermarks}


def _inputs_of(part: tuple[DroppedLog, Segment | None]) -> list[tuple[str, int]]:
    """Of watermarks nobody knows the size before they are opened."""
    return [(part[1].path, part[1].size_bytes)] if part[1] else []


def _dropped(log: DroppedLog, drop: RecordDrop, segment: Segment, attempt: Attempt) -> Iterator[Result]:
    def path_for(base_offset: int) -> str:
        return attempt.segment(log.location, log.step.topic_partition, base_offset)

    dropped = drop.segment(segment, path_for)
    if dropped:
        yield {
            "step_index": log.step_index,
            "removed": dataclasses.asdict(dropped.removed),
            "added": [dataclasses.asdict(added) for added in dropped.added],
            "hits": described_hits(dropped.hits),
        }


def drop_records(
    jobs: Jobs, steps: Sequence[Drop], hasher: KeyHasher, locations: Mapping[str, str], row_group_bytes: int
) -> list[DropResult]:
    """Carry steps out; everything is staged, nothing visible. ``locations`` gives each topic's data location.

    Raises:
        StalePlan: an input is gone.
        LogCorrupt: an input is damaged.
        StorageUnavailable: the storage fails, or whoever runs the tasks.
    """
    parts: list[tuple[DroppedLog, Segment | None]] = []
    for index, step in enumerate(steps):
        location = locations[step.topic_partition.topic]
        log = DroppedLog(index, dataclasses.replace(step, segments=()), location)
        parts += [(log, segment) for segment in step.segments]
        parts += [(log, None)] if step.watermarks_path else []
    bundles = bundled(parts, jobs.cores, lambda part: part[1].size_bytes if part[1] else _WATERMARKS_BYTES)
    tasks = [DropTask(hasher, bundle, row_group_bytes) for bundle in bundles]
    results = jobs.run(tasks, f"dropping records from {counted(len(steps), 'log')}")
    segments: dict[int, list[Result]] = defaultdict(list)
    for result in results:
        for each in result["segments"]:
            segments[each["step_index"]].append(each)
    watermarks = {each["step_index"]: each for result in results for each in result["watermarks"]}
    return [_outcome(step, segments[index], watermarks.get(index)) for index, step in enumerate(steps)]


def _outcome(step: Drop, segments: Sequence[Result], watermarks: Result | None) -> DropResult:
    in_order = sorted(segments, key=lambda each: each["removed"]["base_offset"])
    return DropResult(
        step=step,
        removed=tuple(Segment(**each["removed"]) for each in in_order),
        added=tuple(Segment(**added) for each in in_order for added in each["added"]),
        hits=_together([hit for each in in_order for hit in hits_in(each["hits"])]),
        watermarks_path=watermarks["path"] if watermarks else None,
        watermarks_dropped=watermarks["dropped"] if watermarks else 0,
    )


def _together(hits: Sequence[KeyHits]) -> tuple[KeyHits, ...]:
    """The hits of all segments of a log, by key; segments are in the order of their offsets."""
    of_key: dict[bytes, list[KeyHits]] = defaultdict(list)
    for hit in hits:
        of_key[hit.key_hash].append(hit)
    return tuple(
        dataclasses.replace(
            of_one[0],
            records=sum(hit.records for hit in of_one),
            highest_offset=of_one[-1].highest_offset,
            has_value=any(hit.has_value for hit in of_one),
        )
        for _, of_one in sorted(of_key.items())
    )
