"""One Kafka setting: its names, its type and what it may be.

A topic's value is looked up in Kafka's order: the topic's own, then the broker's under its synonym (the finer unit
first), then the default. Between the first two comes what was stored of the broker's when the topic was made.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from keptlog.errors import InvalidConfig
from keptlog.log.given import given
from keptlog.log.words.meant_number import meant_fraction, meant_whole_number
from keptlog.log.words.units import LONG_MAX

BROKER_VARIABLES = "KEPTLOG_BROKER_"
"""Begins the environment variables that are broker settings: in capitals, with ``_`` for each dot."""
Value = bool | int | float | str | tuple[str, ...]
_INT_MAX = 2**31 - 1
_UNITS = {"ms": "milliseconds", "minutes": "minutes", "hours": "hours", "bytes": "bytes"}
"""What a setting counts whose name ends like this."""


class Origin(StrEnum):
    """Where a setting's value comes from; Kafka's ``DescribeConfigs`` has all but the second."""

    TOPIC = "topic"
    STORED = "stored"
    BROKER = "broker"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that gives a topic setting its default; one of it is ``unit`` of the topic's.

    Those in a coarser unit are ints in Kafka, not longs.
    """

    name: str
    unit: int = 1
    keeps_something: bool = False
    """Unlike a topic's own value it must not be 0, and any negative number means -1."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a topic, or of a broker alone, under Kafka's name.

    The type is that of ``default``; ``minimum`` and ``maximum`` are inclusive, ``choices`` bound text and lists.
    """

    name: str
    default: Value
    doc: str
    broker: tuple[Synonym, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    negative_is_unlimited: bool = False
    """Any negative number means -1, no limit; ``minimum`` is -1 too."""
    keeps_something: bool = False
    """0 is none of its values, though it lies above ``minimum``: that may be -1, no limit."""
    empty_is_default: bool = False

    def parse_synonym(self, synonym: Synonym, text: str) -> Value:
        """Turn what a broker has under a synonym into a value of this setting.

        Raises:
            InvalidConfig: as ``parse``; the message names the synonym.
        """
        setting = self
        if synonym.unit != 1:
            setting = replace(setting, maximum=_INT_MAX)
        if synonym.keeps_something:
            setting = replace(setting, negative_is_unlimited=True, keeps_something=True)
        value = setting.parse(text, name=synonym.name)
        return value * synonym.unit if isinstance(value, int) and value > 0 else value

    def parse(self, text: str, *, name: str | None = None) -> Value:
        """Turn text into a value of this setting.

        Raises:
            InvalidConfig: wrong type, out of range or not one of the choices; the message names the setting.
        """
        shown = name or self.name
        text = given.text(text, shown)
        value: Value
        if isinstance(self.default, tuple):
            parts = [part.strip() for part in text.split(",")] if text.strip() else []
            if "" in parts:
                raise InvalidConfig(f"{shown}={text!r} has a comma with nothing beside it: leave that comma out")
            value = tuple(dict.fromkeys(parts))
            self._check_choices(shown, value)
        elif isinstance(self.default, str):
            value = text.strip()
            if not value and self.empty_is_default:
                return self.default
            if self.choices:
                self._check_choices(shown, (value,))
        elif isinstance(self.default, bool):
            value = _parse_boolean(shown, text)
        else:
            value = self._parse_number(shown, text)
        return value

    def _parse_number(self, shown: str, text: str) -> int | float:
        is_float = isinstance(self.default, float)
        try:
            # Python's underscores between digits are not Kafka's, and Java's letters behind a fraction not Python's.
            number = float(_of_java(text)) if is_float else int(text.replace("_", "?"))
        except ValueError:
            unit = _UNITS.get(shown.rpartition(".")[2])
            wanted = "a number" if is_float else f"a whole number of {unit}" if unit else "a whole number"
            meant_number = meant_fraction(text) if is_float else meant_whole_number(shown, text)
            hint = self._hint(shown, meant_number) if meant_number else ""
            raise InvalidConfig(f"{shown}={text!r} is not {wanted}{hint}") from None
        highest = sys.float_info.max if is_float else LONG_MAX
        if self.negative_is_unlimited and -(self.maximum or LONG_MAX) - 1 <= number < 0:
            return -1
        low, high = self.minimum, self.maximum if self.maximum is not None else highest
        is_nothing = self.keeps_something and number == 0
        if is_nothing or not (low is None or number >= low) or not number <= high:
            raise InvalidConfig(f"{shown}={text} is out of range: it must {self._range(number)}")
        return number

    def _hint(self, shown: str, meant_number: str) -> str:
        """How a refusal ends where somebody meant this number, which may be out of range itself."""
        try:
            self.parse(meant_number, name=shown)
        except InvalidConfig as error:
            return f", and {str(error).removeprefix(f'{shown}=')}"
        return f": write {meant_number}"

    def _range(self, number: float) -> str:
        """What this number must do instead, as a sentence ends; a bound of the type alone goes without saying."""
        if self.keeps_something and number == 0:
            return "be at least 1, or -1 for no limit"
        if self.minimum is not None and self.maximum is not None:
            return f"lie in [{self.minimum}, {self.maximum}]"
        if self.minimum is not None and number < self.minimum:
            return f"be at least {self.minimum}"
        if self.maximum is not None:
            return f"be at most {self.maximum}"
        return "be a finite number" if isinstance(self.default, float) else f"be at most {LONG_MAX}"

    def _check_choices(self, shown: str, values: tuple[str, ...]) -> None:
        wrong = [value for value in values if value not in self.choices]
        if wrong:
            raise InvalidConfig(f"{shown}={','.join(wrong)!r} is not known: use {' or '.join(self.choices)}")


def _of_java(text: str) -> str:
    text = text.replace("_", "?").strip()
    return text[:-1] if text[-1:] in "fFdD" and text[-2:-1] in "0123456789." else text


def _parse_boolean(shown: str, text: str) -> bool:
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise InvalidConfig(f"{shown}={text!r} is neither true nor false")
    return value


@dataclass(frozen=True, slots=True)
class Resolved:
    """The value of one setting and where it was found."""

    setting: Setting
    value: Value
    origin: Origin
    origin_name: str


def resolve(
    setting: Setting, topic: Mapping[str, str], broker: Mapping[str, str], stored: Mapping[str, str] | None = None
) -> Resolved:
    """Look one setting up: topic, then what was stored of the broker's, then broker, then default."""
    for origin, values in ((Origin.TOPIC, topic), (Origin.STORED, stored or {})):
        if setting.name in values:
            return Resolved(setting, setting.parse(values[setting.name]), origin, setting.name)
    for synonym in setting.broker:
        if synonym.name in broker:
            value = setting.parse_synonym(synonym, broker[synonym.name])
            return Resolved(setting, value, Origin.BROKER, synonym.name)
    return Resolved(setting, setting.default, Origin.DEFAULT, setting.name)


def as_text(value: Value) -> str:
    """A value as ``parse`` takes it."""
    return ",".join(value) if isinstance(value, tuple) else str(value)


def unknown_name(name: str, known: list[str]) -> InvalidConfig:
    """The error for a name that no setting has, with the nearest right one."""
    return InvalidConfig(f"there is no setting {name!r}: {meant(str(name), known)}")


def meant(name: str, known: Collection[str]) -> str:
    """What somebody may have meant who wrote a name that is not known, in words that end a message."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
