"""The sensor that remembers runs that died.

A clean that fails says so itself, in the topic. A run whose process dies can't: its logs would be asked for again at
once, and kill the next run. So this sensor marks those of them that are still due. A run that an outage has stopped,
or that never began, marks none, unless that goes on (``outages``). Nor does one whose ops have not failed, but what is
around them (``untried_runs``), or one that is executed again, and does not find what the run before has left to it, or
one whose configuration an op or a resource refuses.
What a run that died has cleaned, and could not tell, is told here too (``untold_cleans``); so is what a run of assets
had cleaned that died, and a run that somebody has ended (``ended_runs``).

A mark may not be taken: the catalog is away, or the storage of one topic. Dagster's own sensors of runs are told of a
failure once, whatever they make of it. So this one looks at the last failed runs at each tick, and a tag says what it
has made of each. Until all marks of a run are made, its tag names the logs that are left, and the next tick goes on.

A run tells nothing of a log that was tried since it began, and one that ended a day ago tells nothing at all: Dagster
keeps runs for ever, and this sensor may have been off. A tick waits for few topics that are out of reach, however many
runs have died. The next tick takes the runs that named these last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg
from dagster import DagsterEventType
from dagster._core.events import JobFailureData
from dagster._core.execution.plan.objects import ErrorSource

from keptlog.dagster.assets.long_tags import as_tags, tag_text
from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG, ToldOutage, outage_tags, tell_in_tags
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.ended_runs import tell_of_ended_runs
from keptlog.dagster.orchestration.in_flight import configured_logs, stopped_logs
from keptlog.dagster.orchestration.outages import MOST_UNBEGUN, outages_of
from keptlog.dagster.orchestration.own_runs import MARKED_TAG, UNMARKED_TAG, OwnRuns, happened_ms
from keptlog.dagster.orchestration.still_failed import show_in_turn
from keptlog.dagster.orchestration.untold_cleans import tell_untold_cleans
from keptlog.dagster.orchestration.untried_runs import first_cause, one_line, why_not_begun, why_untried
from keptlog.errors import first_line
from keptlog.log.topic_partition import possible_topics
from keptlog.log.words.counted import first_lines, some_of
from keptlog.passes.marked import Death, Marked

FAILED_RUN_SENSOR = "failed_run_sensor"
_RUNS = 100
"""So many failed runs are looked back at."""
_REMEMBERED_MS = 86_400_000
_NONE = "none, nothing is due any more that was not tried since"
EVENTS_PER_TICK = 20
"""Of cleans that runs could not tell: each takes tens of ms, and a tick has a minute."""
_TOLD = 5
"""Of the runs that a tick tells of, and of the logs of each."""


@dataclass
class _Progress:
    """How far a tick has come."""

    out_of_reach: set[str] = field(default_factory=set)
    """Topics that took no mark."""
    events_left: int = field(default_factory=lambda: EVENTS_PER_TICK)
    """So many cleans may still be told."""


def failed_run_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor of a home."""
    mount = automation.mount

    @dg.sensor(
        name=mount.name(FAILED_RUN_SENSOR),
        description=(
            "Marks the logs of a run that died as uncleanable, so that they are tried again with a back-off, and tells "
            "what the run had cleaned."
        ),
        minimum_interval_seconds=automation.seconds(FAILED_RUN_SENSOR),
        default_status=automation.sensor_status(FAILED_RUN_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock"),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        tick, progress = MountCall(mount, context), _Progress()
        told = _told(tick, progress)
        of_ended, left = tell_of_ended_runs(tick, progress.events_left)
        told += [*of_ended, *show_in_turn(tick, left)]
        reason = "; ".join(first_lines(told, _TOLD)) or "no run has died since the last tick"
        return dg.SensorResult(skip_reason=reason, cursor=",".join(sorted(progress.out_of_reach)))

    return sensor


def _told(tick: Tick, progress: _Progress) -> list[str]:
    """Mark what is to be marked, and say so, run by run.

    The run that failed first comes first, but for those that wait for a topic that took none at the last tick.

    Raises:
        StorageUnavailable: the catalog can't be reached; the next tick goes on.
    """
    records = OwnRuns.of_tick(tick).records(dg.DagsterRunStatus.FAILURE, job_name=CLEAN_JOB, limit=_RUNS)
    outages = outages_of(records, stopped_logs, MOST_UNBEGUN, _untried(tick.context.instance, records))
    failed = [each for each in reversed(records) if MARKED_TAG not in each.dagster_run.tags]
    before = set((tick.context.cursor or "").split(",")) - {""}
    in_turn = sorted(failed, key=lambda each: not before.isdisjoint(_possible_topics(each)))
    runs = [(each.dagster_run.run_id, each) for each in in_turn]
    return [f"run {run_id}: {_settled(tick, each, outages.get(run_id), progress)}" for run_id, each in runs]


def _untried(instance: dg.DagsterInstance, records: Sequence[dg.RunRecord]) -> dict[str, str]:
    """By run, what has failed around its ops, of those that nobody has judged yet and that say nothing themselves.

    One that executes another again, and finds nothing of it, is not asked for again: that one is. Nor is one whose
    configuration was refused, which no sensor has given.
    """
    told = (MARKED_TAG, UNMARKED_TAG, FAILED_TAG, OUTAGE_TAG)
    runs = [each.dagster_run for each in records]
    unjudged = [run for run in runs if not any(name.startswith(told) for name in run.tags)]
    found = {run.run_id: why_untried(instance, run) for run in unjudged if not why_not_begun(instance, run)}
    return {run_id: why for run_id, why in found.items() if why is not None}


def _settled(tick: Tick, record: dg.RunRecord, outage: ToldOutage | None, progress: _Progress) -> str:
    """Mark what is still to be marked of a run; what its tags and the tick say of it."""
    now_ms = tick.now_ms()
    left: list[str] = []
    told = _why_no_mark(tick, record, outage, now_ms)
    if told is None:
        # Of a home that is away no log is there to be marked, and the run would be settled.
        tick.log_store.require_begun()
        death = _death(tick, record, now_ms)
        marked = tick.log_store.cleaner().mark_still_due(death, progress.out_of_reach, now_ms=now_ms)
        left = [*marked.untried, *marked.failed]
        told = f"marked as uncleanable: {some_of(marked.names, _TOLD) or _NONE}"
        if left:
            told = "; ".join([*([told] if marked.names else []), *_unmarked(marked)])
    if FAILED_TAG not in record.dagster_run.tags:
        untold = tell_untold_cleans(tick, record, progress.events_left) if progress.events_left else []
        progress.events_left -= len(untold)
        if untold:
            told = f"{told}; told now as cleaned: {some_of(untold, _TOLD)}"
        if not progress.events_left:
            return f"{told}; more of it in the next tick"
    tags = _tags_of_left(record.dagster_run, left) if left else as_tags(MARKED_TAG, told)
    if outage and outage.is_untried:
        tags |= outage_tags(outage)
    tell_in_tags(tick.context.instance, record.dagster_run.run_id, tags)
    return told


def _tags_of_left(run: dg.DagsterRun, left: Sequence[str]) -> dict[str, str]:
    """The logs that are still to be marked; a piece of a longer list before is emptied, as no tag can be removed."""
    before = dict.fromkeys((name for name in run.tags if name.startswith(f"{UNMARKED_TAG}.")), "")
    return before | as_tags(UNMARKED_TAG, ",".join(left))


def _why_no_mark(tick: Tick, record: dg.RunRecord, outage: ToldOutage | None, now_ms: int) -> str | None:
    """Why the logs of a failed run are not to be marked; null if they are."""
    run = record.dagster_run
    if outage:
        return f"it was stopped by {outage.reason}: that is no log's fault, nothing is marked for it"
    if FAILED_TAG in run.tags:
        return "it has named what failed itself, and has marked what is at fault"
    if run.tags.get("dagster/will_retry") == "true":
        return "it is tried again"
    if why := why_not_begun(tick.context.instance, run):
        return f"{why}: that is no log's fault, nothing is marked for it"
    ended_s = record.end_time or record.update_timestamp.timestamp()
    if now_ms - ended_s * 1000 >= _REMEMBERED_MS:
        return "it died more than a day ago, which tells nothing of its logs as they are now: nothing is marked"
    return None if _names(record) else "it named no logs, but was to clean all that were due: nothing is marked"


def _names(record: dg.RunRecord) -> list[str]:
    """The logs that a run has named, or those of them that are still to be marked."""
    left = tag_text(record.dagster_run.tags, UNMARKED_TAG)
    return left.split(",") if left else configured_logs(record.dagster_run)


def _possible_topics(record: dg.RunRecord) -> set[str]:
    return {topic for name in _names(record) for topic in possible_topics(name)}


def _death(tick: Tick, record: dg.RunRecord, now_ms: int) -> Death:
    run_id = record.dagster_run.run_id
    reason = f"run {run_id} died: {_why(tick.context.instance, run_id)}"
    began_s = record.start_time or record.create_timestamp.timestamp()
    return Death(tuple(_names(record)), reason, happened_ms(record, round(began_s * 1000), now_ms))


def _unmarked(marked: Marked) -> list[str]:
    """What could not be marked, and why."""
    failed = [f"{name} can't be marked as uncleanable yet: {first_line(why)}" for name, why in marked.failed.items()]
    untried = [f"not tried yet: {some_of(marked.untried, _TOLD)}"] if marked.untried else []
    return [*first_lines(failed, _TOLD), *untried]


def _why(instance: dg.DagsterInstance, run_id: str) -> str:
    """What a step failed with, in one line; what Dagster says of the run where no step could say anything.

    A step that was interrupted knows no more than that: who ended the run says why.
    """
    kinds = {DagsterEventType.STEP_FAILURE, DagsterEventType.RUN_FAILURE}
    events = [each.dagster_event for each in instance.all_logs(run_id, of_type=kinds) if each.dagster_event]
    for event in events:
        step = event.step_failure_data if event.is_step_failure else None
        error = step.error if step and step.error_source is not ErrorSource.INTERRUPT else None
        if error:
            return one_line(first_cause(error).message)
    for event in events:
        ended = event.event_specific_data
        if isinstance(ended, JobFailureData) and ended.error and not ended.first_step_failure_event:
            return one_line(first_cause(ended.error).message)
    return one_line(next((each.message for each in events if each.is_run_failure and each.message), None))
