"""The query behind ``keptlog.offset.map.overflow=shuffle``: keys go through Spark, values never do.

    range -> emit -> repartition by key -> settle -> repartition by run -> write lists

There is no join and no aggregate in it, and no hash table in the JVM's heap: one shuffle brings the records of a key
together, through disk, and the same Arrow kernels that make an offset map find the latest (ADR 21). There are as many
parts as keep those that are settled at once within the offset map's capacity; that number is part of the query, so
Spark's own settings for shuffles don't matter. Each log has a query of its own, for few logs are so large.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from keptlog.kernels.key_shuffle import (
    BEATEN_WATERMARKS,
    KEYS_TYPE,
    SETTLED_TYPE,
    EmitTask,
    settle,
    write_lists,
)
from keptlog.log.counted import counted
from keptlog.log.segment import total_bytes
from keptlog.spark.jobs import Batches, Jobs, in_a_task, numbers_in
from keptlog.spark.latest import ListAt
from keptlog.spark.run import Run
from keptlog.spark.tasks import Sizes, contiguous_runs

_RESULT_TYPE = "result string"
_RESULT_SCHEMA = pa.schema([("result", pa.string())])


def judged_by_shuffle(jobs: Jobs, runs: Sequence[Run], sizes: Sizes) -> list[Run]:
    """The runs of one step, each with the list of what the shuffle found out about its records.

    Raises:
        StalePlan: a segment is gone.
        StorageUnavailable: the storage, or Spark, fails.
    """
    step, location = runs[0].step, runs[0].location
    doing = f"shuffling the keys of {step.topic_partition}"
    parts = contiguous_runs(step.segments, -(-total_bytes(step.segments) // jobs.cores))
    emits = [EmitTask(step, segments, with_watermarks=number == 0) for number, segments in enumerate(parts)]
    first_offsets = [run.segments[0].base_offset for run in runs]
    first_offsets[0] = 0
    reading, writing = jobs.attempts(len(emits)), jobs.attempts(len(runs) + 1)

    def emit(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            with in_a_task():
                yield from emits[number].run(reading(number).files)

    def settle_part(batches: Batches) -> Batches:
        with in_a_task():
            yield from settle(batches, first_offsets, step)

    def write(batches: Batches) -> Batches:
        with in_a_task():
            attempt = writing(0)
            for result in write_lists(batches, attempt.files, lambda run: attempt.staged(location, f"list-{run}")):
                yield pa.record_batch([[json.dumps(result)]], schema=_RESULT_SCHEMA)

    settled_parts = _parts(jobs, sum(segment.record_count for segment in step.segments), runs[0], sizes)
    jobs.progress(f"{doing} in {counted(settled_parts, 'part')}")
    keys = jobs.numbers(len(emits)).mapInArrow(emit, KEYS_TYPE).repartition(settled_parts, "key")
    lists = keys.mapInArrow(settle_part, SETTLED_TYPE).repartition(min(len(runs) + 1, jobs.cores), "run")
    found = [json.loads(row.result) for row in jobs.collect(lists.mapInArrow(write, _RESULT_TYPE), doing)]
    paths = {result["run"]: result["path"] for result in found}
    keys_found, malformed = sum(result["keys"] for result in found), sum(result["malformed"] for result in found)
    beaten_path = paths.get(BEATEN_WATERMARKS)
    return [
        replace(run, latest=ListAt(paths.get(number), beaten_path, keys_found, malformed))
        for number, run in enumerate(runs)
    ]


def _parts(jobs: Jobs, records: int, run: Run, sizes: Sizes) -> int:
    """So many that the keys which are settled at once are no more than one offset map takes, and each part is small."""
    at_once = min(run.step.map_capacity.max_keys // jobs.cores, sizes.most_shuffled_part_records)
    at_once = max(at_once, sizes.shuffled_part_records)
    return max(-(-records // at_once), 1)
