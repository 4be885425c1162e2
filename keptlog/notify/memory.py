"""What is remembered between looks: the conditions, and what was told of each where.

A Dagster sensor and the command work on the same state, so only one of them does at a time (``folder``). The state is
written before anything is sent, and again after each message that was delivered. So a kill in between costs at most
that the one message is sent again, under the same id.

A state file that can't be understood is copied aside. What was told is not known then. So what holds now is told once
more: all of it in one message, on each way.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from keptlog.foreign_json import json_value
from keptlog.log.told.conditions import KnownCondition, Matter
from keptlog.notify.folder import NotifyFolder
from keptlog.regular_file import read_file
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)

_STATE = "state.json"
_FORMAT = 1
_NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError)
"""What reading such a file ends with if it is damaged."""


@dataclass(frozen=True, slots=True)
class NotifyState:
    """Conditions, and whether it is known what was told of them."""

    known: tuple[KnownCondition, ...] = ()
    is_anew: bool = False
    """What was told was lost: all that is to be told now goes into one message."""

    def with_told(self, told: Sequence[KnownCondition], way: str) -> NotifyState:
        """The same once these were told on one way."""
        ids = {each.id for each in told}
        return replace(self, known=tuple(each.once_told(way) if each.id in ids else each for each in self.known))


class NotifyMemory(NotifyFolder):
    """The conditions in that folder, and what was told of them."""

    def state(self, *, is_to_be_kept: bool = True) -> NotifyState:
        """What is remembered; one that can't be understood is copied aside, if what follows is to be kept.

        Raises:
            StorageUnavailable: the folder can't be read, or written.
        """
        path = self.path / _STATE
        with self.telling_why():
            try:
                content = read_file(path)
            except FileNotFoundError:
                return NotifyState()
        try:
            return _state(json_value(content))
        except _NOT_UNDERSTOOD:
            _logger.warning("%s is damaged, so it is not known what was told: all that holds is told once more", path)
            if is_to_be_kept:
                with self.telling_why():
                    replace_file(path.with_name(f"{_STATE}.damaged"), content)
            return NotifyState(is_anew=True)

    def broken_checks(self) -> dict[str, tuple[str, ...]]:
        """By what ``verify`` looks at, the checks that were broken when somebody last looked; empty if nobody knows."""
        try:
            known = _state(json_value(read_file(self.path / _STATE))).known
        except (OSError, *_NOT_UNDERSTOOD):
            return {}
        return {each.subject: each.checks for each in known if each.matter is Matter.CHECK and each.ended_ms is None}

    def keep(self, state: NotifyState) -> None:
        """Remember it.

        Raises:
            StorageUnavailable: it can't be written.
        """
        stored = {"format": _FORMAT, "is_anew": state.is_anew, "conditions": [_entry(each) for each in state.known]}
        with self.telling_why():
            replace_file(self.path / _STATE, json.dumps(stored, indent=1).encode())


def _entry(known: KnownCondition) -> dict[str, Any]:
    return asdict(known)


def _state(stored: Mapping[str, Any]) -> NotifyState:
    if stored["format"] != _FORMAT:
        raise ValueError(stored["format"])
    known = tuple(_known(each) for each in stored["conditions"])
    return NotifyState(known, bool(stored["is_anew"]))


def _known(entry: Mapping[str, Any]) -> KnownCondition:
    told = {str(way): _count(level) for way, level in entry["told"].items()}
    texts = {name: str(entry[name]) for name in ("subject", "text", "topic")}
    times = {name: _count_or_none(entry[name]) for name in ("calm_since_ms", "ended_ms")}
    numbers = {name: _count(entry[name]) for name in ("since_ms", "announced", "level", "returns")}
    offset = _count_or_none(entry.get("offset"))
    checks = tuple(str(check) for check in entry.get("checks", ()))
    rest: dict[str, Any] = {**texts, **times, **numbers, "offset": offset}
    return KnownCondition(matter=Matter(entry["matter"]), told=told, checks=checks, **rest)


def _count_or_none(number: object) -> int | None:
    return None if number is None else _count(number)


def _count(number: object) -> int:
    """A whole number from 0 on, as all are that are written; JSON may hold others, and to count with them fails."""
    if type(number) is not int or number < 0:
        raise ValueError(number)
    return number
