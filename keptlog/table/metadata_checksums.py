"""Checksums of a table's own files. Iceberg's formats have none, so each is put where other readers don't look at it.

A **metadata file** is one JSON object, whose unknown fields are read over. It gets one more, in front:

    {"keptlog-crc32":"8d0f3a11","location":"file:///…",…}        the CRC-32 of the file without it

A **manifest** and a **manifest list** are Avro: a header and blocks, each followed by a marker of 16 bytes, which the
writer is free to choose. PyIceberg takes random ones. Here it is a hash of the file, with zeros in the marker's places:

    [ header … marker ][ block … marker ]        marker: "klog1" and 11 bytes of BLAKE2b

A file of another program, or of before format 1.1, has neither, and is read as it is; but any file of Avro ends with
the marker that its header ends with. One that does not was cut off, and could be read as one with fewer entries. A
damaged checksum of JSON that does not look like one any more leaves the file like that, and otherwise whole.
"""

from __future__ import annotations

import hashlib
import zlib

from keptlog.table.avro import BEGINS, MARKER_BYTES, marker_of_header

_AVRO, _JSON = ".avro", ".metadata.json"
_OURS = b"klog1"
_FIELD = b'{"keptlog-crc32":"'
_FIELD_END = b'",'
_DIGITS = 8
_FIELD_BYTES = len(_FIELD) + _DIGITS + len(_FIELD_END)


def has_checksum(location: str) -> bool:
    """Whether files with such a name get one."""
    return location.endswith((_AVRO, _JSON)) and not location.endswith(".gz" + _JSON)


def with_checksum(location: str, content: bytes) -> bytes:
    """A file as it is to be stored; what is no Avro and no JSON object stays as it is."""
    if location.endswith(_AVRO) and len(content) > MARKER_BYTES:
        marker = content[-MARKER_BYTES:]
        return content.replace(marker, _marker_of(content))
    if location.endswith(_JSON) and content.startswith(b'{"'):
        return _FIELD + _crc32(content) + _FIELD_END + content[1:]
    return content


def without_checksum(location: str, content: bytes) -> bytes:
    """A file as it was before ``with_checksum``, or one that has none.

    Raises:
        ValueError: it is not what was written.
    """
    is_whole = True
    if location.endswith(_AVRO) and content[-MARKER_BYTES:].startswith(_OURS):
        is_whole = content[-MARKER_BYTES:] == _marker_of(content)
    elif location.endswith(_AVRO) and content.startswith(BEGINS):
        is_whole = content[-MARKER_BYTES:] == marker_of_header(content)
    elif location.endswith(_JSON) and content.startswith(_FIELD):
        stated = content[len(_FIELD) : len(_FIELD) + _DIGITS]
        content = b"{" + content[_FIELD_BYTES:]
        is_whole = stated == _crc32(content)
    if not is_whole:
        raise ValueError("does not have the checksum that was written with it")
    return content


def _marker_of(content: bytes) -> bytes:
    blank = content.replace(content[-MARKER_BYTES:], bytes(MARKER_BYTES))
    return _OURS + hashlib.blake2b(blank, digest_size=MARKER_BYTES - len(_OURS)).digest()


def _crc32(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
