"""The lines of a file that holds text, whatever it was packed in, and words for what is no such file.

gzip, by its first bytes and not by its name      unpacked
a byte order mark before UTF-8                    put aside
UTF-16, zeros, Parquet, other compressions        refused, with what to do
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import BinaryIO, cast

from keptlog.errors import InvalidRecord
from keptlog.log.words.no_text import GZIP, HEAD_BYTES, why_no_text

_BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
SAY_PARQUET = ": say --format parquet, or let its name end with .parquet"
PIPED_PARQUET = ", which can't be read from standard input or a pipe, its end comes first: name a file"
NO_EVENTS = ", and change events are read from JSON lines only: write it as these"


def lines_of(raw: BinaryIO, if_parquet: str = SAY_PARQUET) -> Iterator[bytes]:
    """The lines of an open file, unpacked; ``if_parquet`` is what else to say of one that is Parquet.

    Raises:
        InvalidRecord: it holds no text, or text that is not UTF-8's.
        OSError, EOFError, zlib.error: it can't be read to its end.
    """
    buffered = cast("io.BufferedReader", raw if hasattr(raw, "peek") else io.BufferedReader(cast("io.RawIOBase", raw)))
    head = buffered.peek(HEAD_BYTES)[:HEAD_BYTES]
    if head.startswith(GZIP):
        with gzip.open(buffered) as unpacked:
            yield from lines_of(cast("BinaryIO", unpacked), if_parquet)
        return
    if head == _PARQUET:
        raise InvalidRecord(f"it is Parquet{if_parquet}")
    if why := why_no_text(head):
        raise InvalidRecord(why)
    for number, line in enumerate(buffered):
        yield line if number else line.removeprefix(_BOM)


_BEGINS_JSON = ("{", "[", '"')
_OF_CONSOLE = re.compile(r"(?:(?:CreateTime|LogAppendTime|Partition|Offset|Epoch):-?\d+|NO_TIMESTAMP|NO_HEADERS)\t")
"""What console-consumer writes before a key, if it is to print more of a record."""


def why_no_json(line: str, error: JSONDecodeError) -> str:
    """What is wrong with a line that is no JSON, and what it may be instead."""
    told = f"not JSON: {error.msg} at column {error.colno}"
    text = line.strip()
    if text.startswith(("{", "[")) and error.pos >= len(line.rstrip()):
        return f"{told}; a record is one line, and this one does not end in it: write each in one (jq -c . FILE)"
    if _is_after_key(line, error):
        return f"{told}; if a key stands before its value, write both in one object (kcat -J does)"
    if error.msg == "Extra data" and text.startswith("{") and line[error.pos :].startswith("{"):
        return f"{told}; if several objects stand in one line, write each in its own (jq -c . FILE)"
    if not text.startswith(_BEGINS_JSON) and any(mark in text for mark in ",;\t"):
        return f"{told}; if these are columns, as in CSV: JSON lines or Parquet are taken, so convert it"
    return told


def _is_after_key(line: str, error: JSONDecodeError) -> bool:
    """Whether a key and a tab stand before a value; a table's lines have more tabs, and may have JSON in a column."""
    if error.msg == "Extra data" and line[: error.pos].endswith("\t"):
        value = line[error.pos :]
        return value.startswith("{") or "\t" not in value
    text = line.strip()
    # Most keys are text, which is no JSON by itself, and a UUID may begin as a number.
    value = text.partition("\t")[2]
    is_value = value.startswith("{") or value == "null"
    is_value = is_value or (bool(_OF_CONSOLE.match(text)) and ("\t{" in text or text.endswith("\tnull")))
    return is_value and not text.startswith(_BEGINS_JSON)
