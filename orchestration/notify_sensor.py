"""The sensor that tells people what is wrong, on the ways that ``KEPTLOG_NOTIFY_…`` names; idle where none is named.

It looks with what the other sensors have seen: their observer, and the lags that the ingest sensor has asked for. That
the sensors themselves are silent it can't tell; ``keptlog notify`` does, from outside (docs/notify.md).
"""

from __future__ import annotations

import os

import dagster as dg

from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.resources.lag import lag_scanner_of
from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.home import monotonic_ms
from keptlog.log.told.conditions import Evidence, Sighting, Thresholds
from keptlog.log.words.counted import counted
from keptlog.notify.settings import notify_settings
from keptlog.passes.watch import (
    AT_WORK,
    Chosen,
    Watch,
    home_sighting,
    ingest_evidence,
    is_left,
    spark_evidence,
    without_catalog,
    without_topics,
)

NOTIFY_SENSOR = "notify_sensor"
NOBODY = "nobody is told of anything: set KEPTLOG_NOTIFY_WEBHOOK_URL or another way to reach people (docs/notify.md)"
_INTERVAL_SECONDS = 60


def notify_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor of a home."""
    mount = automation.mount

    @dg.sensor(
        name=mount.name(NOTIFY_SENSOR),
        description="Tells people by webhook, Slack or mail what is late, failed or stopped, and when that is over.",
        minimum_interval_seconds=automation.seconds(NOTIFY_SENSOR, _INTERVAL_SECONDS),
        default_status=automation.sensor_status(NOTIFY_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        return dg.SensorResult(skip_reason=_told(MountCall(mount, context)))

    return sensor


def _told(tick: Tick) -> str:
    """Tell people, and say what was done."""
    log = tick.context.log
    try:
        settings = notify_settings(os.environ)
    except InvalidConfig as error:
        return f"nobody is told of anything: {error}"
    if not settings.has_adapters:
        return NOBODY
    watch = Watch(tick.log_store.path, settings, monotonic_ms)
    looked: list[Sighting] = []

    def look() -> Sighting:
        looked.append(_look(tick, settings.thresholds))
        return looked[-1]

    delivery = watch.tell(look)
    if delivery is None:
        return AT_WORK
    unknown = [f"not known: {why}" for seen in looked for why in seen.unknown.values()]
    for line in unknown:
        log.error("%s", line)
    for way, message in delivery.sent:
        log.info("sent by %s: %s", way, message.text)
    for way, why in delivery.failed.items():
        log.error("not delivered by %s, it is tried again at the next tick: %s", way, why)
    holding = sum(each.holds for each in delivery.state.known)
    failed = [f"not delivered by {way}: {why}" for way, why in delivery.failed.items()]
    sent = f"{counted(len(delivery.sent), 'message')} sent"
    return "; ".join([f"{counted(holding, 'condition')}, {sent}", *failed, *unknown])


def _look(tick: Tick, limits: Thresholds) -> Sighting:
    log_store, now_ms = tick.log_store, tick.now_ms()
    try:
        seen = log_store.observer.look(now_ms)
    except (StorageUnavailable, InvalidConfig) as error:
        # With settings that can't be accepted no home can be opened, and no sensor asks for a clean.
        sighting = _of_others(tick, now_ms) or without_catalog(error, now_ms)
    else:
        sighting = home_sighting(log_store.path, seen, limits, lambda: _stopped(tick, now_ms), _chosen(tick))
    return sighting.with_evidence(spark_evidence(tick.why_spark_is_down()))


def _of_others(tick: Tick, now_ms: int) -> Sighting | None:
    """What is to be told where other topics of the home can be had, but none of the sensor's; null if none at all."""
    chosen = _chosen(tick)
    try:
        return without_topics(tick.log_store.of_all.observer.look(now_ms), chosen.is_meant) if chosen else None
    except KeptlogError:
        return None


def _chosen(tick: Tick) -> Chosen | None:
    """Which topics of the home the sensor looks after; null if all."""
    from keptlog.table.chosen import Patterns  # noqa: PLC0415  # a tick needs it, loading does not

    patterns = tuple(tick.log_store.topics)
    return Chosen(Patterns(patterns).fits, lambda address: _is_left(tick, address)) if patterns else None


def _is_left(tick: Tick, address: str) -> bool:
    """Whether no topic of the whole home comes from a broker: asked of one that is told of, and not heard of here."""
    try:
        return is_left(tick.log_store.of_all.observer.look(tick.now_ms()), address)
    except KeptlogError:
        return False


def _stopped(tick: Tick, now_ms: int) -> Evidence:
    """What ingests have stopped at, as far as the ingest sensor has lately asked."""
    scan = lag_scanner_of(tick.log_store).recent(now_ms)
    return ingest_evidence(scan) if scan else Evidence()
