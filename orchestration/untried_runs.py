"""Runs of cleans that have failed around their ops, and not in them: these have tried nothing, as one that never began.

What an op hands on could not be kept, because the disk of its machine is full for example, or was gone when the next
op was to take it up; or a resource could not be had, which a project may have given itself. No op can say so in a tag,
for none of them is at work then. Dagster's events say it.
"""

from __future__ import annotations

import dagster as dg
from dagster import DagsterEvent, DagsterEventType
from dagster._core.errors import DagsterExecutionHandleOutputError, DagsterExecutionLoadInputError
from dagster._core.execution.plan.objects import StepFailureData
from dagster_shared.error import SerializableErrorInfo

from keptlog.dagster.orchestration.clean_job import CommitConfig, PlanConfig
from keptlog.dagster.resources.passes import NOT_HERE

_KINDS = {DagsterEventType.STEP_FAILURE, DagsterEventType.RESOURCE_INIT_FAILURE}
_TYPED = (PlanConfig, CommitConfig)
"""What is typed for the ops of a clean."""
_OF_INPUT, _OF_OUTPUT = DagsterExecutionLoadInputError.__name__, DagsterExecutionHandleOutputError.__name__


def why_not_begun(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    """Why an op of a run could not begin, which has nothing to do with what is around it; null if none is known.

    However often that happens, it is neither an outage nor a death: whoever launches such a run is told by the run.
    """
    failures = _failures(instance, run)
    steps = [each.step_failure_data for each in failures if each.is_step_failure]
    if run.parent_run_id is not None and any(map(_is_of_input, steps)):
        return "it could not load what the run before had handed on"
    for failed in steps:
        said = _refusal(failed.error)
        # PyIceberg's errors are of the same class, of other models.
        if said and any(f" for {each.__name__} " in said for each in _TYPED):
            return f"its configuration was refused: {said}"
    for event in failures if run.run_config.get("resources") else ():
        said = None if event.is_step_failure else _refusal(event.engine_event_data.error)
        if said:  # of what was typed: a project's own are refused when it is loaded
            return f"the configuration of its resources was refused: {said}"
    return None


def why_untried(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    """What has failed around the ops of a run; null if that is not known of any."""
    for event in _failures(instance, run):
        step = event.step_failure_data if event.is_step_failure else None
        error = step.error if step else event.engine_event_data.error
        if step is None or _is_of_input(step) or (error is not None and error.cls_name == _OF_OUTPUT):
            return one_line(first_cause(error).message if error else event.message)
    return None


def first_cause(error: SerializableErrorInfo) -> SerializableErrorInfo:
    """What an error comes from in the end."""
    while error.cause:
        error = error.cause
    return error


def one_line(message: str | None) -> str:
    """What an event or error says, in one line."""
    return " ".join((message or "without a message").split())


def _refusal(error: SerializableErrorInfo | None) -> str | None:
    """What a model of pydantic says against what it was given, in one line; null if it is another error."""
    said = one_line(first_cause(error).message) if error else ""
    return said if "ValidationError: " in said else None


def _is_of_input(failed: StepFailureData) -> bool:
    """Whether an op has failed before it began: what it was to be given is not there, or can't be read any more."""
    told = failed.user_failure_data
    is_gone = told is not None and told.description == NOT_HERE
    return is_gone or (failed.error is not None and failed.error.cls_name == _OF_INPUT)


def _failures(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[DagsterEvent]:
    entries = instance.all_logs(run.run_id, of_type=_KINDS)
    return [each.dagster_event for each in entries if each.dagster_event]
