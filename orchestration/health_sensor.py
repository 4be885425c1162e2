"""The sensor that tells how the logs of a home stand: the asset ``keptlog/health`` (``keptlog.dagster.assets.health``).

It looks at nothing that another sensor has looked at within the last minute: the cleaning sensors leave what they have
seen, the ingest sensor what it has asked the brokers. Only where those are off, or slower, it looks itself, at the
catalog alone. When that fails, it says so: then nothing is known, and no number is told.

Each tick tells once, and Dagster's daemon comes by every five seconds; so it ticks every 55 seconds, for somebody to
know within a minute. What the last report in full told is a digest in the cursor, which outlives any process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import dagster as dg

from keptlog.dagster.assets.health import FULL_MS, Health, health_event
from keptlog.dagster.assets.ingest_report import stopped_in_configuration
from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.orchestration.asset_sensors import SensorOfAssets
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.clean_sensors import CLEAN_SENSORS
from keptlog.dagster.orchestration.erasure_sensor import ERASURE_SENSOR
from keptlog.dagster.orchestration.failed_runs import FAILED_RUN_SENSOR
from keptlog.dagster.orchestration.in_flight import UNDER_WAY, slow_ingests
from keptlog.dagster.orchestration.ingest_sensor import INGEST_LAG_SENSOR
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.orchestration.requests import all_spent, due_logs
from keptlog.dagster.orchestration.retention_sensor import RETENTION_SENSOR
from keptlog.dagster.orchestration.sensor_states import SensorState, sensor_states
from keptlog.dagster.resources.lag import lag_scanner_of
from keptlog.errors import KeptlogError, first_line
from keptlog.ingest.lag import RECENT_MS
from keptlog.log.assessment import in_order_of_urgency
from keptlog.log.given.past import was_within
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.named import unnamed
from keptlog.log.words.units import duration
from keptlog.notify.checks import broken_checks
from keptlog.passes.observer import Overview
from keptlog.passes.watch import brokers_of

HEALTH_SENSOR = "health_sensor"
SECONDS = 55
SHARED_MS = 60_000
"""What another sensor has seen is taken for so long."""
_WATCHED = (*CLEAN_SENSORS, ERASURE_SENSOR, INGEST_LAG_SENSOR, RETENTION_SENSOR, FAILED_RUN_SENSOR)


def health_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor of a home."""
    mount = automation.mount
    by_code = {name: automation.sensor_status(name) for name in _WATCHED}

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        return _tick(MountCall(mount, context), by_code)

    return SensorOfAssets(
        [mount.keys.health] if automation.topics else [],
        name=mount.name(HEALTH_SENSOR),
        evaluation_fn=evaluate,
        description="Tells every minute how the logs stand: totals, the worst ones, and why each is not cleaned yet.",
        minimum_interval_seconds=automation.seconds(HEALTH_SENSOR, SECONDS),
        default_status=automation.sensor_status(HEALTH_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
    )


def _tick(tick: Tick, by_code: Mapping[str, dg.DefaultSensorStatus]) -> dg.SensorResult:
    health = replace(_health(tick, sensor_states(tick, by_code)), clock=tick.clock.told())
    digest, told_ms = _told(tick.context.cursor)
    in_full = health.digest != digest or not was_within(FULL_MS, told_ms, health.now_ms)
    cursor = f"{health.digest} {health.now_ms}" if in_full else tick.context.cursor
    event = health_event(tick.keys, health, in_full=in_full)
    return dg.SensorResult(skip_reason=health.told(), asset_events=[event], cursor=cursor)


def _health(tick: Tick, states: Sequence[SensorState]) -> Health:
    now_ms = tick.now_ms()
    ages = [
        now_ms - each.last_tick_ms
        for each in states
        if each.name in CLEAN_SENSORS and each.is_on and each.last_tick_ms is not None
    ]
    shown = [(tick.mount.name(each.name), _state_told(each, now_ms)) for each in states]
    last_tick_age_ms = max(*ages, 0) if ages else None
    try:
        seen = _seen(tick, now_ms)
        lag, lag_unseen = _consumer_lag(tick, seen, states, now_ms)
    except (KeptlogError, OSError) as error:
        unseen = [f"the home: {first_line(error)}"]
        return Health(now_ms, None, unseen=unseen, last_tick_age_ms=last_tick_age_ms, sensors=shown)
    hindered, next_tries = _hindered(tick, seen, states)
    return Health(
        now_ms,
        seen.assessments,
        hindered,
        topics_unseen=len(seen.unreadable) + seen.behind,
        unseen=[*_unseen(seen), *_checks_unseen(tick.log_store.path), *lag_unseen],
        consumer_lag=lag,
        last_tick_age_ms=last_tick_age_ms,
        broker=tick.log_store.broker,
        sensors=shown,
        next_tries=next_tries,
    )


def _seen(tick: Tick, now_ms: int) -> Overview:
    """What the last look of any sensor saw, if it is young enough; else a look.

    Raises:
        StorageUnavailable: the catalog can't be reached, or there is none: then zero logs are no number either.
    """
    observer = tick.log_store.observer
    last = observer.last
    is_young = last is not None and was_within(SHARED_MS, last.now_ms, now_ms)
    seen = last if last is not None and is_young else observer.look(now_ms)
    if not seen.locations:
        tick.log_store.require_begun()
    return seen


def _unseen(seen: Overview) -> list[str]:
    unreadable = [f"{topic}: {unnamed(topic, error)}" for topic, error in seen.unreadable.items()]
    return [*unreadable, *seen.behind_lines()]


def _checks_unseen(home: Path) -> list[str]:
    """Why nobody knows what verify has found; nothing if it is known."""
    try:
        broken_checks(home)
    except KeptlogError as error:
        return [f"what verify has found: {first_line(error)}"]
    return []


def _consumer_lag(
    tick: Tick, seen: Overview, states: Sequence[SensorState], now_ms: int
) -> tuple[int | None, list[str]]:
    """How many offsets are to be ingested, and what is not known of that."""
    with_brokers = brokers_of(seen)
    # What a directory was imported of has a source too, and no broker that anybody would ever ask.
    if not with_brokers:
        return None, []
    last = lag_scanner_of(tick.log_store).recent(now_ms)
    if last is None:
        ingested = counted(len(with_brokers), "ingested topic")
        return None, [f"the consumer lag of {ingested}: {_why_not_asked(tick, states)}"]
    reasons = [reason for topic in last.topics for reason in stopped_in_configuration(topic).items()]
    stopped = [f"{name}: stopped: {why}" for name, why in reasons]
    unread = [
        f"the consumer lag of {topic}: {unnamed(topic, why)}"
        for topic, why in last.unread.items()
        if topic in with_brokers
    ]
    # Of what the scan could not read, and this look could, it is known that it has no broker: no lag of it is lacking.
    without = seen.locations.keys() - seen.unreadable.keys() - with_brokers.keys()
    is_whole = not (last.unanswered or last.unread.keys() - without)
    lag = sum(topic.lag for topic in last.topics) if is_whole else None
    behind = [topic.topic for topic in last.topics if topic.lag]
    own = OwnRuns.of_tick(tick)
    slow = slow_ingests(own, own.records(*UNDER_WAY), behind) if behind else ()
    return lag, [*last.unanswered, *unread, *slow, *stopped]


def _why_not_asked(tick: Tick, states: Sequence[SensorState]) -> str:
    """Why this process knows of no lag: after a reload the sensor may have ticked half a minute ago, in another one."""
    name = tick.mount.name(INGEST_LAG_SENSOR)
    if any(each.name == INGEST_LAG_SENSOR and not each.is_on for each in states):
        return f"{name} is off"
    wait = duration(RECENT_MS)
    return f"{name} has asked no broker in this process of Dagster within {wait}; its next tick does, or says why not"


def _hindered(tick: Tick, seen: Overview, states: Sequence[SensorState]) -> tuple[dict[str, str], dict[str, int]]:
    """Why logs that are due are not cleaned this moment, and until when they are not asked for."""
    due = in_order_of_urgency(seen.assessments)
    if not due or not tick.log_store.broker.log_cleaner_enable:
        return {}, {}
    own = OwnRuns.of_tick(tick)
    found = due_logs(own, due, seen.locations, seen.now_ms)
    at_it = f"it is being cleaned, or waits: {'; '.join(found.slow)}" if found.slow else "it is being cleaned"
    queued = "; ".join(["its clean's run is queued", *found.slow])
    hindered = dict.fromkeys(found.in_flight, at_it) | dict.fromkeys(found.queued, queued)
    for name, retry_at_ms in found.paused:
        hindered[name] = f"an outage has stopped its clean, the next is asked for at {iso_time(retry_at_ms)}"
    next_tries = dict(found.paused)
    spark_is_down = tick.why_spark_is_down() if found.requested else None
    ended = {name: each for each in all_spent(own, found, seen.locations, seen.now_ms) for name in each.names}
    off = {each.name for each in states if not each.is_on}
    for each in found.requested:
        name, sensor = str(each.log.topic_partition), f"{each.trigger}_sensor"
        if sensor in off:
            hindered[name] = f"{tick.mount.name(sensor)} is off"
        elif spark_is_down:
            hindered[name] = spark_is_down
        elif name in ended:
            hindered[name], next_tries[name] = ended[name].told(), ended[name].again_ms
    return hindered, next_tries


def _state_told(state: SensorState, now_ms: int) -> str:
    on = "on" if state.is_on else "off"
    if state.last_tick_ms is None:
        return f"{on}, never ticked"
    return f"{on}, ticked {duration(max(now_ms - state.last_tick_ms, 0))} ago"


def _told(cursor: str | None) -> tuple[str, int]:
    """Digest and time of the last report in full."""
    digest, _, told_ms = (cursor or "").partition(" ")
    return digest, int(told_ms) if told_ms.isdecimal() else 0
