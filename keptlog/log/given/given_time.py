"""The time that stands for now, where somebody gives one: ``KEPTLOG_NOW_MS``, or ``now_ms`` of a call.

Judging logs as of another time is how a deadline is tried out. A time that was meant otherwise, in seconds say, would
be taken for one at which everything is fine, or everything late. So only what can have been meant is taken. A program
may give a time soon after 1970, for records that it has dated so itself; a person at a shell has none of those.
"""

from __future__ import annotations

import re

from keptlog.errors import InvalidConfig
from keptlog.log.given.given import whole_number
from keptlog.log.words.iso_time import has_date, iso_time

NOW_MS = "KEPTLOG_NOW_MS"
_FIRST_MS = 10**10
"""April 1970, long before there were logs. The seconds of today are fewer."""
_FINER = {"microseconds": 1_000, "nanoseconds": 1_000_000}
_MEANT = "write the milliseconds since 1970, as 1800000000000, or unset it"


def given_now_ms(text: str | None) -> int | None:
    """The time that the variable holds, in ms since 1970; null if it is unset or empty, and the wall clock is meant.

    Raises:
        InvalidConfig: it is no such number, or no time that can have been meant.
    """
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise InvalidConfig(f"{NOW_MS}={text!r} is not a whole number of milliseconds since 1970: {_MEANT}")
    return meant_now_ms(NOW_MS, int(text))


def meant_now_ms(name: str, time_ms: int) -> int:
    """The time that is given as now under this name.

    Raises:
        InvalidConfig: it is no time that can have been meant.
    """
    if time_ms < 0:
        raise InvalidConfig(f"{name}={time_ms} is before 1970: {_MEANT}")
    if time_ms < _FIRST_MS:
        raise InvalidConfig(f"{name}={time_ms} would be {iso_time(time_ms)}, are these seconds? {_MEANT.capitalize()}")
    if not has_date(time_ms):
        raise InvalidConfig(
            f"{name}={time_ms} is after the year 9999, is it finer than milliseconds? {_MEANT.capitalize()}"
        )
    return time_ms


def passed_now_ms(now_ms: object) -> int:
    """The same time as an int, which a program gives a call as its ``now_ms``, in ms since 1970.

    Raises:
        InvalidConfig: it is no whole number, or no time that a calendar has; says what was probably meant.
    """
    time_ms = whole_number(now_ms, "now_ms")
    if time_ms < 0:
        raise InvalidConfig(f"now_ms={time_ms} is before 1970: give milliseconds since 1970")
    if not has_date(time_ms):
        finer = ((unit, time_ms // in_a_ms) for unit, in_a_ms in _FINER.items())
        asked = (f"are these {unit}, of {iso_time(meant_ms)}? Give" for unit, meant_ms in finer if has_date(meant_ms))
        what = f"now_ms={time_ms} is after the year 9999"
        raise InvalidConfig(f"{what}: {next(asked, 'give')} milliseconds since 1970")
    return time_ms


def as_of(time_ms: int) -> str:
    """What people are told wherever the variable acts."""
    return f"as of {iso_time(time_ms)}, as {NOW_MS} says"
