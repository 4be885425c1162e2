"""The runs of this code location. A Dagster may be shared: others have jobs and topics of the same names.

Dagster stores with each run where its job was defined, as ``<repository>@<code location>``. What is asked for, what is
under way and what has failed is read from runs of our own place only; a tick or run that does not know its place, as in
a test, sees all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

_PLACE_TAG = ".dagster/repository"


@dataclass(frozen=True)
class OwnRuns:
    """What an instance knows of our runs."""

    instance: dg.DagsterInstance
    place: str | None = None
    """``<repository>@<code location>``; null if that is not known."""

    @classmethod
    def of_tick(cls, context: dg.SensorEvaluationContext) -> OwnRuns:
        """Those of the code location whose sensor ticks."""
        origin = context.code_location_origin
        place = f"{context.repository_name}@{origin.location_name}" if origin and context.repository_name else None
        return cls(context.instance, place)

    @classmethod
    def of_run(cls, context: dg.OpExecutionContext) -> OwnRuns:
        """Those of the code location whose run this is."""
        origin = context.run.remote_job_origin
        return cls(context.instance, origin.repository_origin.get_label() if origin else None)

    def records(
        self,
        *statuses: dg.DagsterRunStatus,
        job_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> Sequence[dg.RunRecord]:
        """Runs with what is known of their times, newest first."""
        place = {_PLACE_TAG: self.place} if self.place else {}
        filters = dg.RunsFilter(job_name=job_name, statuses=list(statuses), tags={**(tags or {}), **place})
        return self.instance.get_run_records(filters, limit=limit)

    def runs(
        self,
        *statuses: dg.DagsterRunStatus,
        job_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> list[dg.DagsterRun]:
        """Runs, newest first."""
        return [each.dagster_run for each in self.records(*statuses, job_name=job_name, tags=tags, limit=limit)]
