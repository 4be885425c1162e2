"""Whether a clock may be believed that wants something deleted for ever (ADR 31).

    newest commit of the home    2026-11-22
    clock                        2026-11-29    a week later: tombstones expire, old segments go
    clock                        2099-01-01    72 years later: who knows that it is right, says so

The only witness that every home has is what was committed to it. A home that really lay idle for so long is asked about
once: any commit makes its clock plausible again. A time that nobody could confirm, because topics can't be read, is not
plausible: a machine that boots without a network has neither its storage nor the time. Whoever was read is remembered,
and whoever was not is asked again, while it is in doubt: a purge of N idle topics comes by N times.

A time that somebody gives (``KEPTLOG_NOW_MS``, an argument) and that the clock does not show yet is not the clock's: he
knows what he asks for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic, first_line
from keptlog.log.broker import BrokerConfig
from keptlog.log.words.iso_time import iso_time
from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.waiting.rest import rests_until_ms
from keptlog.table.waiting.side_by_side import AT_ONCE, each_apart

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from keptlog.table.commits.commit import Committer
    from keptlog.table.reading.away import HasFiles

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


def _refusal(doubt: _Doubt | None) -> str:
    return f"{doubt.what}, and no purge deletes anything: {doubt.todo}" if doubt else ""


class _Read(NamedTuple):
    """A topic that was read. What it confirms counts as long as it lies there, whatever can't be read beside it."""

    location: str
    newest_ms: int

    @classmethod
    def of(cls, table: Table) -> _Read:
        return cls(table.metadata_location, newest_change_ms(table.metadata))

    def is_of(self, location: str | None) -> bool:
        """Whether that is where its metadata lies now; empty where nobody can tell."""
        return bool(location) and location == self.location


class _Silent(NamedTuple):
    """A topic that was waited for in vain."""

    location: str
    why: KeptlogError
    rest_ms: range
    """When it is left alone, by a clock that may be set right meanwhile, and so go back by years."""


@dataclass
class ClockGuard:
    """Compares a clock with the newest commit of all topics, but reads more than one of them only if it has to."""

    broker_settings: Mapping[str, str]
    load: Callable[[str], Table]
    locations: Callable[[], dict[str, str]]
    """Topic to its metadata location; another one after each commit."""
    store: HasFiles
    """Where the topics lie, to be asked whether it answers."""
    clock_ms: Callable[[], int] | None = None
    """The machine's clock; without one there is nothing to doubt."""
    _read: dict[str, _Read] = field(default_factory=dict)
    _silent: dict[str, _Silent] = field(default_factory=dict)
    _asking: threading.Lock = field(default_factory=threading.Lock)
    """Who comes meanwhile waits for the answer: topics are purged side by side."""

    def done_ms(self, as_of_ms: int) -> int:
        """When what is done by now was done, for its receipt: a pass may take hours, or judge as of a given time."""
        return self.clock_ms() if self.clock_ms else as_of_ms

    def require_plausible(self, now_ms: int, table: Table) -> None:
        """Refuse to delete anything of a topic at a time that is too far after the newest commit.

        ``table`` is the topic's, loaded just now: so it was in reach, and is a witness.

        Raises:
            InvalidConfig: with both times, and what to do.
            StorageUnavailable: the same, where topics that are out of reach might confirm it.
        """
        doubt = self._doubt(now_ms, _Read.of(table), table.name()[-1])
        if doubt:
            raise doubt.error(table.name()[-1])

    def over(self, committer: Committer, times_ms: Iterable[int]) -> Committer:
        """The same committer, but that it asks that of the table that it builds on, for the latest of these times."""
        from keptlog.table.commits.guarded import GuardedCommitter  # noqa: PLC0415  # who only looks commits nothing

        return GuardedCommitter.of(committer, partial(self.require_plausible, max(times_ms, default=0)))

    def purge_refusal(self, now_ms: int, table: Table) -> str:
        """Why a purge of a topic would be refused now, and what to do; empty if it would not, for its clock."""
        return _refusal(self._doubt(now_ms, _Read.of(table), table.name()[-1]))

    def refusal_of_any(self, now_ms: int, known_ms: int) -> str:
        """The same of whichever topic. Where a commit of ``known_ms``, in any of them, confirms it, none is read."""
        return _refusal(self._doubt(now_ms, _Read("", known_ms)))

    def _doubt(self, now_ms: int, own: _Read, topic: str = "") -> _Doubt | None:
        """What is wrong with a time, and what to do; null if it is plausible. ``own`` is what is known of a topic."""
        if self.clock_ms is None or now_ms > self.clock_ms() + _GIVEN_MS:
            return None
        max_jump_ms = BrokerConfig.of(self.broker_settings).keptlog_clock_max_jump_ms
        if now_ms - own.newest_ms <= max_jump_ms:
            return None
        of_others_ms, unread = self._newest_of_all(now_ms - max_jump_ms, topic, own)
        newest_ms = max(own.newest_ms, of_others_ms)
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

    def _newest_of_all(self, enough_ms: int, topic: str, own: _Read) -> tuple[int, dict[str, KeptlogError]]:
        """When the newest commit was of all that can be read, 0 if there is none; and why the others can't be.

        ``own`` is of the topic that is to be purged: it was read just now, and may not be in reach a moment later.
        One that is as new as ``enough_ms`` ends it, and nobody is asked again who has said when his was. What lacks
        witnesses is never remembered: the next one asks those again that did not answer.
        """
        with self._asking:
            locations = self.locations()
            if own.is_of(locations.get(topic)):
                self._read[topic] = own
            self._read = {name: read for name, read in self._read.items() if read.is_of(locations.get(name))}
            unread = {}
            if self._newest_ms() < enough_ms:
                unread = self._ask({name: at for name, at in locations.items() if name not in self._read}, enough_ms)
            return self._newest_ms(), unread

    def _ask(self, locations: Mapping[str, str], enough_ms: int) -> dict[str, KeptlogError]:
        """Read topics until the newest commit is new enough; why those that were met before can't be read."""
        began_ms = self.done_ms(0)
        silent = self._silent = {
            topic: each
            for topic, each in self._silent.items()
            if each.location == locations.get(topic) and began_ms in each.rest_ms
        }
        unread: dict[str, KeptlogError] = {topic: each.why for topic, each in silent.items()}
        to_ask = {topic: at for topic, at in locations.items() if topic not in unread}
        away = self._away(to_ask, began_ms)
        self._leave_alone(away, locations, began_ms)
        unread |= away
        names = [topic for topic in to_ask if topic not in away]
        for first in range(0, len(names), AT_ONCE):
            if self._newest_ms() >= enough_ms:
                break
            began_ms = self.done_ms(0)
            found = each_apart(self._newest_of, names[first : first + AT_ONCE])
            self._read |= {topic: _Read(locations[topic], at) for topic, at in found.items() if isinstance(at, int)}
            # One that was deleted meanwhile has nothing to say.
            failed = {
                topic: why
                for topic, why in found.items()
                if isinstance(why, KeptlogError) and not isinstance(why, UnknownTopic)
            }
            self._leave_alone(failed, locations, began_ms)
            unread |= failed
        return unread

    def _away(self, locations: Mapping[str, str], now_ms: int) -> dict[str, KeptlogError]:
        """Topics that would be waited for, by stores that don't answer.

        One that refuses some topics may give the others, and nobody waits for it: there each topic is read, but those
        that were waited for just now.
        """
        from keptlog.table.reading.away import stores_away  # noqa: PLC0415  # mostly nobody is asked

        away = stores_away(self.store, locations, now_ms // 1000)
        return {topic: why for each in away for topic, why in each.silent.items()}

    def _leave_alone(self, unread: Mapping[str, KeptlogError], locations: Mapping[str, str], began_ms: int) -> None:
        """Leave alone for a while what was waited for in vain since then: a purge of many topics comes by for each."""
        ended_ms = self.done_ms(0)
        for topic, why in unread.items():
            until_ms = rests_until_ms(why, began_ms, ended_ms)
            if until_ms is not None:
                self._silent[topic] = _Silent(locations[topic], why, range(ended_ms, until_ms))

    def _newest_ms(self) -> int:
        return max((read.newest_ms for read in self._read.values()), default=0)

    def _newest_of(self, topic: str) -> int:
        return newest_change_ms(self.load(topic).metadata)
