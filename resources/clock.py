"""The clock by which logs are judged. Tests and the demo set it; nobody else needs to know that it can be set."""

from __future__ import annotations

import os
import time

import dagster as dg
from pydantic import Field


class ClockResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Milliseconds since 1970 UTC: the wall clock, unless ``now_ms`` or KEPTLOG_NOW_MS fixes it."""

    now_ms: int | None = Field(default=None, description="Fixes the clock, in ms since 1970 UTC; for tests and demos.")

    def read_ms(self) -> int:
        """The time now."""
        if self.now_ms is not None:
            return self.now_ms
        fixed = os.environ.get("KEPTLOG_NOW_MS")
        return int(fixed) if fixed else time.time_ns() // 1_000_000


def pause(seconds: float) -> None:
    """Wait between two looks at what another run does."""
    time.sleep(seconds)
