"""The file with the watermarks of a log's deleted keys (``keptlog.log.watermark``).

Arrow IPC with the columns ``key`` (binary), ``version`` and ``expires_ms`` (int64). Versions of one strategy say
nothing under another one, so the strategy is in the file's schema, and a changed one makes the file void. Other columns
and other metadata of the schema may be a newer keptlog's, and are read over (docs/format.md).

Beside the strategy stands a CRC-32 of what the columns and the strategy are: a damaged strategy would make a good file
void, and every deleted key could come back. A file of before format 1.1 has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import LogCorrupt
from keptlog.log.strategy import Strategy
from keptlog.log.told.stored_files import MENDING, give_up_watermarks
from keptlog.storage.crc32 import crc32
from keptlog.storage.damage import damaged, decoded, opened
from keptlog.storage.files import Files

WATERMARKS_SCHEMA = pa.schema([("key", pa.binary()), ("version", pa.int64()), ("expires_ms", pa.int64())])
"""A row a key, none null; a log's own are in the order of keys."""
_STRATEGY = b"compaction.strategy"
_CHECKSUM = b"crc32"


def read_watermark_file(files: Files, path: str | None, strategy: Strategy, topic: str) -> pa.Table:
    """The watermarks of this strategy, of ``WATERMARKS_SCHEMA``; none without a file. ``topic`` is whose they are.

    Raises:
        FileNotFoundError: the file is gone.
        LogCorrupt: it is not what was written, or has other columns.
        OSError: the storage does not give it.
    """
    if not strategy.has_versions or path is None:
        return WATERMARKS_SCHEMA.empty_table()
    with _telling_the_way(topic):
        table = _stored(files, path)
        metadata = table.schema.metadata or {}
        is_made_by_it = metadata.get(_STRATEGY) == str(strategy).encode()
        if _CHECKSUM not in metadata and not is_made_by_it:
            return WATERMARKS_SCHEMA.empty_table()
        watermarks = _checked(table, path)
        return watermarks if is_made_by_it else watermarks.slice(0, 0)


def read_any_watermarks(files: Files, path: str, topic: str) -> tuple[pa.Table, str]:
    """The watermarks of a file of this topic, and the strategy that made them, be it still in use or not.

    They are of ``WATERMARKS_SCHEMA``.

    Raises:
        FileNotFoundError, LogCorrupt, OSError: as ``read_watermark_file`` does.
    """
    with _telling_the_way(topic):
        table = _stored(files, path)
        return _checked(table, path), (table.schema.metadata or {}).get(_STRATEGY, b"").decode()


def last_end_ms(files: Files, path: str, topic: str) -> int:
    """When the last watermark of a file ends, whatever strategy made it; 0 if it has none.

    Raises:
        FileNotFoundError, LogCorrupt, OSError: as ``read_watermark_file`` does.
    """
    return pc.max(read_any_watermarks(files, path, topic)[0]["expires_ms"]).as_py() or 0


@contextmanager
def _telling_the_way(topic: str) -> Iterator[None]:
    """What helps too where the file can't be put back."""
    try:
        yield
    except LogCorrupt as error:
        raise error.reworded(f"{error}, {give_up_watermarks(topic)}") from error


def _stored(files: Files, path: str) -> pa.Table:
    try:
        return _read(files, path)
    except LogCorrupt:
        # Arrow takes a page with status 200 for a part of a large one. What is damaged comes so twice.
        return _read(files, path)


def _read(files: Files, path: str) -> pa.Table:
    with opened(files, path) as source:
        return decoded(source, path, lambda: _whole(source))


def _checked(table: pa.Table, path: str) -> pa.Table:
    metadata = table.schema.metadata or {}
    known = table.select([name for name in WATERMARKS_SCHEMA.names if name in table.column_names])
    if known.schema.remove_metadata() != WATERMARKS_SCHEMA:
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise LogCorrupt(f"{path} has the columns {found}, not those of watermarks; {MENDING}")
    if any(column.null_count for column in known.columns):
        raise damaged(path, "has watermarks without a key, a version or an end")
    if _CHECKSUM in metadata and metadata[_CHECKSUM] != _checksum(known, metadata.get(_STRATEGY, b"")):
        raise damaged(path, "does not have the checksum that was written with it")
    return known.replace_schema_metadata(None)


def write_watermark_file(files: Files, path: str, strategy: Strategy | str, watermarks: pa.Table) -> None:
    """Store watermarks of this strategy, or of one of this text, of ``WATERMARKS_SCHEMA``, at a free path."""
    written_with = str(strategy).encode()
    metadata = {_STRATEGY: written_with, _CHECKSUM: _checksum(watermarks, written_with)}
    schema = WATERMARKS_SCHEMA.with_metadata(metadata)
    with files.open_output(path) as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(watermarks.replace_schema_metadata(schema.metadata))


def _whole(source: pa.NativeFile) -> pa.Table:
    table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    return table


def _checksum(watermarks: pa.Table, strategy: bytes) -> bytes:
    """Of what is stored, not of how: an Arrow of another version may lay the file out otherwise."""
    found = crc32(strategy)
    keys = watermarks["key"]
    for numbers in (pc.binary_length(keys), watermarks["version"], watermarks["expires_ms"]):
        found = crc32(numbers.to_numpy().astype("<i8"), found)
    for chunk in keys.chunks:
        # The bytes of all keys one after the other; an array may be a slice of its buffers.
        offsets = np.frombuffer(chunk.buffers()[1], "<i4")[chunk.offset : chunk.offset + len(chunk) + 1]
        if len(chunk):
            found = crc32(chunk.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]), found)
    return b"%08x" % found
