"""Polars: one lazy query on its streaming engine, from Parquet to Parquet.

The latest offset of each key is a group over keys and offsets alone; a semi join on the offset keeps those records, and
their order, which Polars promises if it is asked for (``maintain_order``).

Polars may leave out what DuckDB may (``duckdb_sql``). The number of its threads is that of the cores, set before it is
imported, for that is when it looks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.peers import Left, Setup, Work
from keptlog.storage.segment_writer import ROW_GROUP_ROWS

_MS_PER_SECOND = 1000


def open_peer(setup: Setup) -> PolarsLazy:
    os.environ.setdefault("POLARS_MAX_THREADS", str(setup.cores))
    return PolarsLazy()


@dataclass(frozen=True)
class PolarsLazy:
    """Holds nothing: Polars has no session."""

    def prepare(self, work: Work) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, work: Work) -> Left:
        import polars as pl  # noqa: PLC0415  # its threads are set by now

        step, target = work.step, str(work.output / "left.parquet")
        columns = ["partition"] if len(work.log.steps) > 1 else []
        horizon = pl.lit(_time(step.bounds.new_delete_horizon_ms), pl.Datetime("us", "UTC"))
        lacks_horizon = pl.col("value").is_null() & pl.col("delete_horizon").is_null()
        has_expired = (pl.col("delete_horizon") <= _time(step.now_ms)).fill_null(value=False)
        records = pl.scan_parquet(work.log.paths)
        latest = records.group_by(*columns, "key").agg(pl.col("offset").max()).select(*columns, "offset")
        left = (
            records.join(latest, on=[*columns, "offset"], how="semi", maintain_order="left")
            .filter(~has_expired)
            .with_columns(
                pl.when(lacks_horizon).then(horizon).otherwise(pl.col("delete_horizon")).alias("delete_horizon")
            )
        )
        left.sink_parquet(
            target, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS, engine="streaming"
        )
        return Left((target,))


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / _MS_PER_SECOND, UTC)
