"""A moment as a person reads it."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(time_ms: int) -> str:
    """A time of day that a person reads, in UTC and to the millisecond; times beyond the calendar as a number."""
    try:
        text = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return text.replace("+00:00", "Z")
