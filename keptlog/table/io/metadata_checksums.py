"""Checksums of a table's own files. Iceberg's formats have none, so each is put where other readers don't look at it.

A **metadata file** is one JSON object, whose unknown fields are read over. It gets two more, in front:

    {"keptlog-crc32":"8d0f3a11",…}          the CRC-32 of the file without this field
    {…,"keptlog-name-crc32":"5b70ca2f",…}   that of the file's name

A **manifest** and a **manifest list** are Avro: a header and blocks, each followed by a marker of 16 bytes, which the
writer is free to choose. PyIceberg takes random ones. Here it is a hash of the file, with zeros in the marker's places,
and a checksum of its name:

    [ header … marker ][ block … marker ]    marker: "klog2", 7 bytes of BLAKE2b, the name's CRC-32

No name is given twice, so one that does not fit tells that another file was put in this one's place. It is whole, so
nothing else would tell: a purge would take what only the right one names for orphans.

Before format 1.4 the name was not there, and the marker was "klog1" and 11 bytes of the hash. A file of another
program, or of before format 1.1, has nothing of all this. Both are read as before, but for what Iceberg says of them:

- Any file of Avro ends with the marker that its header ends with. One that does not was cut off, and could be read as
  one with fewer entries.
- The name of a manifest list has the number of its snapshot, and so has its header.

A damaged checksum of JSON that does not look like one any more leaves the file like that, and otherwise whole.
"""

from __future__ import annotations

import hashlib
import re
import zlib

from keptlog.table.io.avro import BEGINS, MARKER_BYTES, header_of

_AVRO, _JSON = ".avro", ".metadata.json"
_OURS, _OURS_UNNAMED = b"klog2", b"klog1"
_NAME_BYTES = 4
_FIELD = b'{"keptlog-crc32":"'
_NAME_FIELD = b'{"keptlog-name-crc32":"'
_FIELD_END = b'",'
_DIGITS = 8
_MANIFEST_LIST = re.compile(rb"snap-(\d+)-")
_SNAPSHOT_ID = "snapshot-id"
"""In the header of a manifest list."""
_ANOTHERS = "has the content of another file"


def has_checksum(location: str) -> bool:
    """Whether files with such a name get one."""
    return location.endswith((_AVRO, _JSON)) and not location.endswith(".gz" + _JSON)


def with_checksum(location: str, content: bytes) -> bytes:
    """A file as it is to be stored; what is no Avro and no JSON object stays as it is."""
    name_sum = _crc32(_name(location))
    if location.endswith(_AVRO) and len(content) > MARKER_BYTES:
        marker = content[-MARKER_BYTES:]
        return content.replace(marker, _marker_of(content, _OURS, bytes.fromhex(name_sum.decode())))
    if location.endswith(_JSON) and content.startswith(b'{"'):
        return _with_field(_FIELD, _with_field(_NAME_FIELD, content, name_sum))
    return content


def without_checksum(location: str, content: bytes) -> bytes:
    """A file as it was before ``with_checksum``, or one that has none.

    Raises:
        ValueError: it is not what was written, or not what was written there.
    """
    if location.endswith(_AVRO):
        _require_avro(_name(location), content)
    elif location.endswith(_JSON) and content.startswith(_FIELD):
        stated, content = _without_field(_FIELD, content)
        _require_whole(is_whole=stated == _crc32(content))
        if content.startswith(_NAME_FIELD):
            stated, content = _without_field(_NAME_FIELD, content)
            if stated != _crc32(_name(location)):
                raise ValueError(_ANOTHERS)
    return content


def _require_avro(name: bytes, content: bytes) -> None:
    """Refuse a file of Avro that is not what was written, or not what was written under this name."""
    marker = content[-MARKER_BYTES:]
    if marker.startswith(_OURS):
        name_sum = marker[-_NAME_BYTES:]
        _require_whole(is_whole=marker == _marker_of(content, _OURS, name_sum))
        if name_sum.hex().encode() != _crc32(name):
            raise ValueError(_ANOTHERS)
        return
    if not content.startswith(BEGINS):
        return
    header = header_of(content)
    if marker.startswith(_OURS_UNNAMED):
        _require_whole(is_whole=marker == _marker_of(content, _OURS_UNNAMED))
    else:
        _require_whole(is_whole=header is not None and marker == header.marker)
    named = _MANIFEST_LIST.match(name)
    stated = header.meta.get(_SNAPSHOT_ID, b"") if header else b""
    if named and stated.isdigit() and int(stated) != int(named[1]):
        raise ValueError(f"{_ANOTHERS}, the manifest list of snapshot {stated.decode()}")


def _require_whole(*, is_whole: bool) -> None:
    if not is_whole:
        raise ValueError("does not have the checksum that was written with it")


def _name(location: str) -> bytes:
    return location.rpartition("/")[2].encode()


def _marker_of(content: bytes, begin: bytes, end: bytes = b"") -> bytes:
    blank = content.replace(content[-MARKER_BYTES:], bytes(MARKER_BYTES))
    return begin + hashlib.blake2b(blank, digest_size=MARKER_BYTES - len(begin) - len(end)).digest() + end


def _with_field(field: bytes, content: bytes, value: bytes | None = None) -> bytes:
    """A JSON object with one more field in front, by default the checksum of the object."""
    return field + (value or _crc32(content)) + _FIELD_END + content[1:]


def _without_field(field: bytes, content: bytes) -> tuple[bytes, bytes]:
    """The value of a JSON object's first field, and the object without it."""
    value_end = len(field) + _DIGITS
    return content[len(field) : value_end], b"{" + content[value_end + len(_FIELD_END) :]


def _crc32(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)
