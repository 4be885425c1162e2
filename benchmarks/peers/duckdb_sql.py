"""DuckDB: one query from Parquet to Parquet, as its users write it; the best of three counts.

row_number   QUALIFY over a window
semi_join    the offsets of the latest records, found from keys and offsets alone, then all records at these offsets
anti_join    the latest offset of the keys of the dirty section alone; records that are before it go. As a left join,
             for which DuckDB takes a fifth less CPU than for NOT EXISTS

All three sort by offset at the end. DuckDB keeps the order of what it reads, but not through a join or a window: left
out, the sort leaves the records in another order.

DuckDB may leave out: the size of segments (it writes one file), statistics of each file for a table's metrics, and the
finding out of whether a file changes at all. It is told which files are dirty, as an expert with a table of them would
know.

Settings as its guide on performance advises: as many threads as cores, a limit of memory well above the need, and
``preserve_insertion_order`` off, because the query says its order itself. Row groups are as large as keptlog's.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from benchmarks.peers import Left, Setup, Work
from keptlog.log.steps import Compact
from keptlog.storage.schema import US_PER_MS
from keptlog.storage.segment_writer import ROW_GROUP_ROWS

_COPY = """
    copy (
        select * replace (
            case when value is null and delete_horizon is null then make_timestamptz({horizon_us})
            else delete_horizon end as delete_horizon
        )
        from ({latest})
        where delete_horizon is null or delete_horizon > make_timestamptz({now_us})
        order by {order}
    ) to '{target}' (format parquet, compression zstd, compression_level 1, row_group_size {row_group_rows})
"""
_LATEST = {
    "row_number": """
        select * from {all} qualify row_number() over (partition by {key} order by "offset" desc) = 1
    """,
    "semi_join": """
        select * from {all} where ({offset}) in (select {latest_offset} from {all} group by {key})
    """,
    "anti_join": """
        select record.* from {all} as record
        left join (select {key}, max("offset") as latest from {dirty} group by {key}) as newer using ({key})
        where newer.latest is null or record."offset" = newer.latest
    """,
}


def open_peer(setup: Setup) -> DuckDbSql:
    return DuckDbSql(setup)


@dataclass(frozen=True)
class DuckDbSql:
    """Runs each query in a database of its own, in memory."""

    setup: Setup

    def prepare(self, work: Work) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, work: Work) -> Left:
        target = str(work.output / "left.parquet")
        with duckdb.connect(config={"threads": self.setup.cores}) as connection:
            connection.execute("set preserve_insertion_order = false")
            connection.execute("set enable_progress_bar = false")
            connection.execute("set timezone = 'UTC'")
            connection.execute(f"set temp_directory = '{work.output / 'spilled'}'")
            for name, value in self.setup.settings:
                connection.execute(f"set {name} = '{value}'")
            connection.execute(_query(work, target))
        return Left((target,))


def _query(work: Work, target: str) -> str:
    step: Compact = work.step
    # Who has one topic-partition has no need to group by it.
    columns = ["partition"] if len(work.log.steps) > 1 else []
    names = {
        "all": _files(work.log.paths),
        "dirty": _files(work.log.dirty_paths),
        "key": ", ".join([*columns, "key"]),
        "offset": ", ".join([*columns, '"offset"']),
        "latest_offset": ", ".join([*columns, 'max("offset")']),
    }
    return _COPY.format(
        latest=_LATEST[work.variant].format(**names),
        horizon_us=step.bounds.new_delete_horizon_ms * US_PER_MS,
        now_us=step.now_ms * US_PER_MS,
        order=names["offset"],
        target=target,
        row_group_rows=ROW_GROUP_ROWS,
    )


def _files(paths: list[str]) -> str:
    return f"read_parquet({paths})"
