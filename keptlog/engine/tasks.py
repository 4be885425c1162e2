"""How the work is cut into tasks.

A small log is one **segment run** (``segment_run``) and makes its offset map by itself:

    orders-0   [ map + rewrite ]
    orders-1   [ map + rewrite ]   a few tasks, each with many of them: thousands of logs in one job
    orders-2   [ map + rewrite ]

A large log is cut. Its dirty section is mapped in parts, the parts are merged (``map_tasks``), and each of its
segment runs reads the merged map:

    events-0   [ map part ][ map part ] -> [ merge ] -> [ rewrite ][ rewrite ]

With versions, the log is compared with the map first, and what its segment runs leave of tombstones becomes its
watermarks:

    events-0   ... [ merge ] -> [ compare ][ compare ] -> [ rewrite ][ rewrite ] -> [ watermarks ]

What changes lies near the end of a log: its dirty segments, and the clean ones that hold the keys of late. So that no
task has all of it, each has a segment run of the newest beside one of the others:

    events-0   [ task 1     ][ task 2     ][ task 1 ][ task 2 ]

A job costs more than to do little work twice. So where the parts have few keys, each task that needs the map merges
them by itself; where the dirty section is small, each maps all of it; and few watermarks are stored without a job.

A lookup hashes the whole map, so there are as few tasks as keep all cores busy. A Python task costs about 40 ms, and
on a far store its first read and its last write are waited for, so small logs are bundled: one bundle a core, more only
where they are large enough that what ends last would be waited for longer.

Tasks are plain data and may run twice: what they write lies under a path of that attempt, and only what Spark returns
as their result is used.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from keptlog.engine.attempt import Attempt
from keptlog.engine.bundles import bundled, contiguous_runs, shared_out
from keptlog.engine.jobs import Result, durable_result_of, result_of
from keptlog.engine.latest import MapSource, StoredComparison, StoredMap, staged_below
from keptlog.engine.map_tasks import CompareTask, MapTask
from keptlog.engine.segment_run import SegmentRun, mapped_keys, may_be_full
from keptlog.engine.stretches import in_stretches
from keptlog.kernels.inputs import Between
from keptlog.log.offset_map import UNBOUNDED, MapOverflow
from keptlog.log.segment import Segment, total_bytes
from keptlog.log.steps import CleanStep, Compact
from keptlog.storage.leftover import discard
from keptlog.storage.segment_writer import ROW_GROUP_BYTES


@dataclass(frozen=True, slots=True)
class Sizes:
    """Where the cuts lie; tests make them small."""

    whole_log_records: int = 500_000
    whole_log_bytes: int = 128 * 2**20
    """A log of at most so many records, in files of so many bytes, is one segment run."""
    mapped_in_runs_records: int = 2_500_000
    """Dirty records times cores, up to which each task that needs the map makes it by itself: a job costs more."""
    map_part_records: int = 500_000
    """Fewer are not worth a task of their own."""
    merged_in_runs_keys: int = 2_000_000
    """Of parts with at most so many keys each task that needs the map merges it by itself."""
    watermarks_without_job_bytes: int = 4 * 2**20
    """Up to so many bytes of a log's watermarks are stored without a job."""
    newest_share: int = 8
    """What is likely to change most is one part in so many of a log, its newest."""
    run_bytes: int = 4 * 2**30
    """Of a segment run at most, so that a task that fails repeats no more than that."""
    bundles_per_core: int = 4
    """Of small logs at most, so that what ends last is small."""
    bundle_bytes: int = 16 * 2**20
    """Of small logs at least, before a core gets a second one: less is done sooner than another task begins."""
    shuffled_part_records: int = 250_000
    """At least so many in one part of a shuffle, however small the offset map may be: fewer are not worth a task."""
    most_shuffled_part_records: int = 1_000_000
    """At most so many, however large the offset map may be: a part takes about 0.2 GB of memory for them."""
    row_group_bytes: int = ROW_GROUP_BYTES
    """What a segment run holds of the records that it writes."""


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Segment runs that one task does one after the other; what those of one log need to know is read once.

    A log that fails costs no other: the error is its result, and what the task has staged for it is deleted.

    Where a file is a request, small ones of several logs are asked for at once.
    """

    runs: tuple[SegmentRun, ...]
    """Those of one log stand together, in offset order."""

    @property
    def inputs(self) -> Sequence[Segment]:
        """What it reads, for whoever tells people how much that is."""
        return [segment for run in self.runs for segment in run.segments]

    def run(self, attempt: Attempt) -> Result:
        """Stage the new segments of each; tells of each what it replaces and what was counted, or its log's error."""
        done = durable_result_of(self._done, attempt)
        if "error" not in done:
            return done
        # Each log ends with it if what the task wrote is not durable.
        discard(attempt.files, attempt.given)
        return {"runs": [done | {"step_index": index} for index in dict.fromkeys(run.step_index for run in self.runs)]}

    def _done(self, attempt: Attempt) -> Result:
        results: list[Result] = []
        of_logs = [tuple(of_log) for _, of_log in groupby(self.runs, key=lambda run: (run.step_index, run.latest))]
        try:
            for files, stretch in in_stretches(attempt.files, of_logs, _inputs_of):
                for runs in stretch:
                    results += _of_a_log(runs, dataclasses.replace(attempt, files=files))
        except BaseException:
            # Another try writes to paths of its own, and no result will name these.
            discard(attempt.files, attempt.given)
            raise
        return {"runs": results}


def _of_a_log(runs: Sequence[SegmentRun], attempt: Attempt) -> list[Result]:
    """What became of segment runs of one log, or the error that it ends with; then nothing of them is left."""
    before = len(attempt.given)
    done = result_of(lambda: {"runs": _rewritten(runs, attempt)})
    if "error" not in done:
        of_runs: list[Result] = done["runs"]
        return of_runs
    discard(attempt.files, attempt.given[before:])
    return [done | {"step_index": runs[0].step_index}]


def _rewritten(runs: Sequence[SegmentRun], attempt: Attempt) -> list[Result]:
    """What became of segment runs of one log."""
    known = runs[0].latest
    if known is None:
        return [run.rewrite_whole(attempt) for run in runs]
    with staged_below(runs[0].location):
        latest = known.read(attempt.files)
    return [run.rewrite_part(attempt, latest, known.malformed) for run in runs]


def is_cut(step: CleanStep, sizes: Sizes) -> bool:
    """Whether a step is too large for one segment run."""
    records = sum(segment.record_count for segment in step.segments)
    is_large = records > sizes.whole_log_records or total_bytes(step.segments) > sizes.whole_log_bytes
    return is_large or (isinstance(step, Compact) and is_shuffled(step))


def is_shuffled(step: Compact) -> bool:
    """Whether a step's keys may be more than memory takes, and are not to end it early."""
    return step.map_capacity.overflow is MapOverflow.SHUFFLE and may_be_full(step)


def is_mapped_in_runs(step: Compact, cores: int, sizes: Sizes) -> bool:
    """Whether each task of a step that is cut maps the whole dirty section by itself.

    About as many tasks as cores do, so the work is records times cores, and all of it at once.
    """
    dirty_records = sum(segment.record_count for segment in step.dirty)
    return dirty_records * cores <= sizes.mapped_in_runs_records and not may_be_full(step)


def map_tasks(run: SegmentRun, step: Compact, cores: int, sizes: Sizes) -> list[MapTask]:
    """The tasks that map the dirty section of a step that is cut; none if it has none."""
    dirty = step.dirty
    if not dirty:
        return []
    if may_be_full(step):
        return [MapTask(run.step_index, step.for_task(), dirty, run.location, mapped_keys(step))]
    tasks = min(cores, max(1, sum(segment.record_count for segment in dirty) // sizes.map_part_records))
    # ``-(-a // b)`` rounds up, here and below: rounded down, the target would be missed by one stretch too many.
    target_bytes = -(-total_bytes(dirty) // tasks)
    parts = contiguous_runs(dirty, target_bytes)
    return [MapTask(run.step_index, step.for_task(), part, run.location) for part in parts]


def compare_tasks(runs: Sequence[tuple[SegmentRun, Compact, MapSource]], cores: int) -> list[CompareTask]:
    """The tasks that compare logs with their maps, about one a core for all logs together.

    Segments need not be neighbours here, so they are bundled by weight. Clean ones weigh eight times as much for their
    bytes, for their keys are read and looked up; of dirty ones only offsets are. The first task of a log takes its
    watermarks along.
    """
    target_bytes = -(-sum(total_bytes(run.segments) for run, _, _ in runs) // cores)
    tasks = []
    for run, step, latest in runs:

        def weight(segment: Segment, step: Compact = step) -> int:
            return segment.size_bytes if Between.clean(step).meets(segment) else segment.size_bytes // 8

        parts = bundled(run.segments, -(-total_bytes(run.segments) // max(target_bytes, 1)), weight)
        for number, part in enumerate(parts):
            tasks.append(CompareTask(run.step_index, step.for_task(), part, run.location, latest, number == 0))
    return tasks


def cut_into_runs(cut: Sequence[SegmentRun], cores: int, sizes: Sizes) -> list[SegmentRun]:
    """The segment runs of all steps that are cut, each step's in the order of their offsets: as few as keep cores busy.

    Of a step that is worth ``tasks`` of the cores, the older segments and the newest are cut into up to so many
    stretches each, and stretch number n of both has the task number n (``SegmentRun.task``). 16 segments of like
    weight, 2 tasks:

        older     1 .. 14    7 a task       [ task 0 ][ task 1 ]
        newest   15 .. 16    1 a task                           [ task 0 ][ task 1 ]

    Segments are not cut, so the older ones seldom come out even. Who got less of them gets more of the newest, but
    nobody less than half of an even share: they may be all that changes.

    What is worth one task alone is one segment run: with a share of 1 all is newest.
    """
    if sum(total_bytes(run.segments) for run in cut) > cores * sizes.run_bytes:
        return [part for run in cut for part in _parts(run, contiguous_runs(run.segments, sizes.run_bytes))]
    work = {run.step_index: _work_to_rewrite(run) for run in cut}
    target = -(-sum(sum(of_run.values()) for of_run in work.values()) // cores)
    parts: list[SegmentRun] = []
    for run in cut:
        of_run = work[run.step_index]
        weight = of_run.__getitem__
        tasks = len(contiguous_runs(run.segments, target, weight))
        older, newest = _divided_by_age(run.segments, weight, sizes.newest_share if tasks > 1 else 1)
        of_older = contiguous_runs(older, -(-sum(map(weight, older)) // tasks), weight)
        parts += _parts(run, of_older)
        has = [sum(map(weight, stretch)) for stretch in of_older] + [0] * (tasks - len(of_older))
        parts += _parts(run, shared_out(newest, _wanted(sum(map(weight, newest)), has), weight))
    return parts


def _wanted(newest: int, has: Sequence[int]) -> list[int]:
    """What each task is to get of the newest segments, by what it has of the older ones; all are weights.

    Older ones of 80 and 90, newest of 30: 20 and 10. Of 80 and 130: 23 and 7, which is half of an even share.
    """
    least = newest // (2 * len(has))
    lacks = [(newest + sum(has)) // len(has) - each for each in has]
    left = newest - sum(least for each in lacks if each < least)
    lacked = sum(each for each in lacks if each >= least)
    return [least if each < least else each * left // max(lacked, 1) for each in lacks]


def _parts(run: SegmentRun, stretches: Iterable[tuple[Segment, ...]]) -> list[SegmentRun]:
    """Segment runs of one step, each for the task with the number of its stretch; none of a stretch that is empty."""
    step = run.step.for_task() if isinstance(run.step, Compact) else run.step
    return [
        dataclasses.replace(run, step=step, segments=stretch, task=task)
        for task, stretch in enumerate(stretches)
        if stretch
    ]


def _divided_by_age(
    segments: Sequence[Segment], weight: Callable[[Segment], int], share: int
) -> tuple[Sequence[Segment], Sequence[Segment]]:
    """The older segments, and the newest ones, which weigh about one part in ``share`` of all.

    From the end a segment is among the newest while its middle is: of weights 40 30 20 10 and share 2, 50 are to be
    newest, and the middles from the end are 5 (of 10), 20 (of 20), 45 (of 30), 80 (of 40): the last three.
    """
    newest_weight = sum(map(weight, segments)) // share
    position = 0
    for index in range(len(segments), 0, -1):
        if position + weight(segments[index - 1]) // 2 > newest_weight:
            return segments[:index], segments[index:]
        position += weight(segments[index - 1])
    return (), segments


def _work_to_rewrite(run: SegmentRun) -> dict[Segment, int]:
    """By segment what a rewrite costs: to write costs about half as much again as to read.

    Of a dirty section one record a key is the latest, so hardly more than its last records, as many as there are keys,
    are written again. Clean records mostly are.

    So from the end on, dirty segments cost 5 (2 to read, 3 to write) a byte until they hold as many records as the map
    has keys, and 2 before. Where nobody knows the number of keys all of them cost 5.
    """
    to_write = run.latest.keys if isinstance(run.latest, StoredMap | StoredComparison) else UNBOUNDED.max_keys
    work = {}
    for segment in reversed(run.segments):
        is_dirty = Between.dirty(run.step).holds(segment)
        work[segment] = segment.size_bytes * (2 if is_dirty and to_write <= 0 else 5)
        to_write -= segment.record_count if is_dirty else 0
    return work


def rewrite_tasks(
    parts: Sequence[SegmentRun], whole: Sequence[SegmentRun], cores: int, sizes: Sizes
) -> list[RewriteTask]:
    """Tasks for the segment runs of cut steps and for whole steps, largest first, so that a small one ends last."""
    of_task: dict[tuple[int, int], list[SegmentRun]] = defaultdict(list)
    for part in parts:
        of_task[part.step_index, part.task].append(part)
    bundles = [tuple(runs) for runs in of_task.values()]
    worth = _bundle_bytes(whole) // max(cores * sizes.bundle_bytes, 1)
    per_core = min(max(worth, 1), sizes.bundles_per_core)
    bundles += bundled(whole, cores * per_core, lambda run: total_bytes(run.segments))
    return [RewriteTask(runs) for runs in sorted(bundles, key=_bundle_bytes, reverse=True)]


def _inputs_of(runs: Sequence[SegmentRun]) -> list[tuple[str, int]]:
    return [(each.path, each.size_bytes) for run in runs for each in run.segments]


def _bundle_bytes(runs: Sequence[SegmentRun]) -> int:
    return sum(total_bytes(run.segments) for run in runs)
