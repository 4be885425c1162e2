"""Reads what PostgreSQL tells of its changes, and writes it as Debezium would.

Logical decoding gives the messages of ``pgoutput``, the plugin that Debezium uses too (PostgreSQL's "Logical
Replication Message Formats"). Each change of a row becomes a line with key and value, as kcat -J writes them:

    insert                        c
    update                        u; of the key's columns: d, a null, and c under the new key
    delete                        d, and a null behind it
    truncate                      t

A large value that an update leaves as it is is not in the message (TOAST). Debezium takes it from the row before, where
the table tells that (``REPLICA IDENTITY FULL``); else it writes a placeholder, or asks the database again, if it has
been told to (``ReselectColumnsPostProcessor``).
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PLACEHOLDER = "__debezium_unavailable_value"
_POSTGRES_EPOCH_MS = 946_684_800_000
_WHOLE, _BYTES, _FLOATS = {20, 21, 23}, 17, {700, 701, 1700}
_NUMBERS = _WHOLE | _FLOATS
_NO_NUMBERS = {"NaN", "Infinity", "-Infinity"}

Row = dict[str, str | None]
"""Column to its text, as PostgreSQL writes it."""


class _Unchanged(str):
    """A large value that is not in the message."""

    __slots__ = ()


@dataclass(frozen=True)
class _Relation:
    schema: str
    table: str
    columns: Mapping[str, int]
    """Name to type."""
    key: Sequence[str]

    def key_of(self, row: Row) -> Row:
        return {name: row[name] for name in self.key}


class _Message:
    """Takes fields off a message, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, form: str) -> Any:
        [value] = struct.unpack_from(f">{form}", self.data, self.position)
        self.position += struct.calcsize(f">{form}")
        return value

    def text(self) -> str:
        end = self.data.index(0, self.position)
        start, self.position = self.position, end + 1
        return self.data[start:end].decode()

    def some(self, length: int) -> bytes:
        self.position += length
        return self.data[self.position - length : self.position]

    def row(self, relation: _Relation) -> Row:
        row: Row = {}
        assert self.take("h") == len(relation.columns)
        for name in relation.columns:
            kind = self.take("c")
            row[name] = {b"n": lambda: None, b"u": lambda: _Unchanged(PLACEHOLDER)}.get(
                kind, lambda: self.some(self.take("i")).decode()
            )()
        return row


Reselect = Callable[[str, Row, str], str | None]
"""The value that a row with a key has in a column of a table now."""


@dataclass
class ChangeStream:
    """Makes lines of messages, in their order."""

    database: str
    keys: Mapping[str, Sequence[str]]
    """Table to the columns of its primary key; the messages tell those of the replica identity."""
    reselect: Reselect | None = None
    relations: dict[int, _Relation] = field(default_factory=dict)
    at_ms: int = 0

    def lines(self, data: bytes) -> Iterator[bytes]:
        """The lines of one message; none of those that tell of no change."""
        message = _Message(data)
        kind = message.take("c")
        if kind == b"B":
            message.take("q")
            self.at_ms = _POSTGRES_EPOCH_MS + message.take("q") // 1000
        elif kind == b"R":
            number, schema, table = message.take("i"), message.text(), message.text()
            message.take("c")
            columns = {}
            for _ in range(message.take("h")):
                message.take("b")
                name = message.text()
                columns[name] = message.take("i")
                message.take("i")
            self.relations[number] = _Relation(schema, table, columns, self.keys[table])
        elif kind == b"T":
            count, _ = message.take("i"), message.take("b")
            for _ in range(count):
                yield _line(None, {"op": '"t"', "source": self._source(self.relations[message.take("i")])})
        elif kind in {b"I", b"U", b"D"}:
            yield from self._changed(self.relations[message.take("i")], message)

    def _changed(self, relation: _Relation, message: _Message) -> Iterator[bytes]:
        before = after = None
        while message.position < len(message.data):
            kind = message.take("c")
            if kind == b"N":
                after = message.row(relation)
            else:
                before = message.row(relation)
        if after is None:
            assert before is not None
            yield from self._deleted(relation, before)
            return
        after = self._completed(relation, before, after)
        op = "u" if message.data[:1] == b"U" else "c"
        if before and relation.key_of(before) != relation.key_of(after):
            yield from self._deleted(relation, before)
            before, op = None, "c"
        value = {"before": _object(relation, before), "after": _object(relation, after)}
        yield _line(_object(relation, relation.key_of(after)), value | self._about(relation, op))

    def _deleted(self, relation: _Relation, before: Row) -> Iterator[bytes]:
        key = _object(relation, relation.key_of(before))
        yield _line(key, {"before": _object(relation, before), "after": "null"} | self._about(relation, "d"))
        yield _line(key, None)

    def _completed(self, relation: _Relation, before: Row | None, after: Row) -> Row:
        completed: Row = {}
        for name, value in after.items():
            completed[name] = value
            if isinstance(value, _Unchanged):
                if before and before[name] is not None:
                    completed[name] = before[name]
                elif self.reselect:
                    completed[name] = self.reselect(relation.table, relation.key_of(after), name)
        return completed

    def _about(self, relation: _Relation, op: str) -> dict[str, str]:
        return {"op": json.dumps(op), "source": self._source(relation), "ts_ms": str(self.at_ms)}

    def _source(self, relation: _Relation) -> str:
        told = {"connector": "postgresql", "ts_ms": self.at_ms, "db": self.database}
        return json.dumps(told | {"schema": relation.schema, "table": relation.table})


def _object(relation: _Relation, row: Row | None) -> str:
    """A row as JSON with its numbers as PostgreSQL wrote them; of a key without the other columns."""
    if row is None:
        return "null"
    fields = (f"{json.dumps(name)}: {_value(relation.columns[name], value)}" for name, value in row.items())
    return f"{{{', '.join(fields)}}}"


def _value(of_type: int, value: str | None) -> str:
    if value is None:
        return "null"
    if of_type in _NUMBERS and value not in _NO_NUMBERS and not isinstance(value, _Unchanged):
        return value
    if of_type == _BYTES:
        raw = value.encode() if isinstance(value, _Unchanged) else bytes.fromhex(value.removeprefix("\\x"))
        return json.dumps(base64.b64encode(raw).decode())
    return json.dumps(value, ensure_ascii=False)


def _line(key: str | None, value: Mapping[str, str] | None) -> bytes:
    """Of fields that are JSON already."""
    body = "null" if value is None else "{" + ", ".join(f'"{name}": {text}' for name, text in value.items()) + "}"
    return f'{{"key": {key or "null"}, "value": {body}}}\n'.encode()
