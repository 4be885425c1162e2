"""Whether a clock may be believed that wants something deleted for ever (ADR 31).

    newest commit of the home    2026-11-22
    clock                        2026-11-29    a week later: tombstones expire, old segments go
    clock                        2099-01-01    72 years later: who knows that it is right, says so

The only witness that every home has is what was committed to it. A home that really lay idle for so long is asked about
once: any commit makes its clock plausible again. A time that nobody could confirm, because topics can't be read, is not
plausible: a machine that boots without a network has neither its storage nor the time.

A time that somebody gives (``KEPTLOG_NOW_MS``, an argument) and that the clock does not show yet is not the clock's: he
knows what he asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic, first_line
from keptlog.log.broker import BrokerConfig
from keptlog.log.words.iso_time import iso_time
from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.waiting.reaching import apart

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from keptlog.table.commits.commit import Committer

_GIVEN_MS = 60_000
"""A time so far after the clock was given by somebody."""


class _Doubt(NamedTuple):
    """Of a time that is not plausible."""

    what: str
    todo: str
    outages: tuple[StorageUnavailable, ...] = ()
    """Of topics that may have a commit that confirms it."""

    def error(self, topic: str) -> KeptlogError:
        """How it is refused: as an outage, while that is what keeps anybody from telling."""
        text = f"topic {topic}: {self.what}: nothing was deleted; {self.todo}"
        if not self.outages:
            return InvalidConfig(text)
        error = StorageUnavailable(text)
        return error.for_good() if all(each.is_refused for each in self.outages) else error


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
    """What the newest commit was at these locations, all of which were read."""

    def done_ms(self, as_of_ms: int) -> int:
        """When what is done by now was done, for its receipt: a pass may take hours, or judge as of a given time."""
        return self.clock_ms() if self.clock_ms else as_of_ms

    def require_plausible(self, topic: str, now_ms: int, table: Table) -> None:
        """Refuse to delete anything of a topic at a time that is too far after the newest commit.

        ``table`` is the topic's, loaded just now: so it was in reach, and is a witness.

        Raises:
            InvalidConfig: with both times, and what to do.
            StorageUnavailable: the same, where topics that are out of reach might confirm it.
        """
        doubt = self._doubt(now_ms, table)
        if doubt:
            raise doubt.error(topic)

    def over(self, committer: Committer, topic: str, times_ms: Iterable[int]) -> Committer:
        """The same committer, but that it asks that of the table that it builds on, for the latest of these times."""
        from keptlog.table.commits.guarded import GuardedCommitter  # noqa: PLC0415  # who only looks commits nothing

        return GuardedCommitter.of(committer, partial(self.require_plausible, topic, max(times_ms, default=0)))

    def purge_refusal(self, now_ms: int, table: Table) -> str:
        """Why a purge of a topic would be refused now, and what to do; empty if it would not, for its clock."""
        doubt = self._doubt(now_ms, table)
        return f"{doubt.what}, and no purge deletes anything: {doubt.todo}" if doubt else ""

    def _doubt(self, now_ms: int, table: Table) -> _Doubt | None:
        """What is wrong with a time, and what to do; null if it is plausible."""
        if self.clock_ms is None or now_ms > self.clock_ms() + _GIVEN_MS:
            return None
        max_jump_ms = BrokerConfig.of(self.broker_settings).keptlog_clock_max_jump_ms
        newest_ms = newest_change_ms(table.metadata)
        if now_ms - newest_ms <= max_jump_ms:
            return None
        of_others_ms, unread = self._newest_of_all()
        newest_ms = max(newest_ms, of_others_ms)
        if now_ms - newest_ms <= max_jump_ms:
            return None
        whose = "all topics that can be read" if unread else "all topics"
        what = (
            f"the clock shows {iso_time(now_ms)}, but the newest commit of {whose} is of {iso_time(newest_ms)}, "
            f"more than keptlog.clock.max.jump.ms={max_jump_ms} before it"
        )
        todo = "set the clock right, or, if it is, raise keptlog.clock.max.jump.ms (broker settings) for once"
        if unread:
            name, why = next(iter(unread.items()))
            more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
            todo = (
                f"topic {name}{more} may have a newer one, try again once it can be read ({first_line(why)}); or {todo}"
            )
        return _Doubt(what, todo, tuple(each for each in unread.values() if isinstance(each, StorageUnavailable)))

    def _newest_of_all(self) -> tuple[int, dict[str, KeptlogError]]:
        """When the newest commit was of all that can be read, 0 if there is none; and why the others can't be."""
        locations = self.locations()
        if self._read and self._read[0] == locations:
            return self._read[1], {}
        found = {topic: apart(topic, partial(self._newest_of, topic)) for topic in locations}
        newest_ms = max((each for each in found.values() if isinstance(each, int)), default=0)
        # One that was deleted meanwhile has nothing to say.
        unread = {
            topic: why
            for topic, why in found.items()
            if isinstance(why, KeptlogError) and not isinstance(why, UnknownTopic)
        }
        if not unread and all(locations.values()):
            self._read = locations, newest_ms
        return newest_ms, unread

    def _newest_of(self, topic: str) -> int:
        return newest_change_ms(self.load(topic).metadata)
