"""Whether Dagster has stored what the last tick of a sensor has told.

A sensor remembers what it has told, to tell it once. But Dagster's daemon stores it after the sensor has ended: then
its database may be locked, or its disk full. A preview of a tick, in Dagster's pages, is never stored. And a whole
database may be deleted, or put back from a backup, while this process goes on.

Dagster stores the cursor last. So a tick that tells something gives a new one, and the next tick sees what came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keptlog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TellingCursor:
    """A cursor that is another one after each tick that tells something."""

    state: str = ""
    tellings: int = 0
    turns: tuple[str, ...] = ()
    """The topics or logs that had it last, one for each round: the next process goes on behind them."""

    @classmethod
    def of(cls, cursor: str | None) -> TellingCursor:
        state, tellings, *turns = [*(cursor or "").split(" "), ""]
        return cls(state, int(tellings) if tellings.isdecimal() else 0, tuple(filter(None, turns)))

    def turn(self, number: int) -> str:
        """The topic or log behind which the next process goes on; ``-`` if it begins with the first one."""
        return self.turns[number] if number < len(self.turns) else "-"

    def after(self, state: str, told: int, *turns: str) -> str:
        """The cursor of a tick that has told so many things."""
        return " ".join([state, str(self.tellings + bool(told)), *turns])


def behind(turn: str, topics: Iterable[str]) -> list[str]:
    """The topics in the order in which it is their turn: first those behind the one that had it last."""
    return sorted(topics, key=lambda topic: (topic <= turn, topic))


@dataclass
class ToldLast:
    """What the last tick of a sensor in this process has told."""

    before: str | None = None
    after: str | None = None
    told: tuple[TopicPartition, ...] = ()

    def untold(self, cursor: str | None) -> tuple[TopicPartition, ...] | None:
        """Of what was told, what Dagster has not stored: that of the last tick, or null for all of it."""
        if cursor == self.after:
            return ()
        return self.told if cursor == self.before else None

    def ends(self, before: str | None, after: str | None, told: Iterable[TopicPartition]) -> None:
        """Remember a tick: the cursors before and after it, and what it tells of."""
        self.before, self.after, self.told = before, after, tuple(told)
