"""What ``keptlog doctor`` tells: what it has asked, what is wrong, and where it could not look.

A check asks one thing of a home, and has one of three answers:

    fine             it looked, and nothing is wrong
    wrong            problems: what, where, why, and what to do next
    not looked at    why it could not look; that is neither of the two

What to do next is a command where one mends it or goes on with it. Where none does, only a person can: put a file back,
set a clock. A **hint** is no problem: nothing is wrong, and somebody may want to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Diagnosis(StrEnum):
    """What is known of a home, or of one thing that was asked of it."""

    FINE = "fine"
    WRONG = "wrong"
    NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a home."""

    subject: str
    """A topic-partition, a topic, a file, or what else it is about."""
    what: str
    """What is wrong, in a sentence. No record's key or value is in it."""
    cause: str
    """What mostly brings it about."""
    todo: str
    """What to do next, in words."""
    command: str | None = None
    """The command that does it; null if only a person can."""
    is_hint: bool = False
    """Nothing is wrong."""
    files: tuple[str, ...] = ()
    """All files to which something is to be done, where there may be more than the text names."""


@dataclass(frozen=True, slots=True)
class CheckUp:
    """What one check has seen."""

    name: str
    asks: str
    """What it looks whether it holds: a sentence without its full stop."""
    told: tuple[Problem, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    """What it could not look at, and why, a line each."""

    @property
    def problems(self) -> list[Problem]:
        return [each for each in self.told if not each.is_hint]

    @property
    def hints(self) -> list[Problem]:
        return [each for each in self.told if each.is_hint]

    @property
    def diagnosis(self) -> Diagnosis:
        """One problem makes it wrong, whatever else was not looked at."""
        if self.problems:
            return Diagnosis.WRONG
        return Diagnosis.NOT_LOOKED_AT if self.not_looked_at else Diagnosis.FINE


def diagnosis_of(check_ups: Iterable[CheckUp]) -> Diagnosis:
    """Of all checks together."""
    seen = {each.diagnosis for each in check_ups}
    return next((each for each in (Diagnosis.WRONG, Diagnosis.NOT_LOOKED_AT) if each in seen), Diagnosis.FINE)
