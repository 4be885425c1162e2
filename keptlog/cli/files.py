"""``keptlog files``: the live segments of a topic, for engines that read Parquet and know no catalog.

All of one snapshot, and with the log start offsets that belong to it. A log start may lie inside a segment; what the
segment still holds below it is deleted for every reader, so an engine that reads the file itself must leave it out:

    segment   [ 4, 7, 9, 11 ]       log start 9: records 4 and 7 are not read

``--duckdb`` prints a view that does that by itself. The files are those of now: once a clean has replaced them and a
purge has deleted them, the command has to be asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from keptlog.cli.arguments import topic_or_log_argument
from keptlog.cli.output import json_option, print_json, require_stdout
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig
from keptlog.log.segment import Log, Segment
from keptlog.passes.names import topic_and_partition
from keptlog.table.io.files import local_path

_DUCKDB_COLUMNS = {
    "partition": "INTEGER",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_type": "INTEGER",
    "key": "BLOB",
    "value": "BLOB",
    "headers": 'STRUCT("key" VARCHAR, "value" BLOB)[]',
    "delete_horizon": "TIMESTAMPTZ",
}
"""A view of a topic without a segment has them too."""


@click.command(short_help="Print the paths of the live segments, for other engines.")
@topic_or_log_argument
@click.option("--duckdb", is_flag=True, help="Print SQL that makes a view TOPIC of them in DuckDB.")
@json_option
def files(topic: str, *, duckdb: bool, as_json: bool) -> None:
    """Print the paths of the live segments of a topic, or of one of its logs, by partition and offset, one a line.

    Records below the log start offset may still be in the first segment of a partition: --json says where each
    partition starts, the view of --duckdb begins there.

    \b
    { keptlog files users --duckdb; echo "SELECT count(*) FROM users"; } | duckdb
    """
    if duckdb and as_json:
        raise InvalidConfig("--duckdb prints SQL and --json prints JSON: choose one")
    require_stdout("paths")
    store = unopened_store()
    name, partition = topic_and_partition(store, topic)
    logs = store.readable_logs(name, partition)
    if duckdb:
        click.echo(_duckdb_view(topic, logs))
    elif as_json:
        found = [_file_row(log, segment) for log in logs for segment in _readable(log)]
        starts = {str(log.topic_partition): log.log_start_offset for log in logs}
        print_json({"topic": name, "log_start_offsets": starts, "files": found})
    else:
        for path in _paths(logs):
            click.echo(path)


def _readable(log: Log) -> list[Segment]:
    return [segment for segment in log.segments if segment.last_offset >= log.log_start_offset]


def _paths(logs: Sequence[Log]) -> list[str]:
    return [_plain(segment) for log in logs for segment in _readable(log)]


def _plain(segment: Segment) -> str:
    return local_path(segment.path) or segment.path


def _file_row(log: Log, segment: Segment) -> dict[str, object]:
    return {
        "path": _plain(segment),
        "topic_partition": str(log.topic_partition),
        "base_offset": segment.base_offset,
        "last_offset": segment.last_offset,
        "records": segment.record_count,
        "bytes": segment.size_bytes,
    }


def _duckdb_view(topic: str, logs: Sequence[Log]) -> str:
    """Partitions that start inside a segment are cut there; names of folders like ``partition=0`` are no columns."""
    paths = _paths(logs)
    if not paths:
        columns = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in _DUCKDB_COLUMNS.items())
        return f'CREATE OR REPLACE VIEW "{topic}" AS SELECT {columns} WHERE false;'
    listed = ",\n  ".join(f"'{path.replace(chr(39), chr(39) * 2)}'" for path in paths)
    starts = [
        f"WHEN {log.topic_partition.partition} THEN {log.log_start_offset}"
        for log in logs
        if any(segment.base_offset < log.log_start_offset for segment in _readable(log))
    ]
    where = f'\nWHERE "offset" >= CASE partition {" ".join(starts)} ELSE 0 END' if starts else ""
    source = f"read_parquet([\n  {listed}\n], hive_partitioning = false)"
    return f'CREATE OR REPLACE VIEW "{topic}" AS SELECT * FROM {source}{where};'  # noqa: S608  # its parts are checked or quoted
