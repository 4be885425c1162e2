"""Homes as archives: packed where they were written, unpacked at any other place.

The catalog and Iceberg's metadata name files by their whole path, so a home can't just be moved. Here it can, because
the paths of a home always have the same length: a home lies in a folder whose name is padded until it does.

    where it is written   /somewhere/else/home______________________   \\
    in the archive        /frozen-home______________________________    }  all of PATH_BYTES
    where it is read      /of/a/test/home___________________________   /

To move it is then to replace these bytes by those, wherever they are: no length and no position changes in SQLite's
pages, in JSON, in Avro's strings. Nothing has to know a schema, so what is read is what was written, and no writer of
today comes between. Two things need a little more: Avro's blocks are compressed, so they are opened and closed again,
and an entry of the cache, or since format 1.1 a table's own file, has a checksum. Compressed again, a manifest may take
a few bytes more or less than its manifest list says, which is only told on, in the bytes of a purge.

Sealed receipts stay as they were written, byte for byte, because they are signed: the paths in them are those of where
that was, as they are in a home that somebody has moved. What was for its owner alone, a key or a secret, still is.
"""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from pathlib import Path

from keptlog.table.io.metadata_checksums import has_checksum, with_checksum, without_checksum
from keptlog.table.namespaces import RECEIPTS
from tests.older_checksums import with_unnamed_checksum

PATH_BYTES = 200
_NOWHERE = b"/frozen-home".ljust(PATH_BYTES, b"_")
_MTIME_SECONDS = 1_700_000_000
"""When all files of all homes were written; purges go by it."""

_OF_OTHERS = 0o077


def home_in(folder: Path) -> Path:
    """Where a home may lie in this folder, so that it can be packed or was unpacked."""
    missing = PATH_BYTES - len(os.fsencode(folder)) - 1
    if missing < len("home") or not str(folder).isascii() or {'"', "\\"} & set(str(folder)):
        raise ValueError(f"{folder} is too long for a frozen home, or no plain ASCII: set TMPDIR to another folder")
    return folder / "home".ljust(missing, "_")


def pack(home: Path, archive: Path) -> None:
    """Put a home into an archive that says nothing of the machine and the time."""
    with tarfile.open(archive, "x:xz", preset=9) as tar:
        for path in sorted(each for each in home.rglob("*") if each.is_file()):
            content = _moved(path.relative_to(home), path.read_bytes(), os.fsencode(home), _NOWHERE)
            entry = tarfile.TarInfo(str(path.relative_to(home)))
            entry.size, entry.mtime = len(content), _MTIME_SECONDS
            entry.mode = 0o644 if path.stat().st_mode & _OF_OTHERS else 0o600
            tar.addfile(entry, io.BytesIO(content))


def unpack(archive: Path, folder: Path) -> Path:
    """The home of an archive, ready to be opened, in this folder."""
    home = home_in(folder)
    with tarfile.open(archive) as tar:
        tar.extractall(home, filter="data")
    for path in (each for each in home.rglob("*") if each.is_file()):
        path.write_bytes(_moved(path.relative_to(home), path.read_bytes(), _NOWHERE, os.fsencode(home)))
        os.utime(path, (_MTIME_SECONDS, _MTIME_SECONDS))
    return home


def _moved(name: Path, content: bytes, before: bytes, after: bytes) -> bytes:
    """A file's content with the home at another place, and with a checksum if it had one."""
    if name.parts[:2] == ("warehouse", RECEIPTS) and "receipts" in name.parts:
        return content
    if has_checksum(name.name):
        plain = without_checksum(name.name, content)
        moved = _moved_avro(plain, before, after) if name.suffix == ".avro" else plain.replace(before, after)
        forms = (with_checksum, with_unnamed_checksum)
        summed = next((each for each in forms if each(name.name, plain) == content), lambda _, unsummed: unsummed)
        return summed(name.name, moved)
    content = content.replace(before, after)
    if name.parts[0] == "cache":
        _, newline, entry = content.partition(b"\n")
        return b"%08x" % zlib.crc32(entry) + newline + entry
    return content


def _moved_avro(content: bytes, before: bytes, after: bytes) -> bytes:
    """Avro: a header, then blocks of a count, a size and as many compressed bytes; behind each the same 16 bytes."""
    sync = content[-16:]
    header, *blocks, end = content.split(sync)
    if end or b"\x14avro.codec\x0edeflate" not in header:
        raise ValueError("not the Avro that homes have")
    return sync.join([header, *(_moved_block(block, before, after) for block in blocks), b""])


def _moved_block(block: bytes, before: bytes, after: bytes) -> bytes:
    count_end = _varint_end(block, 0)
    packed = block[_varint_end(block, count_end) :]
    entries = zlib.decompressobj(-15).decompress(packed).replace(before, after)
    closing = zlib.compressobj(wbits=-15)
    packed = closing.compress(entries) + closing.flush()
    return block[:count_end] + _varint(len(packed)) + packed


def _varint_end(data: bytes, start: int) -> int:
    """Where the number that begins here ends."""
    while data[start] & 0x80:
        start += 1
    return start + 1


def _varint(number: int) -> bytes:
    """A number that is not negative, as Avro writes it: zigzag, seven bits a byte."""
    number, written = number << 1, b""
    while number > 0x7F:
        number, written = number >> 7, written + bytes([number & 0x7F | 0x80])
    return written + bytes([number])
