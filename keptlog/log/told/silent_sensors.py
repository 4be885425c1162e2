"""Sensors of Dagster that do not tick, or fail at each tick: what people are told of them."""

from __future__ import annotations

from keptlog.log.given.past import is_past
from keptlog.log.told.conditions import Condition, Matter, Thresholds
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time

_MINUTE_MS = 60_000


def silence_condition(
    sensors: str, last_ms: int, interval_ms: int, now_ms: int, limits: Thresholds
) -> Condition | None:
    """Sensors that have not ticked for too long; null if they have. Slow ones may miss two ticks.

    A tick that is as far ahead of now was dated by a clock that was ahead, and there was none since that clock was
    mended. Who waited for the time of that tick would not miss them for as long as the clock was ahead.
    """
    age_ms = now_ms - last_ms
    if abs(age_ms) <= limits.silent_after_ms(interval_ms):
        return None
    minutes = counted(abs(age_ms) // _MINUTE_MS, "minute")
    if not is_past(last_ms, now_ms):
        when = f"the last tick of {sensors} is dated {iso_time(last_ms)}, {minutes} ahead of now"
        text = f"{when}: see that Dagster's daemon runs, and that its machine's clock is right"
        # A daemon that lives ticks again as soon as its clock is right.
        return Condition(Matter.SENSORS, sensors, text, is_sure=False)
    when = f"{sensors} did not tick for {minutes}, last at {iso_time(last_ms)}"
    text = f"{when}: see that Dagster's daemon runs, and that their ticks don't fail"
    return Condition(Matter.SENSORS, sensors, text)


def failing_condition(sensor: str, since_ms: int, begun_ms: int, now_ms: int, limit_ms: int) -> Condition | None:
    """A sensor none of whose ticks has ended well for too long; null if it is not so.

    ``begun_ms`` is when the last of them began. One that begins none is turned off, and is not missed.
    """
    if now_ms - since_ms <= limit_ms or abs(now_ms - begun_ms) > limit_ms:
        return None
    when = f"no tick of {sensor} has ended well for {counted((now_ms - since_ms) // _MINUTE_MS, 'minute')}"
    return Condition(Matter.SENSORS, sensor, f"{when}, since {iso_time(since_ms)}: its ticks in Dagster say why")
