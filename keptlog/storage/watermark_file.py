"""The file with the watermarks of a log's deleted keys (``keptlog.log.watermark``).

Arrow IPC with the columns ``key`` (binary), ``version`` and ``expires_ms`` (int64). Versions of one strategy say
nothing under another one, so the strategy is in the file's schema, and a changed one makes the file void. Other columns
and other metadata of the schema may be a newer keptlog's, and are read over (docs/format.md).
"""

from __future__ import annotations

import pyarrow as pa

from keptlog.errors import LogCorrupt
from keptlog.log.strategy import Strategy
from keptlog.storage.files import Files

WATERMARKS_SCHEMA = pa.schema([("key", pa.binary()), ("version", pa.int64()), ("expires_ms", pa.int64())])
"""A row a key, none null; a log's own are in the order of keys."""
_STRATEGY = b"compaction.strategy"


def read_watermark_file(files: Files, path: str | None, strategy: Strategy) -> pa.Table:
    """The watermarks of this strategy, of ``WATERMARKS_SCHEMA``; none without a file.

    Raises:
        FileNotFoundError: the file is gone.
        LogCorrupt: it has other columns.
    """
    if not strategy.has_versions or path is None:
        return WATERMARKS_SCHEMA.empty_table()
    with files.open_input(path) as source:
        table = pa.ipc.open_file(source).read_all()
    if (table.schema.metadata or {}).get(_STRATEGY) != str(strategy).encode():
        return WATERMARKS_SCHEMA.empty_table()
    known = table.select([name for name in WATERMARKS_SCHEMA.names if name in table.column_names])
    if known.schema.remove_metadata() != WATERMARKS_SCHEMA:
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise LogCorrupt(f"{path} has the columns {found}, not those of watermarks; put the right file back")
    return known.replace_schema_metadata(None)


def write_watermark_file(files: Files, path: str, strategy: Strategy, watermarks: pa.Table) -> None:
    """Store watermarks of this strategy, of ``WATERMARKS_SCHEMA``, at a free path."""
    schema = WATERMARKS_SCHEMA.with_metadata({_STRATEGY: str(strategy).encode()})
    with files.open_output(path) as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(watermarks.replace_schema_metadata(schema.metadata))
