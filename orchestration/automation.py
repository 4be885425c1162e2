"""What starts runs of a home by itself: how often its sensors and schedules do, and which of them from the start."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.orchestration.jobs import HomeJobs
from keptlog.errors import InvalidConfig

LONGEST_SECONDS = 2**31 - 1
"""Between two ticks: Dagster's pages show no sensor of a code location of which one has a longer time."""
Intervals = Mapping[str, int | str]
"""By sensor the seconds between two ticks, by schedule its cron expression."""


@dataclass(frozen=True)
class Automation:
    """Of one home."""

    mount: Mount
    jobs: HomeJobs
    intervals: Intervals = field(default_factory=dict)
    on: bool | Collection[str] | None = None
    """Which run from the start: all, none, or those that are named; null for what is best for most."""
    topics: Sequence[str] = ()
    """Those whose sections are in the asset graph: sensors are listed on their pages."""
    ingested: Sequence[str] = ()
    """Those of them that have a broker's topic as their source."""

    def seconds(self, sensor: str, default: int = 30) -> int:
        """The least time between two ticks.

        Raises:
            InvalidConfig: what is given is no such time.
        """
        given = self.intervals.get(sensor, default)
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= LONGEST_SECONDS:
            raise InvalidConfig(
                f"intervals[{sensor!r}]={given!r}: give a sensor whole seconds, from 1 to {LONGEST_SECONDS}"
            )
        return given

    def cron(self, schedule: str, default: str) -> str:
        """When a schedule asks for a run.

        Raises:
            InvalidConfig: what is given is no text.
        """
        given = self.intervals.get(schedule, default)
        if not isinstance(given, str):
            raise InvalidConfig(f"intervals[{schedule!r}]={given!r}: give a schedule a cron expression")
        return given

    def sensor_status(self, sensor: str) -> dg.DefaultSensorStatus:
        """Whether a sensor ticks before somebody turns it on."""
        return dg.DefaultSensorStatus.RUNNING if self._is_on(sensor) else dg.DefaultSensorStatus.STOPPED

    def schedule_status(self, schedule: str, *, is_on: bool) -> dg.DefaultScheduleStatus:
        """Whether a schedule ticks before somebody turns it on; ``is_on`` for most."""
        is_on = self._is_on(schedule, is_on=is_on)
        return dg.DefaultScheduleStatus.RUNNING if is_on else dg.DefaultScheduleStatus.STOPPED

    def _is_on(self, name: str, *, is_on: bool = True) -> bool:
        if self.on is None:
            return is_on
        return self.on if isinstance(self.on, bool) else name in self.on
