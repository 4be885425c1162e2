"""Whether a clock may be believed that wants something deleted for ever (ADR 31).

    newest commit of the home    2026-11-22
    clock                        2026-11-29    a week later: tombstones expire, old segments go
    clock                        2099-01-01    72 years later: who knows that it is right, says so

The only witness that every home has is what was committed to it. A home that really lay idle for so long is asked about
once: any commit makes its clock plausible again. A time that somebody gives (``KEPTLOG_NOW_MS``, an argument) and that
the clock does not show yet is not the clock's: he knows what he asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.log.broker import BrokerConfig
from keptlog.log.words.iso_time import iso_time
from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.waiting.reaching import apart

if TYPE_CHECKING:
    from pyiceberg.table import Table

_GIVEN_MS = 60_000
"""A time so far after the clock was given by somebody."""


@dataclass
class ClockGuard:
    """Compares a clock with the newest commit of all topics, but reads more than one of them only if it has to."""

    broker_settings: Mapping[str, str]
    load: Callable[[str], Table]
    locations: Callable[[], dict[str, str]]
    """Topic to its metadata location; another one after each commit."""
    clock_ms: Callable[[], int] | None = None
    """The machine's clock; without one there is nothing to doubt."""
    _read: tuple[dict[str, str], int] | None = field(default=None)
    """What the newest commit was at these locations."""

    def done_ms(self, as_of_ms: int) -> int:
        """When what is done by now was done, for its receipt: a pass may take hours, or judge as of a given time."""
        return self.clock_ms() if self.clock_ms else as_of_ms

    def require_plausible(self, topic: str, times_ms: Iterable[int], table: Table | None = None) -> None:
        """Refuse to delete anything of a topic at times that are too far after the newest commit.

        ``table`` is the topic's, if somebody has loaded it just now.

        Raises:
            InvalidConfig: with both times, and what to do.
        """
        why = self._doubt(topic, max(times_ms, default=0), table)
        if why:
            what, todo = why
            raise InvalidConfig(f"topic {topic}: {what}: nothing was deleted; {todo}")

    def purge_refusal(self, topic: str, now_ms: int, table: Table) -> str:
        """Why a purge of a topic would be refused now, and what to do; empty if it would not, for its clock."""
        why = self._doubt(topic, now_ms, table)
        return "{}, and no purge deletes anything: {}".format(*why) if why else ""

    def _doubt(self, topic: str, now_ms: int, table: Table | None) -> tuple[str, str] | None:
        """What is wrong with a time, and what to do; null if it is plausible."""
        if self.clock_ms is None or now_ms > self.clock_ms() + _GIVEN_MS:
            return None
        max_jump_ms = BrokerConfig.of(self.broker_settings).keptlog_clock_max_jump_ms
        newest_ms = newest_change_ms(table.metadata) if table else self._newest_ms([topic])
        if now_ms - newest_ms <= max_jump_ms:
            return None
        locations = self.locations()
        if self._read is None or self._read[0] != locations:
            self._read = locations, self._newest_ms(locations)
        newest_ms = self._read[1]
        # Without one there is nothing to compare with: the topic can't be read, or was deleted just now.
        if not newest_ms or now_ms - newest_ms <= max_jump_ms:
            return None
        return (
            f"the clock shows {iso_time(now_ms)}, but the newest commit of all topics is of {iso_time(newest_ms)}, "
            f"more than keptlog.clock.max.jump.ms={max_jump_ms} before it",
            "set the clock right, or, if it is, raise keptlog.clock.max.jump.ms (broker settings) for once",
        )

    def _newest_ms(self, topics: Iterable[str]) -> int:
        found = [apart(topic, partial(self._newest_of, topic)) for topic in topics]
        # One that can't be read is no witness.
        return max((each for each in found if not isinstance(each, KeptlogError)), default=0)

    def _newest_of(self, topic: str) -> int:
        return newest_change_ms(self.load(topic).metadata)
