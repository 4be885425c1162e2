"""How a store is asked by whoever has no time to wait for it: some seconds each time, and not for long.

A read asks again until a busy store answers, which takes minutes where one takes connections and says nothing. A tick
of a sensor is killed after one. So a store that says nothing is asked once more. One that is busy says so at once: it
is asked again some times, with pauses of seconds in all.
"""

from __future__ import annotations

from typing import Any

RETRIES = "s3.keptlog-retries"
"""The property that says how often a request is sent again; its name says that it is about storage."""
RETRIES_OF_SILENCE = 1
"""How often one is sent again that got no answer."""
_AT_MOST = {"s3.connect-timeout": 3.0, "s3.request-timeout": 5.0, RETRIES: 3.0}
"""Seconds, and how often it is sent again."""


def impatient(properties: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    """The same properties of a catalog, or a table, with less patience; who has set less keeps that, but no 0."""
    known = dict(properties)
    return tuple((known | {name: _less(known.get(name), most) for name, most in _AT_MOST.items()}).items())


def _less(given: Any, most: float) -> Any:
    try:
        return given if given and 0 < float(given) < most else f"{most:g}"
    except ValueError:
        return given  # whoever reads says that it is no number
