"""Records from Debezium's change events, one JSON object a line.

    {"key": {"id": 7}, "value": {"before": …, "after": {"id": 7, "name": "Ada"}, "op": "u", "source": {"ts_ms": …}}}

is the record ``{"id":7}`` -> ``{"id":7,"name":"Ada"}`` at the time of the change in the database. An ``op`` of c, u or
r sets a row, d deletes it: a tombstone. So is a null value; Debezium sends one after each delete, which then has the
time of that delete, not of its own way through Kafka.

The same event is written in many ways, and all of these are taken:

- as kcat -J and file sinks write lines: the value in ``value`` or in ``payload``; the time of the line in ``timestamp``
  or ``ts``, for events that have none; headers as objects, or as kcat's list of names and values in turn
- key and value as JSON, or as text that holds JSON; alone, or with their ``schema`` beside the ``payload``
- only the value, without a key: the key is then made of the columns in ``key_fields``
- flattened (``ExtractNewRecordState``), if the rows say what happened to them: by ``__deleted`` or ``__op``

A row that lacks a large value, because that did not change, is refused unless it is accepted (``unavailable``).

All events are of one table, or of those that were chosen (``change_tables``). An update of the key's columns, of an
event without a key that has the row before, is two records: the old key's tombstone, and the row under its new key.

Key and value are written as Kafka's JsonConverter writes them without schemas: compact JSON, fields in the order in
which they came, numbers as they were written. A key that is not an object stays the text that it is. A partition in the
line is left aside: the key chooses, so that one key is never in two logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keptlog.errors import InvalidRecord
from keptlog.log.record import Header, NewRecord
from keptlog.log.words.counted import counted
from keptlog.sources.change_tables import FLAT_DELETED, FLAT_OP, TableChoice, foreign_form, is_flat
from keptlog.sources.exact_json import compact, loads
from keptlog.sources.json_lines import headers_of, kind_of, object_of, whole_number
from keptlog.sources.unavailable import Placeholders, refusal

_FLAT_TIMES = ("__source_ts_ms", "__ts_ms")
_REFUSED_OPS = {
    "t": "a truncate deletes rows without naming their keys: append what stands before it, then a null for each key "
    "that keptlog read --latest shows, then what stands behind it",
}


@dataclass(frozen=True, slots=True)
class _Change:
    """What happened to a row: ``image`` is the row, as it is now or, if it is deleted, was before.

    ``earlier`` is what it was before an update, or as much of it as the database tells; else null.
    """

    image: Any
    earlier: Any
    is_delete: bool
    times: tuple[Any, ...]


@dataclass
class ChangeEvents:
    """Makes records of the lines of one or more files, in their order.

    ``key_fields`` are the columns of the key, for lines without one; ``now_ms`` is the time of those that have none.
    """

    key_fields: tuple[str, ...]
    now_ms: int
    choice: TableChoice = field(default_factory=TableChoice)
    lacking: Counter[str] | None = None
    """Counts the columns whose values are not there, in rows that are taken all the same; null to refuse such rows."""
    placeholders: Placeholders = field(default_factory=Placeholders)
    _deleted: NewRecord | None = field(default=None)
    """The record before this one, if it is a delete."""
    _is_left_out: bool = field(default=False)
    """Whether that was a delete of a table that is not wanted."""

    def records(self, line: bytes) -> Sequence[NewRecord]:
        """The record of a line; none if it is left out, and two if a row has got another key.

        Raises:
            InvalidRecord: what is wrong with the line and what would be right.
        """
        if line.strip() == b"null":
            return self._second_delete(None, {})
        fields = object_of(line)
        is_pair = "key" in fields and ("value" in fields or "payload" in fields) and not is_flat(fields)
        key = _key_bytes(fields["key"]) if is_pair else None
        value = _payload(fields["value"] if "value" in fields else fields["payload"]) if is_pair else _payload(fields)
        around = fields if is_pair else {}
        if value is None:
            return self._second_delete(key, around)
        if isinstance(value, dict) and not self.choice.takes(value):
            self._is_left_out = _says_deleted(value)
            self._deleted = NewRecord(key, None, 0) if self._is_left_out else None
            return ()
        self._is_left_out = False
        change = _change(value)
        if self.placeholders.may_be_in(line) and not change.is_delete:
            self._require_values(_parsed(change.image))
        if key is not None and self.key_fields:
            raise InvalidRecord("the event has a key of its own, which --key-field would put aside: leave that out")
        record = NewRecord(
            key=self._key_of(change) if key is None else key,
            value=None if change.is_delete else _image_bytes(change.image),
            timestamp_ms=self._time_of(*change.times, around.get("timestamp"), around.get("ts")),
            headers=_headers(around.get("headers")),
        )
        self._deleted = record if change.is_delete else None
        if key is None and (old_key := self._old_key(change)) not in {None, record.key}:
            return replace(record, key=old_key, value=None), record
        return (record,)

    def _require_values(self, row: Any) -> None:
        columns = self.placeholders.lacking(row)
        if columns and self.lacking is None:
            raise refusal(columns)
        if self.lacking is not None:
            self.lacking.update(columns.keys())

    def _old_key(self, change: _Change) -> bytes | None:
        """The key that a row had before an update; null if the event does not tell."""
        row = _parsed(change.earlier)
        if not isinstance(row, dict) or not all(name in row for name in self.key_fields) or self._untold(row):
            return None
        return _json_bytes({name: row[name] for name in self.key_fields})

    def _untold(self, row: Mapping[str, Any]) -> list[str]:
        """Columns of the key whose values the database did not tell: a null in their place is none of the row's."""
        lacking = self.placeholders.lacking({name: row[name] for name in self.key_fields})
        return [name for name in self.key_fields if row[name] is None or name in lacking]

    def _second_delete(self, key: bytes | None, around: Mapping[str, Any]) -> Sequence[NewRecord]:
        """A null value: Debezium's own after a delete, or one that stands alone."""
        before, self._deleted = self._deleted, None
        is_left_out, self._is_left_out = self._is_left_out, False
        if before and key in {None, before.key}:
            return () if is_left_out else (before,)
        if self.choice.leaves_tables_out:
            raise InvalidRecord(
                "a null that stands alone tells no table: leave --table out if all events are of one, else split the "
                "file by tables before (jq), or by topics, which kcat -J writes"
            )
        if key is None:
            raise InvalidRecord(
                "a null without a key, and not right after a delete: write the keys too, for example with kcat -J"
            )
        time_ms = self._time_of(around.get("timestamp"), around.get("ts"))
        return (NewRecord(key, None, time_ms, headers=_headers(around.get("headers"))),)

    def _key_of(self, change: _Change) -> bytes | None:
        """A key of the columns in ``key_fields``, as Debezium would make it."""
        if not self.key_fields:
            raise InvalidRecord(
                "the event has no key: name the columns of the primary key (--key-field id), or write the keys too, "
                "for example with kcat -J"
            )
        row = _parsed(change.image)
        if not isinstance(row, dict):
            raise InvalidRecord(f"the key can't be taken from a row that is {kind_of(row)}: write the keys too")
        missing = [name for name in self.key_fields if name not in row]
        if missing:
            raise InvalidRecord(f"the row has no {missing[0]!r} for the key: it has {', '.join(row)}")
        if change.is_delete and (untold := self._untold(row)):
            raise InvalidRecord(
                f"the event deletes a row without telling its {untold[0]!r}, so nobody knows which key goes: name the "
                "columns of the primary key (--key-field), or let the database tell whole rows (REPLICA IDENTITY FULL)"
            )
        return _json_bytes({name: row[name] for name in self.key_fields})

    def _time_of(self, *candidates: Any) -> int:
        """The first time that is there. 0 is what some connectors write into snapshots where they know none."""
        for candidate in candidates:
            time_ms = whole_number({"timestamp": candidate}, "timestamp")
            if time_ms:
                return time_ms
        return self.now_ms


def _change(value: Any) -> _Change:
    if not isinstance(value, dict):
        raise InvalidRecord(f"the value is {kind_of(value)}, not a change event: an object with op, before and after")
    if is_flat(value):
        return _flat_change(value)
    op = value.get("op")
    if op is None and (other := foreign_form(value)):
        raise InvalidRecord(f"the event is in {other}'s form: have it written in Debezium's, or as JSON lines")
    if op is None:
        raise InvalidRecord(
            f"no change event: it has no op but {', '.join(value) or 'nothing'}; rows that Debezium flattened need "
            "__deleted (delete.tombstone.handling.mode=rewrite) or __op (add.fields=op)"
        )
    source = value.get("source")
    times = (source.get("ts_ms") if isinstance(source, dict) else None, value.get("ts_ms"))
    is_delete = _is_delete(op)
    image = value.get("before" if is_delete else "after")
    if image is None and not is_delete:
        raise InvalidRecord(
            f"op {op!r} without an after image: let the connector capture whole rows "
            "(MongoDB: capture.mode=change_streams_update_full)"
        )
    return _Change(image, None if is_delete else value.get("before"), is_delete, times)


def _flat_change(row: Mapping[str, Any]) -> _Change:
    """A row with what happened to it in fields of its own, which may be text."""
    times = tuple(_parsed(row.get(name)) for name in _FLAT_TIMES)
    is_delete = _says_deleted(row) or (row.get(FLAT_OP) is not None and _is_delete(row[FLAT_OP]))
    told = {FLAT_DELETED, FLAT_OP, *_FLAT_TIMES}
    return _Change({name: value for name, value in row.items() if name not in told}, None, is_delete, times)


def _says_deleted(event: Mapping[str, Any]) -> bool:
    """Whether an event of any table is a delete; what else it may be is not asked."""
    if is_flat(event):
        return str(event.get(FLAT_DELETED)).lower() == "true" or event.get(FLAT_OP) == "d"
    return event.get("op") == "d"


def _is_delete(op: Any) -> bool:
    if isinstance(op, str) and op in _REFUSED_OPS:
        raise InvalidRecord(f"op {op!r}: {_REFUSED_OPS[op]}")
    if not isinstance(op, str) or op not in {"c", "u", "r", "d"}:
        raise InvalidRecord(f"unknown op {op!r}: it must be c (create), u (update), r (read) or d (delete)")
    return op == "d"


def _payload(given: Any) -> Any:
    """What a key or value says, out of its text and without its schema."""
    parsed = _parsed(given)
    return parsed["payload"] if isinstance(parsed, dict) and parsed.keys() == {"schema", "payload"} else parsed


def _parsed(given: Any) -> Any:
    """What text says if it holds JSON; anything else as it is."""
    if not isinstance(given, str):
        return given
    try:
        return loads(given)
    except (ValueError, RecursionError):
        return given


def _key_bytes(given: Any) -> bytes | None:
    """A key as Kafka has it: an object as compact JSON, text as it is."""
    key = _payload(given) if isinstance(_parsed(given), dict) else given
    if key is None:
        return None
    return _text_bytes(key) if isinstance(key, str) else _json_bytes(key)


def _image_bytes(image: Any) -> bytes:
    """A row as compact JSON; MongoDB's documents are text already."""
    return _text_bytes(image) if isinstance(image, str) else _json_bytes(image)


def _json_bytes(value: Any) -> bytes:
    try:
        text = compact(value)
    except RecursionError:
        raise InvalidRecord("not a record: nested too deeply") from None
    return _text_bytes(text)


def _text_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRecord("it has text that UTF-8 can't hold (a lone surrogate?)") from None


def _headers(given: Any) -> tuple[Header, ...]:
    """Headers as objects, or as kcat writes them: a list of name, value, name, value."""
    if isinstance(given, list) and given and isinstance(given[0], str):
        if len(given) % 2:
            raise InvalidRecord(f'"headers" has {counted(len(given), "element")}: names and values must take turns')
        given = [{"key": name, "value": value} for name, value in zip(given[::2], given[1::2], strict=True)]
    return headers_of(given)
