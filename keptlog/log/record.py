"""One entry of a log, with Kafka's fields. Times are milliseconds since 1970 UTC; -1 is Kafka's "no timestamp"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

LARGEST_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999, the last that all readers of a table can show."""


class TimestampType(IntEnum):
    """Who set a record's timestamp; Kafka's own numbers."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


Header = tuple[str, bytes | None]
"""Name and value. Order matters and a name may occur more than once."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record at its offset.

    ``value`` is null for a tombstone; an empty value is a value. ``delete_horizon_ms`` is null until the tombstone's
    first clean stamps it; from that time on the tombstone may be removed.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    headers: tuple[Header, ...] = ()
    delete_horizon_ms: int | None = None

    @property
    def is_tombstone(self) -> bool:
        return self.value is None


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record on its way in: the append assigns its offset, and its partition if it has none."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    partition: int | None = None
    headers: tuple[Header, ...] = ()


def type_problem(new: object) -> str | None:
    """What of a record that somebody has made is of a type that it can't have; null if nothing is.

    Numbers are not looked at. Text that is no bytes would be stored, and count by its letters.
    """
    if not isinstance(new, NewRecord):
        return f"it is of type {type(new).__name__}: give a NewRecord"
    for name in ("key", "value"):
        part = getattr(new, name)
        if part is not None and not isinstance(part, bytes):
            return f"its {name} is of type {type(part).__name__}: give bytes, or None"
    headers: object = new.headers
    if not isinstance(headers, tuple | list) or not all(map(_is_header, headers)):
        return "its headers are not pairs of a name (str) and a value (bytes, or None)"
    return None


def _is_header(given: object) -> bool:
    if not isinstance(given, tuple | list) or len(given) != 2:
        return False
    name, value = given
    return isinstance(name, str) and isinstance(value, bytes | None)
