"""A moment as a person reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_MS = 253_402_300_799_999


def iso_time(time_ms: int) -> str:
    """A time of day that a person reads, in UTC and to the millisecond; times beyond the calendar as a number."""
    try:
        text = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{time_ms} ms"
    return text.replace("+00:00", "Z")


def has_date(time_ms: int) -> bool:
    """Whether a calendar has a date for it: what lies behind the year 9999 comes of a limit that says "never"."""
    return time_ms <= _LAST_MS


def next_time(time_ms: int) -> str:
    """When something that is to come comes, behind a verb: ``at`` a time, or ``never``."""
    return f"at {iso_time(time_ms)}" if has_date(time_ms) else "never"
