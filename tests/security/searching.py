"""Looks for planted secrets, wherever somebody who may not know them could read them.

A secret is looked for as it is, as it stands in a URL, and in base64; in files also where they are compressed, and in a
database in every column of every table. What is found is told by the secret's name and the place, never by its text.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

Secrets = Mapping[str, str]
"""What a secret is called, and its text."""
_PARTS = "@/:"
_TELLING = 6
"""The characters from which on the rest of a secret is not in every other text by chance."""


def forms(secret: str) -> set[bytes]:
    """How a secret may stand somewhere; also what is left of it where a program has cut it at a sign that it takes for
    the end of a password."""
    rests = (secret[at + 1 :] for at, sign in enumerate(secret) if sign in _PARTS)
    tails = {rest for rest in rests if len(rest) >= _TELLING}
    texts = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), *tails}
    return {text.encode() for text in texts} | {base64.b64encode(secret.encode()).rstrip(b"=")}


def found_in(content: bytes | str, secrets: Secrets) -> list[str]:
    """The names of the secrets that stand in a text, or in what it becomes when it is decompressed."""
    raw = content.encode() if isinstance(content, str) else content
    contents = [raw, *_decompressed(raw)]
    return [
        name for name, secret in secrets.items() if any(form in each for form in forms(secret) for each in contents)
    ]


def found_in_files(folder: Path, secrets: Secrets) -> list[str]:
    """The files below a folder that hold one."""
    return _told(((str(path), content) for path, content in contents_below(folder)), secrets)


def contents_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All files below a folder, but those that whoever is at work there takes away meanwhile."""
    for where, _, names in os.walk(folder):
        for path in (Path(where, name) for name in sorted(names)):
            with contextlib.suppress(FileNotFoundError):
                yield path, path.read_bytes()


def found_in_database(connection: Any, secrets: Secrets) -> list[str]:
    """The columns of a PostgreSQL or SQLite database that hold one; ``connection`` is one of the Python DB API."""
    return _told(_cells(connection), secrets)


def found_in_command_lines(pids: Iterable[int], secrets: Secrets) -> list[str]:
    """The processes that were started with one in sight of everybody on the machine."""
    return _told(_command_lines(pids), secrets)


def descendants(pids: Iterable[int]) -> set[int]:
    """These processes, and all that they have started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _command_lines(pids: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    for pid in pids:
        with contextlib.suppress(OSError):
            yield f"the command line of {pid}", Path(f"/proc/{pid}/cmdline").read_bytes()


def _cells(connection: Any) -> Iterator[tuple[str, bytes]]:
    cursor = connection.cursor()
    is_sqlite = type(connection).__module__.startswith("sqlite3")
    listing = (
        "select name from sqlite_master where type = 'table'"
        if is_sqlite
        else "select table_name from information_schema.tables where table_schema = 'public'"
    )
    cursor.execute(listing)
    for (table,) in cursor.fetchall():
        cursor.execute(f'select * from "{table}"')  # noqa: S608  # tables of the database itself
        names = [column[0] for column in cursor.description]
        for row in cursor.fetchall():
            for name, value in zip(names, row, strict=True):
                yield f"{table}.{name}", bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _told(places: Iterable[tuple[str, bytes]], secrets: Secrets) -> list[str]:
    return sorted({f"{name} in {place}" for place, content in places for name in found_in(content, secrets)})


def _decompressed(content: bytes) -> list[bytes]:
    for unpack in (gzip.decompress, zlib.decompress):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return [unpack(content)]
    return []
