"""JSON whose numbers stay as they were written.

    {"price": 1.10, "total": 12345678901234567.89}      Python's float would make 1.1 and 1.2345678901234568e+16 of them

A whole number is Python's, which has as many digits as it needs; all but -0, which PostgreSQL writes for a float. Any
other is a ``Number``: its text, and nothing is computed with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True, repr=False)
class Number:
    """A number that Python's whole numbers can't hold, as its text."""

    text: str

    def __repr__(self) -> str:
        return self.text


class _HasNumber(TypeError):
    """Met by Python's own encoder, which can't write a ``Number``."""


def loads(text: str) -> Any:
    """What JSON says.

    Raises:
        ValueError: it is no JSON; NaN and Infinity are none. Or a field is there twice.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.decode(text)


def compact(value: Any) -> str:
    """A value as JSON without spaces, its fields in the order that they have.

    Raises:
        ValueError: it holds a float that JSON has no text for.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_to_be_written)
    except _HasNumber:
        return _written(value)


def _written(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(name)}:{_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return compact(value)


def _to_be_written(_: object) -> NoReturn:
    raise _HasNumber


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice, and only one can be meant")
    return fields


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}: write it as a string, or null")


def _whole(text: str) -> int | Number:
    return Number(text) if text == "-0" else int(text)


_DECODER = json.JSONDecoder(
    parse_float=Number, parse_int=_whole, parse_constant=_refuse, object_pairs_hook=_fields_once
)
