"""Keys beyond memory (``keptlog.offset.map.overflow=shuffle``): what is shuffled, in how many parts, what comes out.

    emit --all records of a key together--> settle --all of a segment run together--> write lists

The stages are kernels (``keptlog.kernels.key_shuffle``); who brings the records together between them is whoever runs
the tasks (``Jobs.shuffle``). There is no join and no aggregate in it: one shuffle brings the records of a key together,
through disk, and the same kernels that make an offset map find the latest (ADR 21). There are as many parts as keep
those that are settled at once within the offset map's capacity; that number is part of the description, so Spark's own
settings for shuffles don't matter. Each log has a shuffle of its own, for few logs are so large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.bundles import contiguous_runs
from keptlog.engine.jobs import Jobs, Result
from keptlog.engine.latest import StoredList
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import Sizes
from keptlog.kernels.key_shuffle import BEATEN_WATERMARKS, EmitTask, settle, write_lists
from keptlog.log.segment import total_bytes
from keptlog.log.steps import Compact
from keptlog.storage.files import Files


@dataclass(frozen=True, slots=True)
class KeyShuffle:
    """The three stages of one log's shuffle. Plain data that pickles."""

    step: Compact
    location: str
    """Where the topic's data lies."""
    emits: tuple[EmitTask, ...]
    first_offsets: tuple[int, ...]
    """Of the segment runs, rising, the first 0: a record belongs to the last one that begins at or before it."""
    settled_parts: int
    """Into so many parts the keys are divided."""
    list_writers: int
    """Into so many parts the segment runs are divided."""

    def emit(self, number: int, files: Files) -> Iterator[pa.RecordBatch]:
        """Batches of ``key_shuffle.KEYS``: what the emit task of this number reads."""
        return self.emits[number].emit(files)

    def settle(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of ``key_shuffle.SETTLED`` from all records of some keys."""
        return settle(batches, self.first_offsets, self.step)

    def write_lists(self, batches: Iterator[pa.RecordBatch], attempt: Attempt) -> Iterator[Result]:
        """Files, in the staging folder, from all that was settled of some segment runs; one result for each file."""
        return write_lists(batches, attempt.files, lambda run: attempt.staged(self.location, f"list-{run}"))


def judged_by_shuffle(jobs: Jobs, step: Compact, runs: Sequence[SegmentRun], sizes: Sizes) -> list[SegmentRun]:
    """The step's segment runs, in offset order, each with the list of what the shuffle found out about its records.

    Raises:
        StalePlan: a segment is gone.
        StorageUnavailable: the storage, or Spark, fails.
    """
    parts = contiguous_runs(step.segments, -(-total_bytes(step.segments) // jobs.cores))
    told = step.for_task()
    emits = [EmitTask(told, segments, with_watermarks=number == 0) for number, segments in enumerate(parts)]
    shuffle = KeyShuffle(
        told,
        runs[0].location,
        tuple(emits),
        # What lies before the first segment run's base offset, if anything does, is its own.
        (0, *(run.segments[0].base_offset for run in runs[1:])),
        _settled_parts(step, jobs.cores, sizes),
        # One list for each segment run, and one for the watermarks that lost.
        min(len(runs) + 1, jobs.cores),
    )
    found = jobs.shuffle(shuffle, f"shuffling the keys of {step.topic_partition}")
    paths = {result["run"]: result["path"] for result in found}
    keys, malformed = sum(result["keys"] for result in found), sum(result["malformed"] for result in found)
    beaten_path = paths.get(BEATEN_WATERMARKS)
    return [
        replace(run, latest=StoredList(paths.get(number), beaten_path, keys, malformed))
        for number, run in enumerate(runs)
    ]


def _settled_parts(step: Compact, cores: int, sizes: Sizes) -> int:
    """So many that the keys which are settled at once are no more than one offset map takes, and each part is small.

    As many parts as cores are settled at once. 12,000,000 records, 5,033,164 keys in a map:

        2 cores     min(2,516,582, 1,000,000) = 1,000,000 records a part, 12 parts
        64 cores    max(78,643, 250,000) = 250,000 records a part, 48 parts: too few records are not worth a task
    """
    records = sum(segment.record_count for segment in step.segments)
    at_once = min(step.map_capacity.max_keys // cores, sizes.most_shuffled_part_records)
    at_once = max(at_once, sizes.shuffled_part_records)
    return max(-(-records // at_once), 1)
