"""Which due logs a sensor asks a run for: those that no run is cleaning already.

A log whose clean failed is not due before its time: that stands in its topic (``keptlog.log.uncleanable``), where the
clean that failed has put it. Only a run that died could not; ``failed_run_sensor`` does it in its place.

Dagster starts a run key only once, whatever became of its run. The key therefore holds where the metadata of each
log's topic lies, which moves with every commit and every mark, and the hour, for a run that was cancelled. None of this
guards correctness: if a log is asked for twice, the commit refuses one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from keptlog.dagster.assets.sections import POOL
from keptlog.dagster.orchestration.in_flight import logs_in_flight
from keptlog.log.assessment import Assessment, Trigger

LOGS_PER_RUN = 100
TRIGGER_TAG = "keptlog/trigger"
LOGS_TAG = "keptlog/topic_partitions"
NAMES_IN_TAG = 5
_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class DueLogs:
    """Due logs by what becomes of them in this tick."""

    requested: tuple[Assessment, ...]
    in_flight: tuple[str, ...]


def due_logs(instance: dg.DagsterInstance, due: Sequence[Assessment]) -> DueLogs:
    """Sort due logs into those to request now, at most ``LOGS_PER_RUN``, and those that a run is cleaning."""
    if not due:
        return DueLogs((), ())
    busy = logs_in_flight(instance)
    requested = [each for each in due if not busy.includes(each.log)]
    in_flight = tuple(str(each.log.topic_partition) for each in due if busy.includes(each.log))
    return DueLogs(tuple(requested[:LOGS_PER_RUN]), in_flight)


def run_request(trigger: Trigger, due: DueLogs, locations: Mapping[str, str], now_ms: int) -> dg.RunRequest:
    """One run for the logs to request."""
    names = [str(each.log.topic_partition) for each in due.requested]
    places = [locations[each.log.topic_partition.topic] for each in due.requested]
    return dg.RunRequest(
        run_key=run_key(trigger.value, names, places, now_ms),
        run_config={"ops": {"plan": {"config": {"logs": names}}}},
        tags={
            TRIGGER_TAG: trigger.value,
            LOGS_TAG: some_of(names, NAMES_IN_TAG),
            # A log that fails is tried again when its time comes; two ways of trying again would multiply.
            "dagster/max_retries": "0",
        },
    )


def set_pool_size(instance: dg.DagsterInstance, threads: int) -> None:
    """Let as many cleans run at once as ``log.cleaner.threads`` says."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        sizes = {pool.name: pool.limit for pool in storage.get_pool_limits()}
        if sizes.get(POOL) != threads:
            storage.set_concurrency_slots(POOL, threads)


def run_key(trigger: str, names: Sequence[str], locations: Sequence[str], now_ms: int) -> str:
    """The same for the same logs at the same state within an hour."""
    identity = [f"{name}@{location}" for name, location in zip(names, locations, strict=True)]
    digest = hashlib.sha256("\n".join([*identity, str(now_ms // _HOUR_MS)]).encode()).hexdigest()[:16]
    return f"{trigger}:{some_of(names, 1)}:{digest}"


def some_of(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
