"""Checksums of a whole segment file, in its own footer.

Parquet has a checksum for every page, and none for what says where the pages lie: headers, footer. So a segment has two
of its own besides, a CRC-32 each, as a value of the footer's key-value metadata that other readers take no notice of:

    [ pages, with their headers        ][ footer: … keptlog.crc32 = "8d0f3a11 5be0c2d4" … ][ length ][ PAR1 ]
      8d0f3a11: all bytes before the footer    5be0c2d4: all bytes from the footer on, with zeros in its own place

The second is checked whenever a segment is opened, the first by whoever reads every byte. A segment without them was
written before format 1.1; one whose key was damaged looks like that, and is otherwise whole.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from keptlog.storage.crc32 import crc32

_KEY = "keptlog.crc32"
_DIGITS = 8
_BLANK = "0" * _DIGITS
_VALUE = f"{_BLANK} {_BLANK}"
METADATA = {_KEY: _VALUE}
"""What the footer must be given as key-value metadata before it is written."""
_STRING = 0x18
"""How a text begins in the footer (Thrift's compact protocol), before its length."""
_MARK = bytes([_STRING, len(_KEY)]) + _KEY.encode() + bytes([_STRING, len(_VALUE)])
_LENGTH_AND_MAGIC_BYTES = 8


class ChecksumSink:
    """What pyarrow writes a segment to: bytes go through and are counted in, the footer is held back until it has them.

    A file as Python knows them, so that ``pa.PythonFile`` takes it. Whoever opened ``sink`` closes it.
    """

    closed = False

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self._pages = 0
        self._footer: bytearray | None = None

    def write(self, data: Any) -> int:
        if self._footer is None:
            self._pages = crc32(data, self._pages)
            self._sink.write(data)
        else:
            self._footer += data
        return len(data)

    def tell(self) -> int:
        return int(self._sink.tell()) + len(self._footer or b"")

    def flush(self) -> None:
        """Nothing waits here but the footer."""

    def close(self) -> None:
        """The sink stays open."""

    def hold_footer(self) -> None:
        """What comes from here on is the footer."""
        self._footer = bytearray()

    def write_footer(self) -> None:
        """Put the checksums into the footer, and pass it on."""
        footer = self._footer or bytearray()
        place = footer.rindex(_MARK) + len(_MARK)
        footer[place : place + _DIGITS] = b"%08x" % self._pages
        footer[_own_place(place)] = b"%08x" % crc32(footer)
        self._sink.write(bytes(footer))


def pages_checksum(footer: bytes) -> int | None:
    """The checksum of all bytes before a footer, which has its length and the magic bytes at its end; null without one.

    Raises:
        ValueError: the footer is not what was written.
    """
    # Statistics stand before the metadata and may hold any text, even this one.
    place = footer.rfind(_MARK)
    if place < 0:
        return None
    place += len(_MARK)
    without_own = bytearray(footer)
    without_own[_own_place(place)] = _BLANK.encode()
    if footer[_own_place(place)] != b"%08x" % crc32(without_own):
        raise ValueError("its footer does not have the checksum that was written with it")
    return int(footer[place : place + _DIGITS], 16)


def checksums_text(footer: bytes) -> str | None:
    """Both checksums as they stand in a footer, ``8d0f3a11 5be0c2d4``; null without one."""
    place = footer.rfind(_MARK)
    text = footer[place + len(_MARK) :][: len(_VALUE)]
    return text.decode() if place >= 0 and text.isascii() else None


def footer_bytes(end_of_file: bytes) -> int:
    """How long a footer is, with its length and the magic bytes, from the last bytes of its file."""
    return int.from_bytes(end_of_file[-8:-4], "little") + _LENGTH_AND_MAGIC_BYTES


def _own_place(place: int) -> slice:
    """Where the footer's own checksum stands, if the pages' begins at ``place``."""
    return slice(place + _DIGITS + 1, place + 2 * _DIGITS + 1)
