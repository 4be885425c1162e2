"""How a run says that an outage has stopped it: with the real reason, and in a tag that the sensors read.

A run that Spark, the catalog or the storage has let down is no news of the logs that it was asked for. It fails, for
people to see, with what is down as its reason; its tag keeps the sensors from holding it against the logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg

from keptlog.dagster.assets.long_tags import names_in_brief, names_in_full
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig, KeptlogError, NoRightToWrite, StorageUnavailable, first_line
from keptlog.foreign_json import json_value
from keptlog.passes.landing import NO_ANSWER

FAILED_TAG = "keptlog/failed"
"""On a run: the topic-partitions that it could not clean, ingest, or retain; else those that it
cleaned, and found not as they should be."""
OUTAGE_TAG = "keptlog/outage"
"""On a run that an outage has stopped: JSON with the time, and what was down."""
TOLD_BY_TAG = "keptlog/told_by"
"""On a run of which tags tell: its own id, and their names. One that is executed again begins with those of the one
before."""
_LONGEST_REASON = 500

Context = dg.OpExecutionContext | dg.AssetExecutionContext


def tell_in_tags(instance: dg.DagsterInstance, run_id: str, tags: Mapping[str, str]) -> None:
    """Say something of a run in its tags, in a way that nobody takes for what was said of another one."""
    run = instance.get_run_by_id(run_id)
    told = names_in_brief(tags.keys() | (told_of_itself(run) if run else set()))
    instance.add_run_tags(run_id, {**tags, TOLD_BY_TAG: " ".join([run_id, *told])})


def told_of_itself(run: dg.DagsterRun) -> set[str]:
    """The names of the tags that tell of this run, and not of one that it executes again."""
    run_id, *names = run.tags.get(TOLD_BY_TAG, "").split() or [""]
    return set(names_in_full(run.tags, names)) if run_id == run.run_id else set()


def tag_outage(context: Context, outage: KeptlogError, now_ms: int) -> None:
    """Say in the run's tags that it was stopped."""
    tell_in_tags(context.instance, context.run.run_id, outage_tags(ToldOutage(now_ms, first_line(outage))))


@dataclass(frozen=True)
class ToldOutage:
    """What a run has said of the outage that stopped it."""

    at_ms: int
    reason: str
    is_untried: bool = False
    """Whether it has failed before its ops began, or around them."""


def outage_tags(told: ToldOutage) -> dict[str, str]:
    """The tag of a run that was stopped."""
    untried = {"untried": True} if told.is_untried else {}
    return {OUTAGE_TAG: json.dumps({"at_ms": told.at_ms, "reason": told.reason[:_LONGEST_REASON], **untried})}


def told_outage(tags: Mapping[str, str]) -> ToldOutage | None:
    """What a run's tags say of an outage; null if none has stopped it, or somebody has typed such a tag by hand."""
    told = json_object(tags.get(OUTAGE_TAG))
    at_ms = told.get("at_ms")
    if not isinstance(at_ms, int):
        return None
    return ToldOutage(at_ms, str(told.get("reason", "an outage")), is_untried=told.get("untried") is True)


def json_object(text: str | None) -> dict[str, Any]:
    """What a tag holds; nothing if it is not as a run writes it. Who reads tags of all runs can't fail of one."""
    try:
        told = json_value(text or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def outage_among(failed: Mapping[str, KeptlogError], *, is_any_done: bool) -> KeptlogError | None:
    """What was down, where nothing was done and nothing else is wrong; null if it is something about single topics.

    A folder that a task may not write to is none: the right does not come by itself, and that says nothing of others.
    """
    errors = [each for each in failed.values() if not isinstance(each, NoRightToWrite)]
    is_down = all(isinstance(error, NO_ANSWER) for error in errors)
    return errors[0] if errors and is_down and not is_any_done else None


@contextmanager
def telling_outages(context: Context, now_ms: int, needs: LogStoreResource | None) -> Iterator[None]:
    """Around what can't be done at all without Spark, catalog and storage.

    ``needs`` is the home that has to be there: one that is away has no topics, so nothing would be wrong with any.
    It is null for what may begin a home, or says for itself that it found none.

    Raises:
        Failure: one of them is out of reach, or can't be started as this machine is set up; with the reason.
    """
    try:
        if needs:
            needs.require_begun()
        yield
    except (StorageUnavailable, InvalidConfig) as error:
        tag_outage(context, error, now_ms)
        raise dg.Failure(f"nothing could be done: {first_line(error)}", allow_retries=False) from error


@contextmanager
def refusing_what_was_asked() -> Iterator[None]:
    """Around what can be wrong with the run's own configuration alone: that is no outage, and nobody else is to wait.

    Raises:
        Failure: it can't be accepted; with the reason.
    """
    try:
        yield
    except InvalidConfig as error:
        raise dg.Failure(f"nothing was done: {first_line(error)}", allow_retries=False) from error
