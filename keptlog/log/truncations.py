"""Where a log ended after each of its truncations: behind there, offsets may have got other records since.

A truncation takes back the end of a log, and its source is read again from there. Whoever has read beyond that end has
records that may be gone, and will miss what came at their offsets. A position alone does not tell, once the log has
grown past it again. So truncations are numbered, and whoever keeps a position keeps with it how many there had been:

    position 200, none yet      [ 0 ................... 200 )
    truncation 1, to 150        [ 0 ........... 150 )
    read again                  [ 0 ........................ 250 )     from 150 on it is another log than was read

It is Kafka's rule for leader epochs: the lowest end of all later ones counts. So an end above that of a later
truncation says nothing more, and is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Truncated:
    """One truncation, and where the log ended after it."""

    number: int
    """The first of a log is 1."""
    end_offset: int


@dataclass(frozen=True, slots=True)
class Truncations:
    """Those of a log that still say something; number and end rise from one to the next, and the latest is the last."""

    ends: tuple[Truncated, ...] = ()

    @property
    def count(self) -> int:
        """How many there ever were."""
        return self.ends[-1].number if self.ends else 0

    def with_one_to(self, end_offset: int) -> Truncations:
        """These and a new one, after which the log ends there."""
        kept = tuple(each for each in self.ends if each.end_offset < end_offset)
        return Truncations((*kept, Truncated(self.count + 1, end_offset)))

    def end_below(self, position: int, *, since: int) -> int | None:
        """From where on it is another log than was read up to a position; null if it is the same up to there.

        ``since`` is how many truncations there had been when it was read.
        """
        later = [each.end_offset for each in self.ends if each.number > since]
        return min((end for end in later if end < position), default=None)


NO_TRUNCATIONS = Truncations()
