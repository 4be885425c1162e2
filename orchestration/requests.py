"""Which due logs a sensor asks a run for: those that no run is cleaning already.

A log whose clean failed is not due before its time: that stands in its topic (``keptlog.log.uncleanable``), where the
clean that failed has put it. Only a run that died could not; ``failed_run_sensor`` does it in its place. What an outage
has stopped is in no topic, and waits for minutes at most (``outages``).

Dagster starts a run key only once, whatever became of its run. The key therefore holds where the metadata of each
log's topic lies, which moves with every commit and every mark, which of its runs an outage has stopped, and the hour,
for a run that was cancelled. The logs of such a run come last, or no others would be asked for until then. A request
whose run is over is ``spent``: people are told so, as Dagster itself would drop it and say nothing. None of this guards
correctness: if a log is asked for twice, the commit refuses one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import dagster as dg
from dagster._core.storage.tags import PRIORITY_TAG, RUN_KEY_TAG
from dagster._utils.concurrency import get_max_concurrency_limit_value

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.orchestration.in_flight import (
    UNDER_WAY,
    begun_and_queued,
    cancelled_cleans,
    configured_logs,
    slow_cleans,
    stopped_logs,
)
from keptlog.dagster.orchestration.late_first import PRIORITY
from keptlog.dagster.orchestration.outages import MOST_UNBEGUN, Outages, recent_outages
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.iso_time import iso_time

LOGS_PER_RUN = 100
TRIGGER_TAG = "keptlog/trigger"
LOGS_TAG = "keptlog/topic_partitions"
NAMES_IN_TAG = 5
_HOUR_MS = 3_600_000
_ENDED = {dg.DagsterRunStatus.CANCELED: "was cancelled", dg.DagsterRunStatus.FAILURE: "has failed"}


@dataclass(frozen=True)
class DueLogs:
    """Due logs by what becomes of them in this tick."""

    requested: tuple[Assessment, ...] = ()
    """All that may be requested now, in order; one run takes the first ``LOGS_PER_RUN``."""
    in_flight: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    """Those whose run waits in Dagster's queue, for its place in the pool for example."""
    slow: tuple[str, ...] = ()
    """If logs are in flight or queued, the runs that have been cleaning for hours, as people are told of them."""
    paused: tuple[tuple[str, int], ...] = ()
    """Those that an outage has stopped again and again, and when they are asked for."""
    outages: Outages = field(default_factory=Outages)


def due_logs(own: OwnRuns, due: Sequence[Assessment], topics: Iterable[str], now_ms: int) -> DueLogs:
    """Sort due logs into those that may be requested now, and those that are left for now.

    ``topics`` are all of the home.
    """
    if not due:
        return DueLogs()
    records = own.records(*UNDER_WAY)
    begun, queue = begun_and_queued(own, records)
    outages = recent_outages(own, CLEAN_JOB, stopped_logs, now_ms, MOST_UNBEGUN)
    requested: list[Assessment] = []
    in_flight: list[str] = []
    queued: list[str] = []
    paused: list[tuple[str, int]] = []
    for each in due:
        name = str(each.log.topic_partition)
        retry_at_ms = outages.retry_at_ms(*_names_of(each))
        if begun.includes(each.log):
            in_flight.append(name)
        elif queue.includes(each.log):
            queued.append(name)
        elif now_ms < retry_at_ms:
            paused.append((name, retry_at_ms))
        else:
            requested.append(each)
    if len(requested) > LOGS_PER_RUN:
        cancelled = cancelled_cleans(own)
        requested.sort(key=lambda each: cancelled.includes(each.log))
    slow = slow_cleans(own, records, topics) if in_flight or queued else ()
    return DueLogs(tuple(requested), tuple(in_flight), tuple(queued), slow, tuple(paused), outages)


def run_request(trigger: Trigger, due: DueLogs, locations: Mapping[str, str], now_ms: int) -> dg.RunRequest:
    """One run for the first logs to request."""
    requested = due.requested[:LOGS_PER_RUN]
    names = [str(each.log.topic_partition) for each in requested]
    states = [f"{locations[each.log.topic_partition.topic]}#{due.outages.runs(*_names_of(each))}" for each in requested]
    ahead = {PRIORITY_TAG: PRIORITY} if trigger is Trigger.MAX_COMPACTION_LAG else {}
    return dg.RunRequest(
        run_key=run_key(trigger.value, names, states, now_ms),
        run_config={"ops": {"plan": {"config": {"logs": names}}}},
        tags={
            TRIGGER_TAG: trigger.value,
            LOGS_TAG: some_of(names, NAMES_IN_TAG),
            # A log that fails is tried again when its time comes; two ways of trying again would multiply.
            "dagster/max_retries": "0",
            **ahead,
        },
    )


def left_over(due: DueLogs) -> str:
    """What a tick says of the logs that its run does not take; empty if it takes all."""
    return left_of(len(due.requested), LOGS_PER_RUN)


def left_of(count: int, most: int, noun: str = "log") -> str:
    """What a tick says that asks for so many of them at most; empty if that is all."""
    left = count - most
    if left <= 0:
        return ""
    are = "is" if left == 1 else "are"
    return f"{counted(left, f'more {noun}')} {are} due and not asked for yet: a tick asks for at most {most}"


@dataclass(frozen=True)
class Spent:
    """A request of which the run is over, and has cleaned nothing: Dagster begins no other run for its key."""

    run: dg.DagsterRun
    names: tuple[str, ...]
    """The topic-partitions that it was to clean."""
    again_ms: int
    """When the key is another one, whatever becomes of the logs."""

    def told(self, what: str = "it") -> str:
        """In words, of the logs called so."""
        ended = _ENDED.get(self.run.status, "has ended")
        until = f"the next is asked for at {iso_time(self.again_ms)} at the latest"
        return f"run {self.run.run_id}, which was to clean {what}, {ended}: {until}"


def spent(own: OwnRuns, request: dg.RunRequest, now_ms: int) -> Spent | None:
    """Whether the run of this very request is over; null if there was none, or if it is under way."""
    runs = own.runs(job_name=CLEAN_JOB, tags={RUN_KEY_TAG: request.run_key or ""}, limit=1)
    if not runs or not runs[0].is_finished:
        return None
    return Spent(runs[0], tuple(configured_logs(runs[0])), (now_ms // _HOUR_MS + 1) * _HOUR_MS)


def all_spent(own: OwnRuns, due: DueLogs, locations: Mapping[str, str], now_ms: int) -> list[Spent]:
    """The same of what each sensor asks for now; ``due`` are the logs of all of them."""
    found = []
    for trigger in Trigger:
        requested = tuple(each for each in due.requested if each.trigger is trigger)
        if requested:
            request = run_request(trigger, replace(due, requested=requested), locations, now_ms)
            found.append(spent(own, request, now_ms))
    return [each for each in found if each]


def _names_of(assessment: Assessment) -> tuple[str, str]:
    """What a run may have named a log by."""
    name = assessment.log.topic_partition
    return str(name), name.topic


def set_pool_size(tick: Tick, threads: int) -> None:
    """Let as many cleans run at once as ``log.cleaner.threads`` says, or as a pool of Dagster's takes."""
    storage, pool = tick.context.instance.event_log_storage, tick.mount.pool
    threads = min(threads, get_max_concurrency_limit_value())
    if storage.supports_global_concurrency_limits:
        sizes = {each.name: each.limit for each in storage.get_pool_limits()}
        if sizes.get(pool) != threads:
            storage.set_concurrency_slots(pool, threads)


def run_key(trigger: str, names: Sequence[str], states: Sequence[str], now_ms: int) -> str:
    """The same for the same logs at the same state within an hour."""
    identity = [f"{name}@{state}" for name, state in zip(names, states, strict=True)]
    digest = hashlib.sha256("\n".join([*identity, str(now_ms // _HOUR_MS)]).encode()).hexdigest()[:16]
    return f"{trigger}:{some_of(names, 1)}:{digest}"
