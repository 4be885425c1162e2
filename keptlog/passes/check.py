"""What is checked on a stored log, and what a check has found; ``verify`` looks, and so does ``holders``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_PROBLEMS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is checked. ``title`` says it in words, fit for an identifier."""

    name: str
    title: str
    description: str
    warns_only: bool = False


CHECKS: tuple[Check, ...] = (
    Check("G1", "one_record_a_key", "The clean section holds one record of every key, and every file is whole."),
    Check("G2", "order_is_kept", "Offsets rise inside every segment and from one to the next."),
    Check("G3", "offsets_are_kept", "Every offset lies where the table says, between log start and log end."),
    Check("G4", "dirty_section_is_untouched", "The dirty section is as it was appended."),
    Check("G5", "tombstones_wait", "Every tombstone of the clean section, and nothing else, has a delete horizon."),
    Check("max_compaction_lag", "", "No record is uncompacted for longer than max.compaction.lag.ms.", warns_only=True),
)
_WARN_ONLY = frozenset(check.name for check in CHECKS if check.warns_only)


class Outcome(StrEnum):
    """What a check has found."""

    OK = "ok"
    BROKEN = "broken"
    NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check on one log; ``metadata`` are its numbers, times and sizes in ms and bytes."""

    name: str
    passed: bool
    description: str
    metadata: Mapping[str, int | float]
    is_looked_at: bool = True
    """False if nothing is wrong in what could be seen, and not all could be: it has not passed, and is not broken."""

    @property
    def outcome(self) -> Outcome:
        if not self.is_looked_at:
            return Outcome.NOT_LOOKED_AT
        return Outcome.OK if self.passed else Outcome.BROKEN

    @property
    def warns_only(self) -> bool:
        """Whether no guarantee is broken if it does not pass."""
        return self.name in _WARN_ONLY


def what_broke(results: Iterable[CheckResult]) -> dict[str, str | None]:
    """By check what is broken in a log, null if nothing is. What only warns, or was not looked at, is not in it."""
    asked = [each for each in results if each.is_looked_at and not each.warns_only]
    return {each.name: None if each.passed else each.description for each in asked}


def sentence(problems: Sequence[str]) -> str:
    """Problems in one line: the first few, and how many more there are."""
    more = len(problems) - _PROBLEMS_SHOWN
    return "; ".join(problems[:_PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
