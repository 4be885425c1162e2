"""How the work is cut into tasks.

A small log is one **run** (``run``) and makes its offset map by itself:

    orders-0   [ map + rewrite ]
    orders-1   [ map + rewrite ]   a few tasks, each with many such runs: thousands of logs in one job
    orders-2   [ map + rewrite ]

A large log is cut. Its dirty section is mapped in parts, the parts are merged (``map_tasks``), and each run reads the
merged map; with versions, what the runs leave of tombstones becomes the log's watermarks:

    events-0   [ map part ][ map part ] -> [ merge ] -> [ rewrite ][ rewrite ] ( -> [ watermarks ])

A job costs more than to do little work twice. So where the parts have few keys, each run merges them by itself, and
where the dirty section is small, each run maps all of it.

A lookup hashes the whole map, so there are as few runs as keep all cores busy, and a Python task costs about 40 ms, so
small runs are bundled.

Tasks are plain data and may run twice: what they write lies under a path of that attempt, and only what Spark returns
as their result is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from keptlog.log.offset_map import MapOverflow
from keptlog.log.plan import Step, StepKind
from keptlog.log.segment import total_bytes
from keptlog.spark.attempt import Attempt
from keptlog.spark.inputs import Between
from keptlog.spark.map_tasks import CleanMapTask, MapTask
from keptlog.spark.run import Run, mapped_keys, may_be_full
from keptlog.storage.segment_writer import ROW_GROUP_BYTES


@dataclass(frozen=True, slots=True)
class Sizes:
    """Where the cuts lie; tests make them small."""

    whole_log_records: int = 500_000
    """A log of at most so many records is one run."""
    mapped_in_runs_records: int = 2_500_000
    """Dirty records times cores, up to which each run maps all of them by itself: a job costs more."""
    map_part_records: int = 500_000
    """Fewer are not worth a task of their own."""
    merged_in_runs_keys: int = 2_000_000
    """Of parts with at most so many keys each run merges the maps by itself."""
    run_bytes: int = 4 * 2**30
    """At most, so that a task that fails repeats no more than that."""
    bundles_per_core: int = 4
    shuffled_part_records: int = 250_000
    """At least so many in one part of a shuffle, however small the offset map may be: fewer are not worth a task."""
    row_group_bytes: int = ROW_GROUP_BYTES
    """What a run holds of the records that it writes."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Runs that one task does one after the other."""

    runs: tuple[Run, ...]

    def run(self, attempt: Attempt) -> dict[str, Any]:
        return {"runs": [run.rewrite(attempt) for run in self.runs]}


def is_cut(step: Step, sizes: Sizes) -> bool:
    """Whether a step is too large for one run."""
    return is_shuffled(step) or sum(segment.record_count for segment in step.segments) > sizes.whole_log_records


def is_shuffled(step: Step) -> bool:
    """Whether a step's keys may be more than memory takes, and are not to end it early."""
    return step.map_capacity.overflow is MapOverflow.SHUFFLE and may_be_full(step)


def has_keys_to_map(step: Step) -> bool:
    """Whether there is a record that may supersede others."""
    return step.kind is StepKind.COMPACT and bool(step.dirty)


def is_mapped_in_runs(step: Step, cores: int, sizes: Sizes) -> bool:
    """Whether each run of a step that is cut maps the whole dirty section by itself."""
    dirty_records = sum(segment.record_count for segment in step.dirty)
    is_small = dirty_records * cores <= sizes.mapped_in_runs_records
    return is_small and not step.strategy.has_versions and not may_be_full(step)


def map_tasks(run: Run, cores: int, sizes: Sizes) -> list[MapTask]:
    """The tasks that map the dirty section of a step that is cut; none if nothing is to be mapped."""
    if not has_keys_to_map(run.step):
        return []
    dirty = run.step.dirty
    if may_be_full(run.step):
        return [MapTask(run.step_index, run.step, dirty, run.location, mapped_keys(run.step))]
    parts = min(cores, max(1, sum(segment.record_count for segment in dirty) // sizes.map_part_records))
    target_bytes = -(-total_bytes(dirty) // parts)
    return [MapTask(run.step_index, run.step, part, run.location) for part in contiguous_runs(dirty, target_bytes)]


def clean_map_tasks(run: Run, map_path: str, cores: int) -> list[CleanMapTask]:
    """The tasks that find the clean records which have a say on the keys that were mapped."""
    if not run.step.strategy.has_versions:
        return []
    clean = [segment for segment in run.step.segments if Between.clean(run.step).meets(segment)]
    parts = contiguous_runs(clean, -(-total_bytes(clean) // cores))
    return [CleanMapTask(run.step_index, run.step, part, run.location, map_path) for part in parts]


class HasBytes(Protocol):
    """A file of which the size is known."""

    @property
    def size_bytes(self) -> int: ...


_File = TypeVar("_File", bound=HasBytes)
_Item = TypeVar("_Item")


def contiguous_runs(segments: Iterable[_File], target_bytes: int) -> list[tuple[_File, ...]]:
    """Neighbours in runs of about ``target_bytes``: a run ends with the segment whose middle is past its share."""
    runs: list[list[_File]] = []
    position, share = 0, -1
    for segment in segments:
        middle = position + segment.size_bytes // 2
        if middle // max(target_bytes, 1) != share:
            share = middle // max(target_bytes, 1)
            runs.append([])
        runs[-1].append(segment)
        position += segment.size_bytes
    return [tuple(run) for run in runs]


def runs_of(run: Run, target_bytes: int) -> list[Run]:
    """A step as one run, cut into runs of about ``target_bytes``."""
    return [dataclasses.replace(run, segments=part) for part in contiguous_runs(run.segments, target_bytes)]


def cut_into_runs(cut: Sequence[Run], cores: int, sizes: Sizes) -> list[Run]:
    """The runs of all steps that are cut, large enough to keep every core busy with few of them."""
    large_bytes = sum(total_bytes(run.segments) for run in cut)
    target_bytes = min(-(-large_bytes // cores), sizes.run_bytes)
    return [part for run in cut for part in runs_of(run, target_bytes)]


def rewrite_tasks(parts: Sequence[Run], whole: Sequence[Run], cores: int, sizes: Sizes) -> list[RewriteTask]:
    """Tasks for the runs of cut steps and for whole ones, largest first, so that the last to end is a small one."""
    bundles: list[tuple[Run, ...]] = [(part,) for part in parts]
    bundles += bundled(whole, cores * sizes.bundles_per_core, lambda run: total_bytes(run.segments))
    return [RewriteTask(runs) for runs in sorted(bundles, key=_bundle_bytes, reverse=True)]


def bundled(items: Sequence[_Item], bundles: int, weight: Callable[[_Item], int]) -> list[tuple[_Item, ...]]:
    """Items in at most so many bundles of about equal weight: the heaviest left goes to the lightest bundle."""
    filled: list[list[_Item]] = [[] for _ in range(min(bundles, len(items)))]
    weights = [0] * len(filled)
    for item in sorted(items, key=weight, reverse=True):
        lightest = weights.index(min(weights))
        filled[lightest].append(item)
        weights[lightest] += weight(item)
    return [tuple(bundle) for bundle in filled]


def _bundle_bytes(runs: Sequence[Run]) -> int:
    return sum(total_bytes(run.segments) for run in runs)
