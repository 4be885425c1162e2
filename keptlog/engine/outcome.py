"""What became of a step, put together from the results of its segment runs."""

from __future__ import annotations

from collections.abc import Sequence

from keptlog.engine.jobs import Result
from keptlog.log.result import Counts, Overrun, RewriteResult
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact


def outcome_of(step: CleanStep, runs: Sequence[Result], watermarks_path: str | None) -> RewriteResult:
    """What became of a step, from the results of its segment runs, in any order."""

    def segments(name: str) -> tuple[Segment, ...]:
        found = (Segment(**segment) for run in runs for segment in run[name])
        return tuple(sorted(found, key=lambda segment: segment.base_offset))

    return RewriteResult(
        # What is said of the whole log, each of its segment runs says: the first will do.
        step=step.ended_at(runs[0]["end_offset"]) if isinstance(step, Compact) else step,
        removed=segments("removed"),
        added=segments("added"),
        counts=sum((Counts(**run["counts"]) for run in runs), Counts()),
        map_keys=runs[0]["keys"],
        winners_found=sum(run["winners_found"] for run in runs),
        malformed=runs[0]["malformed"],
        watermarks_path=watermarks_path,
        overrun=tuple(
            sorted((Overrun(**each) for run in runs for each in run["overrun"]), key=lambda each: each.first_offset)
        ),
    )
