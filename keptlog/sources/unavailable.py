"""Values that a change event does not have, with Debezium's placeholder in their place.

    {"op": "u", "after": {"id": 7, "name": "Ada", "document": "__debezium_unavailable_value"}, …}

A database keeps large values apart (PostgreSQL: TOAST), and does not tell those that an update leaves as they are. The
record would be the latest of its key, and a clean would remove the one before, which has the value: it would be lost
for good. So such an event is refused, unless somebody accepts that (ADR 65).

The placeholder stands for text, in base64 for bytes, and as the only element of a list or map.
"""

from __future__ import annotations

import base64
from typing import Any

from keptlog.errors import InvalidRecord

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's default; a connector may have been given another (``unavailable.value.placeholder``)."""
_FORMS = frozenset({PLACEHOLDER, base64.b64encode(PLACEHOLDER.encode()).decode()})
_MARKS = tuple(form.encode() for form in _FORMS)


def may_lack(line: bytes) -> bool:
    """Whether a line may have a placeholder; to look at each of its values takes longer."""
    return any(mark in line for mark in _MARKS)


def lacking(row: Any) -> list[str]:
    """The columns of a row whose values are not there."""
    return [name for name, value in row.items() if _is_placeholder(value)] if isinstance(row, dict) else []


def refusal(columns: list[str]) -> InvalidRecord:
    """Why a row must not supersede the one before."""
    return InvalidRecord(
        f"the event does not have the value of {columns[0]!r}, which did not change ({PLACEHOLDER}), and would "
        "supersede the row that has it: let the database tell it (PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL), "
        "or Debezium read it (ReselectColumnsPostProcessor); or take such rows as they are (--accept-unavailable)"
    )


def _is_placeholder(value: Any) -> bool:
    if isinstance(value, str):
        return value in _FORMS
    if isinstance(value, list):
        return any(map(_is_placeholder, value))
    return isinstance(value, dict) and any(_is_placeholder(each) for pair in value.items() for each in pair)
