"""The runs of a mount. A Dagster may be shared, and a code location too: others have jobs and topics of the same names.

Dagster stores with each run where its job was defined, as ``<repository>@<code location>``; in one place, jobs and
assets have different names. So what is asked for, what is under way and what has failed is read from runs of our own
place, of jobs that are called as our mount calls them. A tick or run that does not know its place, as in a test, sees
all places.

Dagster gives a run that is executed again the tags of the one before. What those say of that one is left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime

import dagster as dg

from keptlog.dagster.assets.ingest_report import FAILED_AT_TAG
from keptlog.dagster.assets.mount import PLACE_TAG, Mount, Run, Tick, place_of
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG, told_of_itself
from keptlog.log.given.past import is_past

INGEST_JOB_NAME = "ingest_kafka"
PURGE_JOB_NAME = "purge"
RETENTION_JOB_NAME = "retention"
VERIFY_JOB_NAME = "verify"
ERASE_JOB_NAME = "erase"
VERIFY_ERASURES_JOB_NAME = "verify_erasures"
OWN_JOBS = (
    CLEAN_JOB,
    INGEST_JOB_NAME,
    PURGE_JOB_NAME,
    RETENTION_JOB_NAME,
    VERIFY_JOB_NAME,
    ERASE_JOB_NAME,
    VERIFY_ERASURES_JOB_NAME,
)
"""Their runs say in their configuration what they work on."""
MARKED_TAG = "keptlog/marked"
"""On a run that failed: that its logs need no more marks, in words. A run of assets may have been of several mounts'
logs, and each of them says it for itself (``marked_tag``)."""
UNMARKED_TAG = "keptlog/unmarked"
"""On a run that died: those of its logs that could not be marked yet."""
_TOLD_TAGS = (FAILED_TAG, OUTAGE_TAG, FAILED_AT_TAG, MARKED_TAG, UNMARKED_TAG)
"""What is said of one run; a long text is in pieces (``long_tags``)."""
_FEW = 200
"""So many runs are read sooner than a database has found those of one place among all that it keeps."""
_MOST_REMEMBERED = 1_000
_planned: dict[str, frozenset[dg.AssetKey]] = {}
"""By plan, the assets that its runs are made for: that does not change."""


def marked_tag(mount: Mount) -> str:
    """By which a mount says of a run that ended that it has looked at it."""
    return f"{MARKED_TAG}-{mount.name_prefix}" if mount.name_prefix else MARKED_TAG


def happened_ms(record: dg.RunRecord, told_ms: int, now_ms: int) -> int:
    """When something became of a run: as it told, or when it was created if the clock of its machine was ahead."""
    return told_ms if is_past(told_ms, now_ms) else round(record.create_timestamp.timestamp() * 1000)


@dataclass(frozen=True)
class OwnRuns:
    """What an instance knows of our runs. Jobs are called here as without a prefix."""

    instance: dg.DagsterInstance
    place: str | None = None
    """``<repository>@<code location>``; null if that is not known."""
    mount: Mount = field(default_factory=Mount)

    @classmethod
    def of_tick(cls, tick: Tick) -> OwnRuns:
        """Those of the mount whose sensor ticks."""
        return cls(tick.context.instance, tick.place_label, tick.mount)

    @classmethod
    def of_run(cls, run: Run) -> OwnRuns:
        """Those of the mount whose run this is."""
        return cls(run.context.instance, run.place_label, run.mount)

    def records(
        self,
        *statuses: dg.DagsterRunStatus,
        job_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        limit: int | None = None,
        since_ms: int | None = None,
    ) -> Sequence[dg.RunRecord]:
        """Runs with what is known of their times, newest first: of one job, or of all, ours and others.

        With ``since_ms`` only those of which Dagster has noted anything since then.
        """
        name = None if job_name is None else self.mount.name(job_name)
        since = None if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC)

        def asked(more: Mapping[str, str], most: int | None) -> Sequence[dg.RunRecord]:
            wanted = {**(tags or {}), **more}
            filters = dg.RunsFilter(job_name=name, statuses=list(statuses), tags=wanted, updated_after=since)
            return self.instance.get_run_records(filters, limit=most)

        if not self.place:
            return [_of_itself(record) for record in asked({}, limit)]
        # Each run that was ever kept has its place as a tag, so a database that looks for it goes through them all. It
        # does so only where others' runs may hide ours, or may be so many that to read them all takes longer still.
        most = _FEW if limit is None else limit
        found = asked({}, most)
        here = [each for each in found if place_of(each.dagster_run) == self.place]
        if len(found) == most and (limit is None or len(here) < most):
            here = list(asked({PLACE_TAG: self.place}, limit))
        return [_of_itself(record) for record in here]

    def runs(
        self,
        *statuses: dg.DagsterRunStatus,
        job_name: str | None = None,
        tags: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> list[dg.DagsterRun]:
        """Runs, newest first."""
        return [each.dagster_run for each in self.records(*statuses, job_name=job_name, tags=tags, limit=limit)]

    def is_of(self, run: dg.DagsterRun, job_name: str) -> bool:
        """Whether it is a run of this job of ours."""
        return run.job_name == self.mount.name(job_name)

    def materialized_by(self, run: dg.DagsterRun) -> frozenset[dg.AssetKey]:
        """The assets that a run was made to materialize; of a run of one of our jobs none.

        Dagster stores a selection where somebody has chosen assets. A job of the project's own is its selection, so
        its runs have none if a schedule, a sensor or a terminal starts them. Their plan says it.
        """
        if run.asset_selection:
            return frozenset(run.asset_selection)
        if run.job_name in map(self.mount.name, OWN_JOBS):
            return frozenset()
        # The plan is stored with the run, whole, and all runs of a job share it; its events come one by one.
        plan_id = run.execution_plan_snapshot_id
        if plan_id is None:
            return frozenset()
        if plan_id not in _planned:
            if len(_planned) >= _MOST_REMEMBERED:
                _planned.clear()
            _planned[plan_id] = frozenset(self.instance.get_execution_plan_snapshot(plan_id).asset_selection)
        return _planned[plan_id]

    def has_named_failed(self, run: dg.DagsterRun, sections: Callable[[], AbstractSet[dg.AssetKey]]) -> bool:
        """Whether a run has named what failed of these clean sections, which are all of the mount.

        One that was made for others, too, may have named theirs alone: the step of another mount does not know ours.
        Most have named nothing, and there may be thousands of sections: they are asked for where they count.
        """
        return FAILED_TAG in told_of_itself(run) and self.materialized_by(run) <= sections()


def _of_itself(record: dg.RunRecord) -> dg.RunRecord:
    """A run without what its tags say of the one that it executes again."""
    run = record.dagster_run
    if run.parent_run_id is None:
        return record
    told = told_of_itself(run)
    own = {name: text for name, text in run.tags.items() if name in told or not name.startswith(_TOLD_TAGS)}
    return record._replace(dagster_run=run.with_tags(own))
