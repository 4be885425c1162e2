"""Registered readers, for whom tombstones wait.

A reader keeps a state of its own, and reads on from time to time. If a tombstone goes before he has met it, he keeps a
key for ever that is deleted here. So he registers, says how far he has read (his position), and a tombstone behind
that does not go by its delete horizon yet:

    offset      10    20    30 tombstone    40         position 25: the tombstone is still to be read, it is held
    offset      10    20    30 tombstone    40         position 31: he has met it, it goes

Three complications. A reader may never come back: he holds a tombstone for ``hold_max_ms`` after its horizon and no
longer; what goes then he has missed, and is told. An erasure has a deadline: from ``erasure_end_ms`` on, when there is
just time for what follows, nothing is held. And of a segment only the metrics are known, not at which offsets its
tombstones lie: so a position inside of a segment counts as one at its beginning. That holds a tombstone rather longer
than needed, within the bound all the same; and a log is never due for what is held, so that no run is made that removes
nothing.

    segments    [ 0 .. 19 ][ 20 .. 39 ]         position 25 is as 20: what lies in the second segment is held

Kafka's brokers know no such thing: a consumer that is slower than ``delete.retention.ms`` misses deletions, and nobody
says so (ADR 38). No clock but that of whoever plans plays a role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig
from keptlog.log.given.given import text, whole_number
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.log.words.units import LONG_MAX

if TYPE_CHECKING:
    from keptlog.log.segment import Segment

DEFAULT_HOLD_MAX_MS = 7 * 24 * 3_600_000
"""A week: whoever reads daily may be ill over a long weekend."""
NO_HORIZON_MS = -1
"""Before every delete horizon."""
RESTORE_READER = "restore-"
"""So the name of a reader begins that is a restore to a broker; its position lies there too."""
_LONGEST_NAME = 200
_LEGAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Hold:
    """What one reader holds of one log."""

    reader: str
    position: int
    """The next offset that he reads; 0 while nobody knows."""
    hold_max_ms: int
    """How long after its horizon a tombstone waits for him."""
    problem: str | None = None
    """Why his position is not known, if it should be."""

    def is_behind(self, segment: Segment) -> bool:
        """Whether a record of the segment may still be to be read."""
        return self.position <= segment.last_offset


@dataclass(frozen=True, slots=True)
class Holds:
    """What all readers hold of one log. Times are ms."""

    readers: tuple[Hold, ...] = ()
    erasure_end_ms: int | None = None
    """From then on nothing is held; null without such a deadline."""

    def behind(self, segment: Segment) -> tuple[Hold, ...]:
        """Those who have not read a segment to its end."""
        return tuple(hold for hold in self.readers if hold.is_behind(segment))

    def due_horizon_ms(self, segment: Segment, now_ms: int) -> int:
        """Which tombstones of a segment go now: those whose delete horizon is this or earlier."""
        if self.erasure_end_ms is not None and self.erasure_end_ms <= now_ms:
            return now_ms
        return max(now_ms - max((hold.hold_max_ms for hold in self.behind(segment)), default=0), NO_HORIZON_MS)

    def expiry_ms(self, segment: Segment) -> int | None:
        """When the first tombstone of a segment goes, if nobody reads on; null if none is stamped."""
        horizon_ms = segment.earliest_delete_horizon_ms
        return None if horizon_ms is None else self._bound_ms(horizon_ms, self.behind(segment))

    def in_force(self, segments: Iterable[Segment], now_ms: int) -> list[Holding]:
        """Who holds tombstones of these segments at this time, whoever does so longest first."""
        found: list[Holding] = []
        held = [s for s in segments if s.has_expired_tombstone(now_ms)]
        for hold in self.readers:
            horizons_ms = [s.earliest_delete_horizon_ms or 0 for s in held if hold.is_behind(s)]
            since_ms = min(horizons_ms, default=0)
            until_ms = self._bound_ms(since_ms, (hold,))
            if horizons_ms and until_ms > now_ms:
                found.append(Holding(hold, since_ms, until_ms))
        return sorted(found, key=lambda each: (-each.until_ms, each.hold.reader))

    def _bound_ms(self, horizon_ms: int, holds: Iterable[Hold]) -> int:
        bound_ms = horizon_ms + max((hold.hold_max_ms for hold in holds), default=0)
        return bound_ms if self.erasure_end_ms is None else max(horizon_ms, min(bound_ms, self.erasure_end_ms))


NO_HOLDS = Holds()


@dataclass(frozen=True, slots=True)
class Holding:
    """A reader for whom tombstones wait just now. Times are ms."""

    hold: Hold
    since_ms: int
    """The earliest delete horizon that has passed."""
    until_ms: int
    """When the tombstone of that horizon goes, whether he has read it or not."""

    def told(self) -> str:
        """One line for people."""
        where = self.hold.problem or f"whose position is {self.hold.position}"
        until = f"until {iso_time(self.until_ms)} at most" if has_date(self.until_ms) else "without an end"
        since = iso_time(self.since_ms)
        return f"tombstones wait since {since} for reader {self.hold.reader}, {where}; the first of them {until}"


def valid_reader_name(name: str) -> str:
    """The same name: it stands in a property and in names of folders.

    Raises:
        InvalidConfig: it is too long, or has characters that a folder can't have everywhere.
    """
    name = text(name, "a reader's name")
    if len(name) > _LONGEST_NAME or not _LEGAL_NAME.fullmatch(name):
        raise InvalidConfig(
            f"reader name {name[:_LONGEST_NAME]!r} is not allowed: use 1 to {_LONGEST_NAME} letters, digits, '.', '_' "
            "and '-', and begin with a letter or a digit"
        )
    return name


def valid_hold_max_ms(hold_max_ms: int) -> int:
    """The same time.

    Raises:
        InvalidConfig: it is none.
    """
    hold_max_ms = whole_number(hold_max_ms, "hold-max-ms")
    if not 0 <= hold_max_ms <= LONG_MAX:
        raise InvalidConfig(f"hold-max-ms={hold_max_ms} is not between 0 and {LONG_MAX}: how long tombstones may wait")
    return hold_max_ms
