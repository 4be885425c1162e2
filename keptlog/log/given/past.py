"""What somebody's clock has dated, judged by the clock of now: a time that is still to come says nothing.

The clock that gave it was ahead, of another machine or of this one. Whoever counted from such a time would wait for as
long as that clock was ahead. So whatever waits because of something that has happened asks here whether it has.
"""

from __future__ import annotations


def is_past(at_ms: int, now_ms: int) -> bool:
    """Whether a time says anything."""
    return at_ms <= now_ms


def was_within(ms: int, at_ms: int, now_ms: int) -> bool:
    """Whether something happened, and less than so many ms ago."""
    return is_past(at_ms, now_ms) and now_ms - at_ms < ms
