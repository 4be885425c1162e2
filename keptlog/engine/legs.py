"""Carries a large step out in legs: what tells the latest records is found out once, then leg after leg is rewritten.

    dirty section   [ map ][ map ] -> [ merge ]                     staged, for all legs
    leg 1           [ segment run ][ segment run ] -> outcome       the caller commits it
    leg 2           [ segment run ][ segment run ] -> outcome       the caller commits it
    leg 3           [ segment run ][ segment run ] -> outcome       the last: with the watermarks, and the checkpoint

A leg reads its own inputs and what was staged before the first leg, and nothing else: the inputs of legs before it may
be purged by then. So no task maps the dirty section by itself, however small it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from keptlog.engine.jobs import Jobs
from keptlog.engine.latest import NoMap
from keptlog.engine.latest_jobs import with_comparisons, with_maps
from keptlog.engine.outcome import outcome_of
from keptlog.engine.rewriting import Rewriting
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.shuffle import judged_by_shuffle
from keptlog.engine.tasks import Sizes, cut_into_runs, is_shuffled
from keptlog.log.result import Leg, RewriteResult
from keptlog.log.steps import Compact


def legs_of(jobs: Jobs, whole: SegmentRun, step: Compact, sizes: Sizes) -> Iterator[RewriteResult]:
    """The outcome of each leg of a step, in offset order, staged when it is asked for; ``whole`` is all of the step.

    Raises:
        StalePlan: an input is gone.
        InvariantViolated: records would be written out of order.
        StorageUnavailable: the storage fails, or whoever runs the tasks.
    """
    step, legs = _runs_of_legs(jobs, whole, step, sizes)
    standing, inputs_of_legs = step, step.legs
    for number, runs in enumerate(legs, 1):
        doing = f"rewriting {step.topic_partition}" + (f", leg {number} of {len(legs)}" if len(legs) > 1 else "")
        rewriting = Rewriting(jobs, sizes)
        results = rewriting.results(runs, [], doing)
        watermarks_path = step.watermarks_path
        if number == len(legs):
            results, stored = rewriting.with_watermarks(runs, results, "the checkpoint has not moved")
            watermarks_path = stored.get(whole.step_index)
        rewriting.require_all()
        outcome = outcome_of(standing, results, watermarks_path)
        if len(legs) > 1:
            leg = Leg(number, len(legs), inputs_of_legs[number - 1], outcome.map_keys)
            outcome = replace(outcome, leg=leg, map_keys=sum(run["keys_here"] for run in results))
        yield outcome
        standing = replace(standing, segments=outcome.segments_after)


def _runs_of_legs(jobs: Jobs, whole: SegmentRun, step: Compact, sizes: Sizes) -> tuple[Compact, list[list[SegmentRun]]]:
    """The step as far as its map reaches, and the segment runs of each leg, which know where the latest are told."""
    if is_shuffled(step):
        legs = _cut(jobs, whole, step, sizes)
        judged = iter(judged_by_shuffle(jobs, step, [run for runs in legs for run in runs], sizes))
        return step, [[next(judged) for _ in runs] for runs in legs]
    if step.dirty:
        found_out = Rewriting(jobs, sizes)
        mapped = with_maps(jobs, [(whole, step)], sizes, found_out.failed)
        compared = with_comparisons(jobs, mapped, found_out.failed)
        found_out.require_all()
        [known] = compared
    else:
        known = replace(whole, latest=NoMap(step.strategy))
    step = step.ended_at(known.step.end_offset)
    return step, _cut(jobs, known, step, sizes)


def _cut(jobs: Jobs, whole: SegmentRun, step: Compact, sizes: Sizes) -> list[list[SegmentRun]]:
    return [cut_into_runs([replace(whole, segments=inputs)], jobs.cores, sizes) for inputs in step.legs]
