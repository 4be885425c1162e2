"""Numbers as a person reads them: spans of time, sizes, and how far away a moment is.

    7_500_000 ms          2 h 5 min
    1_288_490_189 bytes   1.2 GiB
    in two hours          2026-12-01T14:00:00.000Z (in 2 h)

Programs get the numbers themselves. People get two units at most, because a third tells them nothing that they act on,
and "unlimited" where a limit lies beyond every calendar.
"""

from __future__ import annotations

import sys

from keptlog.log.words.iso_time import has_date, iso_time

LONG_MAX = 2**63 - 1
"""Kafka's largest number, and its word for no limit."""
YEAR_MS = 365 * 24 * 3_600_000
UNLIMITED_MS = 1000 * YEAR_MS
"""Whoever sets a longer limit wants none."""
_TIMES = ((24 * 3_600_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")
_NO_LIMIT = -1


def duration(ms: int) -> str:
    """A span of time, not negative, in its two largest units: ``2 h 5 min``; from two years on ``6 years``."""
    if ms >= UNLIMITED_MS:
        return "unlimited"
    years, rest_ms = divmod(ms, YEAR_MS)
    if years > 1:
        return f"{years} years"
    parts = [f"{years} year"] if years else []
    for unit_ms, name in _TIMES:
        count, rest_ms = divmod(rest_ms, unit_ms)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or (f"{ms} ms" if ms else "0 s")


def size(count_bytes: int) -> str:
    """Bytes: ``512 B``, ``1.5 MiB``."""
    if count_bytes < 1024:
        return f"{count_bytes} B"
    if count_bytes == LONG_MAX:
        return "unlimited"
    amount, units = count_bytes / 1024, list(_SIZES)
    # What would be rounded up to 1024.0 is one of the next unit.
    while amount >= 1023.95 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.1f} {units[0]}"


def away(time_ms: int, now_ms: int) -> str:
    """How far away a moment is: ``in 2 h``, ``3 d ago``, ``now``."""
    if abs(time_ms - now_ms) < 1000:
        return "now"
    span = duration(abs(time_ms - now_ms))
    return f"in {span}" if time_ms > now_ms else f"{span} ago"


def moment(time_ms: int, now_ms: int) -> str:
    """A moment, and how far away it is: ``2026-12-01T14:00:00.000Z (in 2 h)``; ``never`` beyond the calendar."""
    return f"{iso_time(time_ms)} ({away(time_ms, now_ms)})" if has_date(time_ms) else "never"


def next_moment(time_ms: int, now_ms: int) -> str:
    """When something that is to come comes, behind a verb: ``at`` a moment, or ``never``."""
    return f"at {moment(time_ms, now_ms)}" if has_date(time_ms) else "never"


def glance(time_ms: int, now_ms: int) -> str:
    """The same for a column of a table, to the minute: ``2026-12-01 14:00Z (in 2 h)``."""
    if not has_date(time_ms):
        return "never"
    return f"{iso_time(time_ms)[:16].replace('T', ' ')}Z ({away(time_ms, now_ms)})"


def in_words(setting: str, value: object) -> str:
    """The value of a setting as it is stored; behind it what it means, where its name says the unit.

    ``86400000 (1 d)``, ``-1 (unlimited)``, ``compact``.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if value == sys.float_info.max:
        return "unlimited"
    if not isinstance(value, int):
        return ",".join(value) if isinstance(value, tuple) else str(value)
    told = str(value)
    unit = setting.rpartition(".")[2]
    if unit in {"ms", "bytes", "size"}:
        if value == _NO_LIMIT and "retention" in setting:
            told = "unlimited"
        elif value >= 0:
            told = duration(value) if unit == "ms" else size(value)
    return str(value) if told in {str(value), f"{value} ms", f"{value} B", "0 s"} else f"{value} ({told})"
