"""A moment as a person reads it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from keptlog.errors import InvalidConfig

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 24 * 3_600_000, "w": 7 * 24 * 3_600_000}
_DURATION = re.compile(rf"(\d{{1,15}})({'|'.join(_UNITS_MS)})")
_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_MS = 253_402_300_799_999
"""The calendar's last millisecond. Delete horizons of no end are stored as this one."""


def iso_time(time_ms: int) -> str:
    """A time of day that a person reads, in UTC and to the millisecond; times beyond the calendar without a number."""
    try:
        text = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return "after the year 9999" if time_ms > 0 else "before the year 1"
    return text.replace("+00:00", "Z")


def has_date(time_ms: int) -> bool:
    """Whether a calendar has a date for it: what lies at its end or behind comes of a limit that says "never"."""
    return time_ms < _LAST_MS


def next_time(time_ms: int) -> str:
    """When something that is to come comes, behind a verb: ``at`` a time, or ``never``."""
    return f"at {iso_time(time_ms)}" if has_date(time_ms) else "never"


def span_from(text: str) -> int:
    """A span of time as a person gives it, in ms: ``30d``, ``12h``, ``90m``.

    Raises:
        InvalidConfig: it is none.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        raise InvalidConfig(f"{text!r} is no span of time: write 30d, 12h or 90m")
    return int(duration[1]) * _UNITS_MS[duration[2]]


def time_from(text: str, now_ms: int) -> int:
    """A time as a person gives it, in ms since 1970: ``2026-12-01T00:00Z``, or from now on, ``30d``, ``12h``, ``90m``.

    Without a time zone it is UTC.

    Raises:
        InvalidConfig: it is neither.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration:
        time_ms = now_ms + int(duration[1]) * _UNITS_MS[duration[2]]
        if has_date(time_ms):
            return time_ms
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidConfig(
            f"{text!r} is no time: write 2026-12-01T00:00Z, or from now on 30d, 12h or 90m, up to the year 9999"
        ) from None
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(milliseconds=1)
