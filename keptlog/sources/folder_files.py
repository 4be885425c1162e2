"""The files that a folder means: all in and below it that hold records, in the order in which they were written.

    day=8/part-2.parquet, day=8/part-10.parquet, day=10/part-0.jsonl

What is written in several files is numbered, often without zeros before the number. So numbers in names count as
numbers, part by part of the path; by plain text ``part-10`` would come before ``part-2``, and an old value be the
latest. What begins with a zero has a fixed width, and may be no decimal number: ``LOAD0000000A`` comes behind
``LOAD00000009``, and ULIDs go by their text. So from there to the next mark, as ``-`` and ``.``, text decides; but not
where a word follows: ``worker0batch2`` comes before ``worker0batch10``. Ids (UUIDs, MongoDB's, KSUIDs) go by
their text, as they may tell a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from keptlog import folders
from keptlog.disk import not_listed
from keptlog.errors import InvalidConfig
from keptlog.log.words.no_text import GZIP
from keptlog.sources.formats import SUFFIXES, Format, format_of, unpacked_suffix

_OTHER_COMPRESSIONS = {".bz2", ".lz4", ".snappy", ".xz", ".zip", ".zst"}
_OTHERS = {".pq": "Parquet", ".avro": "Avro", ".csv": "CSV", ".orc": "ORC"}
_BEGINNINGS = {b"PAR1": "Parquet", b"PARE": "Parquet", b"Obj\x01": "Avro", b"ORC": "ORC"}
_TAKEN = {"Parquet": (".parquet", "rename it if it is whole, "), "JSON lines": (".jsonl", "")}
"""How names end of what is taken, and what helps one that ends otherwise: a rotated file may be in no order by name."""
_LINES_BEFORE_END = re.compile(
    f"({'|'.join(re.escape(suffix) for suffix, kind in SUFFIXES.items() if kind is Format.JSONL)})(?![0-9a-z])",
    re.IGNORECASE,
)
"""In ``a.jsonl.1``, ``a.jsonl-20261130.gz`` and ``a.json.bak``."""
_HEAD_BYTES = 64
_BEFORE_LINES = b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"
"""Byte order marks, and what else may stand before the first line."""
_TABLES = {
    "_delta_log": "a Delta table",
    ".hoodie": "a Hudi table",
    "_spark_metadata": "the folder of a Spark stream",
}
"""What a folder is that has one of this name in it."""
_ICEBERG_METADATA = re.compile(r"(v[0-9]+|[0-9]{5,}-.*)(\.gz)?\.metadata\.json(\.gz)?")
_FIXED_OR_NUMBER = re.compile(
    r"(?<![0-9A-Za-z])(?P<id>[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|[4-7][0-9a-f]{23}|(?![0-9]{32})[0-9a-f]{32}"
    r"|(?![0-9]{8})(?=[0-9a-z]*[A-Z])(?=[0-9A-Z]*[a-z])[0-9][0-9A-Za-z]{26})(?![0-9A-Za-z])"
    r"|0([0-9A-Z]*|[0-9a-f]*|[0-9A-Za-z]{25})(?![0-9A-Za-z])"
    r"|0[0-9]*|[1-9][0-9]*"
)
"""Ids (UUIDs, MongoDB's, UUIDs without marks, KSUIDs), what begins with a zero (hexadecimal numbers, and ULIDs, of 26
characters), and numbers.

What only has the length of an id is none, or the tenth of ``20261130customerchangelog10.jsonl`` would come behind all
other days: MongoDB's begin with the seconds of 2004 to 2038, and KSUIDs mix small letters and capitals.
"""


def files_in(folder: Path) -> list[str]:
    """The files of a folder and those below it; hidden ones, and those that begin with ``_``, are marks of its writer.

    But ``_day=8`` is the partition of a column with that name, as Spark takes it too.

    Raises:
        InvalidConfig: it has none, or one that can't be taken, or is that of a table.
        StorageUnavailable: it can't be listed, so that files would be left out.
    """
    try:
        listed = [(Path(parent), names) for parent, names in folders.entries_below(str(folder), _is_no_mark)]
        table = next(filter(None, (_table_at(*each) for each in [*listed, *_metadata_beside(folder)])), None)
    except OSError as error:
        instead = ", or name the files that are meant; nothing was appended"
        raise not_listed(folder, error, "and its records would be left out", instead) from error
    if table:
        raise InvalidConfig(
            f"{table}, and its folder may keep files that do not count any more, or never did: write its rows as "
            "Parquet files, or name the files that are meant; nothing was appended"
        )
    below = (parent / name for parent, names in listed for name in names if _is_no_mark(name))
    unmarked = sorted(below, key=in_order)
    for path in unmarked:
        why, mend = _why_left_out(path)
        if why:
            raise InvalidConfig(
                f"{path} {why}, so its records would be left out: {mend}take it away, or name the files and folders "
                "that are meant; nothing was appended"
            )
    found = [str(path) for path in unmarked if format_of(path.name)]
    if not found:
        raise InvalidConfig(f"folder {folder} has no files that end with {', '.join(SUFFIXES)}: name files instead")
    return found


def _table_at(folder: Path, names: Iterable[str]) -> str | None:
    """That a folder is one of a table, or of its metadata; null if it is not."""
    if folder.name == "metadata" and any(map(_ICEBERG_METADATA.fullmatch, names)):
        return f"{folder.parent} is an Iceberg table"
    return next((f"{folder} is {what}" for mark, what in _TABLES.items() if (folder / mark).is_dir()), None)


def _metadata_beside(folder: Path) -> list[tuple[Path, list[str]]]:
    """Iceberg's own, where only the data of a table is meant; what can't be listed beside it has no records to miss."""
    found = folder.resolve()
    beside = found.parent / "metadata"
    try:
        return [(beside, folders.names_in(beside))] if found.name == "data" else []
    except OSError:
        return []


def in_order(path: Path) -> list[str]:
    """A key for sorting, one text for each part: a folder may have very many files."""
    return [_FIXED_OR_NUMBER.sub(_with_length, part) for part in path.parts]


def _with_length(found: re.Match[str]) -> str:
    """A number, behind what begins with a zero: of two the longer one is the larger."""
    text = found[0]
    return text if text[0] == "0" or found["id"] else f"1{chr(len(text))}{text}"


def _why_left_out(path: Path) -> tuple[str, str]:
    """Why a file in a folder is not taken that seems to hold records, and what helps; empty if it is no such."""
    if path.is_dir():
        return "is a link to a folder, which is not followed", ""
    if format_of(path.name):
        return "" if path.is_file() else "leads to no file", ""
    is_packed = path.suffix.lower() in _OTHER_COMPRESSIONS
    is_of_lines = bool(_LINES_BEFORE_END.search(path.name))
    if is_packed and (is_of_lines or format_of(path.stem)):
        return "is compressed otherwise than with gzip", ""
    try:
        other = _other_format(path, path.stem if is_packed else path.name)
    except OSError as error:
        # One whose name ends otherwise is for people, more often than not.
        return ("", "") if path.suffix and not is_of_lines else (f"can't be read ({error.strerror})", "")
    if other in _TAKEN:
        suffix, mend = _TAKEN[other]
        return f"seems to be {other}, but its name does not end with {suffix}", mend
    return (f"seems to be {other}, which is not taken", "write it as JSON lines or Parquet, ") if other else ("", "")


def _other_format(path: Path, name: str) -> str | None:
    """What a file holds whose name does not end as those that are taken; null if nobody knows.

    Hive's have no suffix, and what is being written, or was rotated, often ends otherwise. Sums that lie beside a file
    (``a.jsonl.md5``) do not begin as records do.
    """
    other = _OTHERS.get(unpacked_suffix(name))
    if other and (path.is_file() or path.is_symlink()):
        return other
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    may_be_lines = head.startswith(GZIP) or head.lstrip(_BEFORE_LINES).startswith((b"{", b"null"))
    if may_be_lines and _LINES_BEFORE_END.search(name):
        return "JSON lines"
    return next((what for beginning, what in _BEGINNINGS.items() if head.startswith(beginning)), None)


def _is_no_mark(name: str) -> bool:
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)
