"""What became of a step, put together from the results of its segment runs."""

from __future__ import annotations

from collections.abc import Sequence

from keptlog.engine.jobs import Result
from keptlog.errors import KeptlogError
from keptlog.log.result import Counts, Overrun, RewriteResult
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep, Compact
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard

StepOutcome = RewriteResult | KeptlogError
"""What became of a step, or the error that its log ends with; then nothing is staged for it."""


def outcome_of(step: CleanStep, runs: Sequence[Result], watermarks_path: str | None) -> RewriteResult:
    """What became of a step, from the results of its segment runs, in any order."""
    removed = {path for run in runs for path in run["removed"]}
    added = (Segment(**segment) for run in runs for segment in run["added"])
    return RewriteResult(
        # What is said of the whole log, each of its segment runs says: the first will do.
        step=step.ended_at(runs[0]["end_offset"]) if isinstance(step, Compact) else step,
        removed=tuple(segment for segment in step.segments if segment.path in removed),
        added=tuple(sorted(added, key=lambda segment: segment.base_offset)),
        counts=sum((Counts(**run["counts"]) for run in runs), Counts()),
        map_keys=runs[0]["keys"],
        winners_found=sum(run["winners_found"] for run in runs),
        malformed=runs[0]["malformed"],
        watermarks_path=watermarks_path,
        overrun=tuple(
            sorted((Overrun(**each) for run in runs for each in run["overrun"]), key=lambda each: each.first_offset)
        ),
    )


def all_or_none(files: Files, outcomes: Sequence[StepOutcome]) -> list[RewriteResult]:
    """The outcomes of steps of which none failed.

    Raises:
        KeptlogError: the first that one ended with; what is staged for the others is deleted.
    """
    results = [outcome for outcome in outcomes if isinstance(outcome, RewriteResult)]
    for outcome in outcomes:
        if isinstance(outcome, KeptlogError):
            discard(files, [path for result in results for path in result.staged_paths])
            raise outcome
    return results
