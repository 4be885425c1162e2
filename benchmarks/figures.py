"""What the rounds of a case come to: medians, ratios, and whether its goals are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.workers import Outcome

KEPTLOG = "keptlog"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the figures of a contender stand among those of the others."""

    name: str
    group: str = ""
    """The best of a group counts for it: its figures stand under the group's name too."""
    beside: str = KEPTLOG
    """Whose time is divided by this one's."""


@dataclass(frozen=True)
class Figures:
    """Outcomes of all rounds by contender; the first run of each process, which warms it up, stands apart."""

    places: Sequence[Place]
    outcomes: Mapping[str, Sequence[Outcome]]
    first_s: Mapping[str, float] = field(default_factory=dict)
    start_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall_s(self) -> dict[str, float]:
        """Median seconds by contender and group."""
        return {name: self._median(source, lambda each: each.wall_s) for name, source in self._sources().items()}

    @property
    def cpu_s(self) -> dict[str, float]:
        """Median CPU seconds of all processes, by contender and group."""
        return {name: self._median(source, lambda each: each.cpu_s) for name, source in self._sources().items()}

    @property
    def ratio(self) -> dict[str, float]:
        """Keptlog's median wall time divided by each other's: below 1, keptlog is faster."""
        wall_s = self.wall_s
        beside = {name: place.beside for place in self.places for name in (place.name, place.group) if name}
        return {
            name: wall_s[beside[name]] / max(seconds, 1e-9)
            for name, seconds in wall_s.items()
            if name != beside[name] and beside[name] in wall_s
        }

    def bytes_written(self, name: str) -> int:
        return int(self._median(name, lambda each: each.bytes_written))

    def peak_rss_bytes(self, name: str) -> int:
        return max(each.peak_rss_bytes for each in self.outcomes[name])

    def peak_python_rss_bytes(self, name: str) -> int:
        return max(each.peak_python_rss_bytes for each in self.outcomes[name])

    def note(self, name: str, of: str) -> float:
        """What a contender said of its last run."""
        return self.outcomes[name][-1].left.notes[of]

    def _sources(self) -> dict[str, str]:
        """Whose figures stand under a name: a contender's own, or those of the fastest of a group."""
        measured = [place for place in self.places if self.outcomes.get(place.name)]
        sources = {place.name: place.name for place in measured}
        for group in dict.fromkeys(place.group for place in measured if place.group):
            members = [place.name for place in measured if place.group == group]
            sources[group] = min(members, key=lambda name: self._median(name, lambda each: each.wall_s))
        return sources

    def _median(self, name: str, of: Callable[[Outcome], float]) -> float:
        return statistics.median([of(each) for each in self.outcomes[name]])


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound that a case is to keep."""

    text: str
    value: Callable[[Figures], float]
    bound: float
    is_least: bool = False
    """Whether the value has to reach the bound, and not to stay below it."""

    def judged(self, figures: Figures) -> tuple[float, bool] | None:
        """The value and whether it is good enough; null if a contender that it needs was not measured."""
        try:
            value = self.value(figures)
        except (KeyError, IndexError, ZeroDivisionError):
            return None
        return value, value >= self.bound if self.is_least else value <= self.bound


def ratio_to(name: str, at_most: float) -> Goal:
    """Keptlog's time as a share of another's."""
    return Goal(f"time / {name}", lambda figures: figures.ratio[name], at_most)
