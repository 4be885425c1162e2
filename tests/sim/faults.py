"""What can go wrong at a seam, how often, and what is left out as long as it is known to break something.

Each history draws which kinds of fault it has and how often they fire ("swarm testing"): with all kinds at once, the
early failures would keep a history from ever reaching the late ones.

``KNOWN`` is the one place where defects that are known, and not mended yet, are kept out of histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """One thing that goes wrong. What it does stands where it is carried out: catalog, storage, jobs."""

    REFUSED = "refused"
    LOST_REQUEST = "lost request"
    LOST_ANSWER = "lost answer"
    LANDED_THEN_REFUSED = "landed then refused"
    LOCKED = "locked"
    UNREACHABLE = "unreachable"
    EIO = "EIO"
    FULL_DISK = "full disk"
    HALF_FILE = "half a file"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    POWER_LOSS = "power loss"
    TASK_TWICE = "task twice"
    TASK_LOST = "task lost after writing"
    TASK_LATE = "task late"


CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
WEIGHTS: dict[Fault, float] = {
    Fault.LOST_ANSWER: 12,
    Fault.REFUSED: 5,
    Fault.LOST_REQUEST: 5,
    Fault.LANDED_THEN_REFUSED: 5,
    Fault.LOCKED: 4,
    Fault.TASK_TWICE: 8,
    Fault.TASK_LOST: 8,
    Fault.TASK_LATE: 8,
    Fault.POWER_LOSS: 4,
    Fault.CRASH_BEFORE: 0.5,
    Fault.CRASH_AFTER: 0.5,
    Fault.HALF_FILE: 0.7,
}
"""How often one fires, in comparison; 1 where nothing is said. There are many more calls of files than commits."""


class Known(StrEnum):
    """Defects that histories are kept away from, by their number in the issue."""

    COPIED_HOME = "A1"
    ROLLBACK = "A2"
    BIT_ROT = "A3"
    LANDED_THEN_REFUSED = "A4"
    SWEEP_AGAINST_COMMIT = "A6"
    FORGOTTEN_RUN_ID = "A7"
    STAGED_HOLDERS = "A8"
    UNSYNCED_DELETE = "a delete that a power loss takes back"
    MISSING_FILE = "A12"
    DAMAGED_METADATA = "B1"
    ACROSS_RECREATE = "A14"
    CLOCK_SKEW = "A15"
    FOREIGN_WRITE = "A16"


KNOWN: frozenset[Known] = frozenset()
"""What is not mended yet. Take one out when its mend has landed."""


@dataclass
class Dice:
    """Decides which fault fires where; counts them."""

    chance: Random
    known: frozenset[Known]
    rate: float
    enabled: frozenset[Fault]
    fired: Counter[Fault] = field(default_factory=Counter)
    are_held: bool = False
    """While it is true nothing goes wrong any more: the end of a history."""

    @classmethod
    def drawn_for(cls, seed: int, known: frozenset[Known]) -> Dice:
        """Those of the history of a seed."""
        return cls.drawn(Random(f"{seed}/faults"), known)

    @classmethod
    def drawn(cls, chance: Random, known: frozenset[Known]) -> Dice:
        """Those of one history: three of four kinds, and a rate."""
        enabled = {fault for fault in Fault if chance.random() < 0.75}
        if Known.LANDED_THEN_REFUSED in known:
            enabled.discard(Fault.LANDED_THEN_REFUSED)
        return cls(chance, known, chance.choice([0.007, 0.013, 0.024]), frozenset(enabled))

    def draw(self, possible: Sequence[Fault]) -> Fault | None:
        """The fault of one call, if there is one."""
        if self.are_held or not possible:
            return None
        for fault in possible:
            if self.chance.random() < self.rate * WEIGHTS.get(fault, 1) and fault in self.enabled:
                self.fired[fault] += 1
                return fault
        return None
