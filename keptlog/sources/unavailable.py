"""Values that a change event does not have, with Debezium's placeholder in their place.

    {"op": "u", "after": {"id": 7, "name": "Ada", "document": "__debezium_unavailable_value"}, …}

A database keeps large values apart (PostgreSQL: TOAST), and does not tell those that an update leaves as they are. The
record would be the latest of its key, and a clean would remove the one before, which has the value: it would be lost
for good. So such an event is refused, unless somebody accepts that (ADR 65).

What stands there depends on the type of the column. For the placeholder ``gone`` it is:

    text, or the element of a list, or key and value of a map     gone
    bytes, by binary.handling.mode                                Z29uZQ== or 676f6e65
    a list of numbers                                             [103, 111, 110, 101], one for each byte
    a list of UUIDs                                               the UUID that Java makes of these bytes

A connector may have been given another placeholder. Nothing in an event tells it, so whoever appends has to.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.sources.exact_json import Number

PLACEHOLDER = "__debezium_unavailable_value"
KNOWN = (PLACEHOLDER, "__cflt_unavailable_value")
"""Debezium's default, and that of Confluent's connectors."""
_HEX = "hex:"
"""Begins a placeholder whose bytes are given as hex; Debezium's own rule."""
_PLAIN = re.compile(r"\w+", re.ASCII)
"""What JSON writes as it is, whoever escapes it."""


class Placeholders:
    """What stands for values that are not there; ``given`` are those of connectors that have their own.

    Raises:
        InvalidConfig: one is empty, or is no hex although it begins so.
    """

    def __init__(self, given: Sequence[str] = ()) -> None:
        each_bytes = {name: _bytes_of(name) for name in (*KNOWN, *given)}
        self._texts = {form: name for name, held in each_bytes.items() for form in _texts(held)}
        self._numbers: dict[tuple[float | None, ...], str] = {_signed(held): name for name, held in each_bytes.items()}
        marks = {max(_PLAIN.findall(text), key=len, default="").encode() for text in self._texts}
        signed = map(_signed, each_bytes.values())
        lists = [rb"\s*,\s*".join(rb"%d(?:\.0+)?" % number for number in numbers) for numbers in signed]
        self._marks = re.compile(b"|".join([*marks, *lists]))

    def may_be_in(self, line: bytes) -> bool:
        """Whether a line may have a placeholder; to look at each of its values takes longer."""
        return self._marks.search(line) is not None

    def lacking(self, row: Any) -> dict[str, str]:
        """The columns of a row whose values are not there, with the placeholder of each."""
        columns = row.items() if isinstance(row, dict) else ()
        return {column: name for column, value in columns for name in self._found(value)}

    def _found(self, value: Any) -> Iterator[str]:
        if isinstance(value, str) and value in self._texts:
            yield self._texts[value]
        elif isinstance(value, list):
            name = self._numbers.get(tuple(map(_number, value)))
            yield from (name,) if name else (found for each in value for found in self._found(each))
        elif isinstance(value, dict):
            yield from (found for pair in value.items() for each in pair for found in self._found(each))


def refusal(columns: dict[str, str]) -> InvalidRecord:
    """Why a row must not supersede the one before."""
    column, placeholder = next(iter(columns.items()))
    return InvalidRecord(
        f"the event does not have the value of {column!r}, which did not change ({placeholder}), and would "
        "supersede the row that has it: let the database tell it (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL), "
        "or Debezium read it (ReselectColumnsPostProcessor); or take such rows as they are (--accept-unavailable)"
    )


def _bytes_of(name: str) -> bytes:
    if not name.removeprefix(_HEX):
        raise InvalidConfig(
            f"--unavailable-value-placeholder {name!r} is empty: give what the connector has as its "
            f"unavailable.value.placeholder, or leave the option out if that is {PLACEHOLDER}"
        )
    if not name.startswith(_HEX):
        return name.encode()
    try:
        return bytes.fromhex(name.removeprefix(_HEX))
    except ValueError:
        raise InvalidConfig(
            f"--unavailable-value-placeholder {name!r} is no hex behind {_HEX}: write two digits for each byte, as the "
            "connector's unavailable.value.placeholder has them"
        ) from None


def _texts(held: bytes) -> set[str]:
    """All texts that stand for a placeholder of these bytes."""
    in_base64 = {base64.b64encode(held).decode(), base64.urlsafe_b64encode(held).decode()}
    # Java's UUID.nameUUIDFromBytes: MD5 of the bytes alone, where Python's uuid3 puts a namespace before them.
    as_uuid = uuid.UUID(bytes=hashlib.md5(held, usedforsecurity=False).digest(), version=3)
    return {held.decode(errors="replace"), *in_base64, held.hex(), str(as_uuid)}


def _signed(held: bytes) -> tuple[int, ...]:
    """The bytes as Java has them, from -128 to 127."""
    return tuple(memoryview(held).cast("b"))


def _number(value: Any) -> float | None:
    if isinstance(value, Number):
        return float(value.text)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
