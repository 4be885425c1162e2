"""The lines of a file that holds text, whatever it was packed in, and words for what is no such file.

gzip, by its first bytes and not by its name      unpacked
a byte order mark before UTF-8                    put aside
UTF-16, zeros, Parquet, other compressions        refused, with what to do
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from json import JSONDecodeError
from typing import BinaryIO, cast

from keptlog.errors import InvalidRecord

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF_16 = "it is UTF-16: write it as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)"
_REFUSED = {
    b"PAR1": "it is Parquet: say --format parquet, or let its name end with .parquet",
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd: unpack it (zstd -dc FILE), or compress it with gzip",
    b"BZh": "it is compressed with bzip2: unpack it (bzip2 -dc FILE), or compress it with gzip",
    b"\xfd7zX": "it is compressed with xz: unpack it (xz -dc FILE), or compress it with gzip",
    b"PK\x03\x04": "it is a zip archive: unpack it",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
_HEAD_BYTES = 4


def lines_of(raw: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file, unpacked.

    Raises:
        InvalidRecord: it holds no text, or text that is not UTF-8's.
        OSError, EOFError, zlib.error: it can't be read to its end.
    """
    buffered = cast("io.BufferedReader", raw if hasattr(raw, "peek") else io.BufferedReader(cast("io.RawIOBase", raw)))
    head = buffered.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if head.startswith(_GZIP):
        with gzip.open(buffered) as unpacked:
            yield from lines_of(cast("BinaryIO", unpacked))
        return
    for beginning, why in _REFUSED.items():
        if head.startswith(beginning):
            raise InvalidRecord(why)
    if b"\0" in head[:2]:
        raise InvalidRecord(_UTF_16 if head[:2].strip(b"\0") else "it begins with zeros, and so is no text")
    for number, line in enumerate(buffered):
        yield line if number else line.removeprefix(_BOM)


def why_no_json(line: str, error: JSONDecodeError) -> str:
    """What is wrong with a line that is no JSON, and what it may be instead."""
    told = f"not JSON: {error.msg} at column {error.colno}"
    text = line.strip()
    if text.startswith(("{", "[")) and error.pos >= len(line.rstrip()):
        return f"{told}; a record is one line, and this one does not end in it: write each in one (jq -c . FILE)"
    if not text.startswith(("{", "[", '"')) and any(mark in text for mark in ",;\t"):
        return f"{told}; if these are columns, as in CSV: JSON lines or Parquet are taken, so convert it"
    return told
