"""Reads Avro's files, as far as Iceberg's manifests need it, for those who look at a table without PyIceberg.

fastavro decodes them, and gives each record as a dict by name. Iceberg gives each field of a record a number, and
numbers are what programs agree on. So a record becomes a dict by field number here. A map by number is written as a
list of pairs, and becomes a dict too.

    written   {status: 1, data_file: {lower_bounds: [{key: 4, value: …}]}}
    read      {0: 1, 2: {125: {4: …}}}

What can't be read raises whatever fastavro raises.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro

BEGINS = b"Obj\x01"
MARKER_BYTES = 16
_Convert = Callable[[Any], Any]
_PAIR = ["key", "value"]
_HEADER = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": len(BEGINS)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": MARKER_BYTES}},
    ],
}
"""As Avro's specification has it."""


def records_in(content: bytes) -> Iterator[dict[int, Any]]:
    """The records of a file."""
    records = fastavro.reader(io.BytesIO(content))
    by_number = _conversion(records.writer_schema, {})
    for record in records:
        yield by_number(record)


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """What a file begins with."""

    meta: Mapping[str, bytes]
    marker: bytes
    """What each block ends with, as the header does."""


def header_of(content: bytes) -> AvroHeader | None:
    """The header of a file; null if not even that is whole."""
    try:
        header: Any = fastavro.schemaless_reader(io.BytesIO(content), _HEADER, None)
    except (EOFError, ValueError, IndexError):
        return None
    return AvroHeader(header["meta"], bytes(header["sync"]))


def _conversion(schema: Any, named: dict[str, _Convert]) -> _Convert:
    """What converts a value of a schema; ``named`` has the conversions of types that were given a name."""
    if isinstance(schema, list):
        # Iceberg's unions are of null and one other type.
        (convert,) = (_conversion(each, named) for each in schema if each != "null")
        return lambda value: None if value is None else convert(value)
    if isinstance(schema, str):
        return named.get(schema, _as_it_is)
    kind = schema["type"]
    if kind == "record":
        return _of_record(schema, named)
    if kind == "array":
        return _of_array(schema["items"], named)
    return _conversion(kind, named) if isinstance(kind, dict | list) else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _of_record(schema: Mapping[str, Any], named: dict[str, _Convert]) -> _Convert:
    fields = [(int(each["field-id"]), each["name"], _conversion(each["type"], named)) for each in schema["fields"]]

    def convert(record: Mapping[str, Any]) -> dict[int, Any]:
        return {number: convert_field(record[name]) for number, name, convert_field in fields}

    named[schema["name"]] = convert
    return convert


def _of_array(items: Any, named: dict[str, _Convert]) -> _Convert:
    if isinstance(items, dict) and [each["name"] for each in items.get("fields", ())] == _PAIR:
        convert_key, convert_value = (_conversion(each["type"], named) for each in items["fields"])
        return lambda pairs: {convert_key(pair["key"]): convert_value(pair["value"]) for pair in pairs}
    convert = _conversion(items, named)
    return lambda values: [convert(value) for value in values]
