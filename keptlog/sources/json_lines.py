"""Records as JSON lines: one object a line, the same form in and out.

    {"key": "user-7", "value": "{...}", "timestamp": 1700000000000}
    {"key": "user-7", "value": null}                                    a tombstone
    {"key_base64": "AAE=", "value_base64": "/w==", "partition": 3, "headers": [{"key": "h", "value": "x"}]}

Text is UTF-8; bytes that are not go into ``*_base64``. ``key`` may be missing (an unkeyed record), ``value`` may not: a
deletion must be said. ``offset`` and ``delete_horizon``, which ``keptlog read`` prints, are ignored on the way in.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
from typing import Any

from keptlog.errors import InvalidRecord
from keptlog.log.record import Header, NewRecord, Record
from keptlog.sources.exact_json import loads
from keptlog.sources.line_files import why_no_json
from keptlog.sources.other_lines import what_else

_FIELDS = {"key", "key_base64", "value", "value_base64", "timestamp", "partition", "headers"}
_READ_ONLY = {"offset", "timestamp_type", "delete_horizon"}
_KNOWN = _FIELDS | _READ_ONLY
_OF_HEADERS = {"key", "value", "value_base64"}
_ENCODED = json.JSONEncoder(ensure_ascii=False).encode


def from_json(line: bytes, *, now_ms: int) -> NewRecord:
    """The record of a line. Without a timestamp it gets ``now_ms``.

    Raises:
        InvalidRecord: what is wrong with the line and what would be right.
    """
    fields = object_of(line)
    try:
        return _record(fields, now_ms)
    except InvalidRecord as error:
        raise InvalidRecord(f"{what_else(fields)}{error}") from None


def to_json(partition: int, record: Record) -> str:
    """One line, without its end, for a record that was read."""
    shown: dict[str, Any] = {"partition": partition, "offset": record.offset, "timestamp": record.timestamp_ms}
    _put(shown, "key", record.key)
    _put(shown, "value", record.value)
    if record.headers:
        shown["headers"] = [_header_object(header) for header in record.headers]
    if record.delete_horizon_ms is not None:
        shown["delete_horizon"] = record.delete_horizon_ms
    return _ENCODED(shown)


def object_of(line: bytes) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        InvalidRecord: the line is something else.
    """
    try:
        parsed = loads(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidRecord(
            f"not UTF-8 at byte {error.start}: if it is text in another encoding, write it as UTF-8 (iconv -f LATIN1 "
            "-t UTF-8 FILE); put bytes that are no text into key_base64 or value_base64"
        ) from None
    except json.JSONDecodeError as error:
        raise InvalidRecord(why_no_json(line.decode(), error)) from None
    except RecursionError:
        raise InvalidRecord("not a record: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits, NaN, a field that is there twice
        why = "a number has thousands of digits" if "int_max_str_digits" in str(error) else str(error)
        raise InvalidRecord(f"not JSON: {why}") from None
    if not isinstance(parsed, dict):
        todo = ": write its elements as lines (jq -c '.[]' FILE)" if isinstance(parsed, list) else ""
        raise InvalidRecord(f"a record is a JSON object, not {kind_of(parsed)}{todo}")
    return parsed


def _record(fields: dict[str, Any], now_ms: int) -> NewRecord:
    _require_known(fields, _KNOWN, _FIELDS, "unknown field")
    if "value" not in fields and "value_base64" not in fields:
        raise InvalidRecord('no "value": write null for a tombstone')
    timestamp_ms = whole_number(fields, "timestamp")
    return NewRecord(
        key=_bytes(fields, "key"),
        value=_bytes(fields, "value"),
        timestamp_ms=now_ms if timestamp_ms is None else timestamp_ms,
        partition=whole_number(fields, "partition"),
        headers=headers_of(fields.get("headers")),
    )


def _bytes(fields: dict[str, Any], name: str) -> bytes | None:
    encoded = f"{name}_base64"
    if name in fields and encoded in fields:
        raise InvalidRecord(f'both "{name}" and "{encoded}": give one')
    given = name if name in fields else encoded
    value = fields.get(given)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRecord(f'"{given}" is {kind_of(value)}: it must be a string or null (write JSON as a string)')
    try:
        return value.encode() if given == name else base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        wrong = "base64" if given == encoded else "text that UTF-8 can hold (a lone surrogate?)"
        raise InvalidRecord(f'"{given}" is not {wrong}') from None


def whole_number(fields: dict[str, Any], name: str) -> int | None:
    """A field that holds a whole number; null if it is missing or null.

    Raises:
        InvalidRecord: it holds something else.
    """
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**53) <= value <= 2**53:
        meaning = "0 or more" if name == "partition" else "milliseconds since 1970"
        raise InvalidRecord(f'"{name}" is {value!r}: it must be a whole number, {meaning}')
    return value


def headers_of(headers: Any) -> tuple[Header, ...]:
    """Headers from a list of objects with key and value.

    Raises:
        InvalidRecord: they are something else.
    """
    if headers is None:
        return ()
    if not isinstance(headers, list):
        raise InvalidRecord(f'"headers" is {kind_of(headers)}: it must be a list of {{"key", "value"}}')
    return tuple(_header(header) for header in headers)


def _header(header: Any) -> Header:
    if not isinstance(header, dict) or not isinstance(header.get("key"), str):
        raise InvalidRecord(f'a header must be {{"key": string, "value": string or null}}, not {kind_of(header)}')
    _require_known(header, _OF_HEADERS, _OF_HEADERS, "a header has an unknown field")
    try:
        header["key"].encode()
    except UnicodeEncodeError:
        raise InvalidRecord("a header's key is not text that UTF-8 can hold (a lone surrogate?)") from None
    return header["key"], _bytes(header, "value")


def _require_known(fields: dict[str, Any], known: set[str], meant: set[str], what: str) -> None:
    """Refuse a field that nobody reads: what is misspelt would be taken for not given."""
    if not fields.keys() <= known:
        name = min(fields.keys() - known)
        near = difflib.get_close_matches(name, meant, n=1)
        raise InvalidRecord(f"{what} {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))


def _header_object(header: Header) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": header[0]}
    _put(shown, "value", header[1])
    return shown


def _put(shown: dict[str, Any], name: str, data: bytes | None) -> None:
    try:
        shown[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        shown[f"{name}_base64"] = base64.b64encode(data or b"").decode()


def kind_of(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )
