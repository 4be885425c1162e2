"""The clock by which logs are judged. Tests and the demo set it; nobody else needs to know that it can be set."""

from __future__ import annotations

import functools
import logging
import os
import time

import dagster as dg
from pydantic import Field

from keptlog.log.given.given_time import NOW_MS, as_of, given_now_ms, meant_now_ms

_logger = logging.getLogger(__name__)


class ClockResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Milliseconds since 1970 UTC: the wall clock, unless ``now_ms`` or KEPTLOG_NOW_MS fixes it."""

    now_ms: int | None = Field(default=None, description="Fixes the clock, in ms since 1970 UTC; for tests and demos.")

    def read_ms(self) -> int:
        """The time now.

        Raises:
            InvalidConfig: what is given for it is no time that can have been meant.
        """
        if self.now_ms is not None:
            return meant_now_ms("now_ms", self.now_ms)
        given_ms = given_now_ms(os.environ.get(NOW_MS))
        if given_ms is None:
            return time.time_ns() // 1_000_000
        _warn(given_ms)
        return given_ms

    def told(self) -> str | None:
        """What people are to know of the clock, null if it is the wall's; what the configuration says they know.

        Raises:
            InvalidConfig: as ``read_ms``.
        """
        given_ms = given_now_ms(os.environ.get(NOW_MS)) if self.now_ms is None else None
        return None if given_ms is None else f"logs are judged {as_of(given_ms)}"


@functools.cache
def _warn(given_ms: int) -> None:
    """Once in a process, for a run's log; a tick has one of its own (``MountCall.now_ms``)."""
    _logger.warning("logs are judged %s", as_of(given_ms))


def pause(seconds: float) -> None:
    """Wait between two looks at what another run does."""
    time.sleep(seconds)
