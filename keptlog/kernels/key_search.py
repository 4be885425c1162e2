"""Looks one file through for keys, whatever file it is: live or not, whole or half written, ours or somebody else's.

What a file is, its content says and not its name, for an orphan may lie anywhere:

    PAR1 …        Parquet   its column ``key``; where other columns than a segment's are, something may be in those
    ARROW1 …      Arrow     every column of bytes: watermarks, and the maps and lists that runs hand on
    ff ff ff ff … Arrow     the same, as streams one after the other
    Obj 1 …       Avro      a manifest; keptlog writes no bounds of keys or values into it, other programs may
    { or [        JSON      where only keptlog and Iceberg write JSON: names, numbers and paths; a key only where
                            another program has partitioned by key
    1f 8b …       gzip      the same, as other programs may write a table's metadata
    nothing       empty

Whatever else there is was not looked at. Neither is the rest of a file that turns out to be broken: what was found
before that counts.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from keptlog.errors import InvariantViolated, KeptlogError, first_line
from keptlog.foreign_json import json_value
from keptlog.kernels.wanted_keys import FOUND_SCHEMA, KeyFinder, as_binary, hits_of
from keptlog.log.search import FileFindings, FileKind, SearchedFile
from keptlog.log.segment_path import partition_in
from keptlog.log.told.stored_files import MENDING
from keptlog.storage.damage import decoded
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_reader import opened_segment

_MAGIC_BYTES = 6
_STRANGE = "keptlog does not know this kind of file: look at it"
_DAMAGED = "it is damaged, or is not what its name says: put back one that is whole, or look at it"
_NAMED = (
    "keptlog does not know this kind of file, and the table names it: have whoever made it take it out of the table "
    "(statistics go in a purge with their snapshot)"
)
_EMPTY = f"it is empty, and the topic needs it; {MENDING}"
_NO_KEY = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_null)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower or upper bound in a manifest of a column of bytes."""

    column: str
    content: bytes
    is_whole: bool = False
    """Whether it is known that nothing was cut off; no length tells it, for each table may cut at another one."""


BoundsOf = Callable[[bytes], Iterable[Bound]]
"""Gives the bounds that an Avro or JSON file has of columns that hold keys or values; raises ValueError if it is none.

Pickles. The table brings it, for only the table knows Iceberg.
"""


@dataclass
class _Look:
    """What is known of a file so far."""

    kind: FileKind
    found: list[pa.Table]
    records: int = 0
    problem: str | None = None


@dataclass
class FileSearch:
    """Looks files through, one after the other, in one task."""

    files: Files
    finder: KeyFinder
    bounds_of: BoundsOf | None

    def search(self, file: SearchedFile) -> FileFindings:
        """Look one file through; that it can't be is what is found, and not raised."""
        look, is_gone = _Look(FileKind.UNKNOWN, []), False
        try:
            with self.files.open_input(file.path) as source:
                self._look(file, source, look)
        except FileNotFoundError:
            is_gone = True
        except InvariantViolated:
            raise
        except KeptlogError as error:
            look.problem = _said_of(file, error)
        except (OSError, ValueError, pa.ArrowException) as error:
            look.problem = f"it can't be read: {first_line(error)}"
        hits = tuple(hits_of(look.found, self.finder.wanted))
        return FileFindings(file, look.kind, hits, look.problem, is_gone, look.records)

    def _look(self, file: SearchedFile, source: pa.NativeFile, look: _Look) -> None:
        size_bytes = source.size()
        magic = bytes(source.read_at(min(size_bytes, _MAGIC_BYTES), 0))
        if not magic:
            look.kind = FileKind.EMPTY
            look.problem = _EMPTY if file.is_needed else None
        elif magic.startswith(b"PAR1"):
            look.kind = FileKind.SEGMENT
            self._look_at_segment(file, source, look)
        elif magic.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
            look.kind = FileKind.ARROW
            self._look_at_arrow(file, source, look)
        elif magic.startswith(b"Obj\x01"):
            look.kind = FileKind.MANIFEST
            self._look_at_bounds(bytes(source.read_at(size_bytes, 0)), look)
        elif magic.startswith((b"{", b"[")) and file.is_metadata:
            look.kind = FileKind.METADATA
            self._look_at_json(bytes(source.read_at(size_bytes, 0)), look)
        elif magic.startswith(b"\x1f\x8b") and file.is_metadata:
            look.kind = FileKind.METADATA
            self._look_at_json(_unpacked(bytes(source.read_at(size_bytes, 0))), look)
        else:
            look.problem = _NAMED if file.is_needed else _unknown(file)

    def _look_at_segment(self, file: SearchedFile, source: pa.NativeFile, look: _Look) -> None:
        with opened_segment(source, file.path) as opened:
            columns = opened.schema.names
            if set(columns) != set(SCHEMA.names):
                look.problem = f"another program wrote it, with the columns {', '.join(columns)}"
            for row_group, records in enumerate(opened.row_groups if "key" in columns else ()):
                found = self.finder.found_in(opened, row_group)
                look.records += records
                if found.num_rows:
                    look.found.append(found)

    def _look_at_arrow(self, file: SearchedFile, source: pa.NativeFile, look: _Look) -> None:
        partition = partition_in(file.path)
        for batch in _arrow_batches(file, source):
            for column in batch.schema:
                if any(holds_none(column.type) for holds_none in _NO_KEY):
                    continue
                which = self.finder.which(as_binary(pa.chunked_array([batch.column(column.name)])))
                look.records += batch.num_rows
                if which is not None:
                    look.found.append(_found_in_batch(batch, which, partition))

    def _look_at_json(self, content: bytes, look: _Look) -> None:
        if self.bounds_of is None:
            json_value(content)
        else:
            self._look_at_bounds(content, look)

    def _look_at_bounds(self, content: bytes, look: _Look) -> None:
        if self.bounds_of is None:
            look.problem = "nobody has said how manifests are read"
            return
        for bound in self.bounds_of(content):
            look.records += 1
            which = None
            if bound.column == "key":
                which = self.finder.which(pa.chunked_array([pa.array([bound.content], pa.binary())]))
            if which is not None:
                look.found.append(_found_in_batch(pa.record_batch([[0]], ["row"]), which, None))
            elif bound.column != "key" or not bound.is_whole:
                look.problem = (
                    f"another program wrote it, with bounds of {bound.column}s in it, which can't be told by a hash"
                )


def _unknown(file: SearchedFile) -> str:
    """What to do about a file of an unknown kind that the table does not need."""
    todo = "delete it if nobody else needs it" if file.is_elsewhere else "move it out of the topic's folder"
    return f"{_DAMAGED if file.is_metadata else _STRANGE}, and {todo}"


def _unpacked(content: bytes) -> bytes:
    """What was compressed with gzip.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _arrow_batches(file: SearchedFile, source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file, or of Arrow streams one after the other, each whole and valid.

    Raises:
        LogCorrupt: it can't be decoded.
        OSError: the storage does not give it.
    """
    if bytes(source.read_at(_MAGIC_BYTES, 0)) == b"ARROW1":
        reader = decoded(source, file.path, lambda: pa.ipc.open_file(source))
        for number in range(reader.num_record_batches):
            yield decoded(source, file.path, partial(_batch, reader, number))
        return

    def of_streams() -> list[pa.RecordBatch]:
        source.seek(0)
        batches = []
        while source.tell() < source.size():
            batches += [_valid(batch) for batch in pa.ipc.open_stream(source)]
        return batches

    yield from decoded(source, file.path, of_streams)


def _batch(reader: pa.RecordBatchFileReader, number: int) -> pa.RecordBatch:
    return _valid(reader.get_batch(number))


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    return batch


def _found_in_batch(batch: pa.RecordBatch, which: pa.ChunkedArray, partition: int | None) -> pa.Table:
    """The rows of wanted keys, of ``FOUND_SCHEMA``; maps and watermarks have no values, and watermarks no offsets."""
    rows = pa.table({"row": pa.array(range(batch.num_rows), pa.int64()), "which": which})
    has_offsets = "offset" in batch.schema.names
    offsets = batch.column("offset") if has_offsets else pa.nulls(batch.num_rows, pa.int64())
    rows = rows.append_column("offset", offsets)
    rows = rows.append_column("partition", pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows))
    rows = rows.append_column("has_value", pa.repeat(pa.scalar(value=False), batch.num_rows))
    return rows.filter(rows["which"].is_valid()).cast(FOUND_SCHEMA)


def _said_of(file: SearchedFile, error: KeptlogError) -> str:
    """An error of a file in the words of a finding, which names the file itself."""
    return first_line(error).removeprefix(f"{file.path} ").removesuffix(f"; {MENDING}")
