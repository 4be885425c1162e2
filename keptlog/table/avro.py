"""Reads Avro's files, as far as Iceberg's manifests need it, for those who look at a table without PyIceberg.

    Obj1   schema, codec   marker   [ count, bytes, entries, marker ]   [ count, bytes, entries, marker ]   …

Iceberg gives each field of a record a number, and numbers are what programs agree on. So a record becomes a dict by
field number. A map by number is written as a list of pairs, and becomes a dict too.

What can't be read raises ValueError, LookupError, EOFError, TypeError or zlib's own error.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

BEGINS = b"Obj\x01"
MARKER_BYTES = 16
_Read = Callable[["_Bytes"], Any]
_PAIR = ["key", "value"]


class _Bytes:
    """Bytes that are read from the front."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def take(self, count: int) -> bytes:
        """So many of them."""
        begin, self.position = self.position, self.position + count
        if count < 0 or self.position > len(self.content):
            raise EOFError(f"{count} bytes are wanted, and {len(self.content) - begin} are there")
        return self.content[begin : self.position]

    def number(self) -> int:
        """An int or a long: seven bits a byte, the sign in the last."""
        content, position = self.content, self.position
        byte = content[position]
        position += 1
        value, shift = byte & 0x7F, 7
        while byte & 0x80:
            byte = content[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self.position = position
        return (value >> 1) ^ -(value & 1)

    def counted(self) -> bytes:
        """Bytes behind their number."""
        return self.take(self.number())

    def text(self) -> str:
        return self.counted().decode()

    def blocks(self) -> Iterator[int]:
        """How many elements each block of a list or map has, as they come."""
        while count := self.number():
            if count < 0:
                self.number()  # its length in bytes
            yield abs(count)


def records_in(content: bytes) -> Iterator[dict[int, Any]]:
    """The records of a file."""
    read = _Bytes(content)
    header = _header(read)
    marker = read.take(MARKER_BYTES)
    unpacked = _CODECS[header.get("avro.codec", b"null").decode()]
    read_record = _reader(json.loads(header["avro.schema"]), {})
    while read.position < len(content):
        count = read.number()
        block = _Bytes(unpacked(read.counted()))
        if read.take(MARKER_BYTES) != marker:
            raise ValueError("a block does not end with the file's marker")
        for _ in range(count):
            yield read_record(block)


def marker_of_header(content: bytes) -> bytes | None:
    """What each block of a file ends with, as its header does; null if not even that is whole."""
    read = _Bytes(content)
    try:
        _header(read)
        return read.take(MARKER_BYTES)
    except (EOFError, ValueError, IndexError):
        return None


def _header(read: _Bytes) -> Mapping[str, bytes]:
    if read.take(len(BEGINS)) != BEGINS:
        raise ValueError("it is no file of Avro")
    return {read.text(): read.counted() for count in read.blocks() for _ in range(count)}


def _inflated(content: bytes) -> bytes:
    return zlib.decompress(content, -zlib.MAX_WBITS)


_CODECS: dict[str, Callable[[bytes], bytes]] = {"null": bytes, "deflate": _inflated}
"""Those that Iceberg's programs write unless they are told otherwise; others are for PyIceberg."""
_PRIMITIVES: dict[str, _Read] = {
    "null": lambda _: None,
    "boolean": lambda read: read.take(1) == b"\x01",
    "int": _Bytes.number,
    "long": _Bytes.number,
    "float": lambda read: struct.unpack("<f", read.take(4))[0],
    "double": lambda read: struct.unpack("<d", read.take(8))[0],
    "bytes": _Bytes.counted,
    "string": _Bytes.text,
}


def _reader(schema: Any, named: dict[str, _Read]) -> _Read:
    """What reads a value of a schema; ``named`` has the types that were given a name."""
    if isinstance(schema, list):
        branches = [_reader(each, named) for each in schema]
        return lambda read: branches[read.number()](read)
    if isinstance(schema, str):
        return _PRIMITIVES[schema] if schema in _PRIMITIVES else named[schema]
    kind = schema["type"]
    if isinstance(kind, str) and kind in _COMPLEX:
        read = _COMPLEX[kind](schema, named)
        if "name" in schema:
            named[schema["name"]] = read
        return read
    return _reader(kind, named)


def _record_reader(schema: Mapping[str, Any], named: dict[str, _Read]) -> _Read:
    fields = [(int(each["field-id"]), _reader(each["type"], named)) for each in schema["fields"]]
    return lambda read: {number: read_field(read) for number, read_field in fields}


def _map_reader(schema: Mapping[str, Any], named: dict[str, _Read]) -> _Read:
    read_value = _reader(schema["values"], named)
    return lambda read: {read.text(): read_value(read) for count in read.blocks() for _ in range(count)}


def _fixed_reader(schema: Mapping[str, Any], _: dict[str, _Read]) -> _Read:
    size = int(schema["size"])
    return lambda read: read.take(size)


def _array_reader(schema: Mapping[str, Any], named: dict[str, _Read]) -> _Read:
    items = schema["items"]
    names = [each["name"] for each in items["fields"]] if isinstance(items, dict) and "fields" in items else []
    if names == _PAIR:
        read_key, read_value = (_reader(each["type"], named) for each in items["fields"])
        return lambda read: {read_key(read): read_value(read) for count in read.blocks() for _ in range(count)}
    read_item = _reader(items, named)
    return lambda read: [read_item(read) for count in read.blocks() for _ in range(count)]


_COMPLEX: dict[str, Callable[[Mapping[str, Any], dict[str, _Read]], _Read]] = {
    "record": _record_reader,
    "array": _array_reader,
    "map": _map_reader,
    "fixed": _fixed_reader,
}
