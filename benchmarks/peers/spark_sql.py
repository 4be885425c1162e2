"""Spark SQL: three queries that its users write, in a session with keptlog's settings and what Spark SQL needs beside.

row_number   a window over each key, then a sort by offset
max_by       each key's record with the highest offset by aggregation, then a sort by offset
anti_join    the latest offset of the dirty section's keys, broadcast; records that are before it go. No sort: each file
             is a task of its own, so that the order of its records holds

It may leave out what DuckDB may (``duckdb_sql``), and may write one file a task. What it has beside keptlog's
settings: a heap of 4 GB, the optimizing compiler and the parallel collector, for here all values pass the JVM;
partitions that fit the cores; zstd at level 1, and no dictionaries for what never repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from benchmarks.peers import Left, Setup, Work
from keptlog.spark.session import start_session
from keptlog.spark.settings import session_settings

_MS_PER_SECOND = 1000
_HEAP = {"spark.driver.memory": "4g"}
_QUERY_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
_WRITER_OPTIONS = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",
    "parquet.enable.dictionary": "false",
}
_ONE_FILE_A_TASK = str(2**60)
"""Bytes that opening a file is said to cost: no two share a task then."""
_KEY = ["partition", "key"]
_OFFSET = ["partition", "offset"]


def open_peer(setup: Setup) -> SparkSql:
    master = f"local[{setup.cores}]"
    options = session_settings(master).get("spark.driver.defaultJavaOptions", "")
    options = options.replace("-XX:+UseSerialGC", "-XX:+UseParallelGC").replace("-XX:TieredStopAtLevel=1 -Xms64m", "")
    session = start_session(master, _HEAP | {"spark.driver.defaultJavaOptions": options})
    return SparkSql(session.newSession(), setup.cores)


@dataclass(frozen=True)
class SparkSql:
    """Runs queries on one session."""

    session: SparkSession
    cores: int

    def prepare(self, work: Work) -> None:
        settings = _QUERY_SETTINGS | {"spark.sql.shuffle.partitions": str(4 * self.cores)}
        if work.variant == "anti_join":
            settings |= {
                "spark.sql.files.maxPartitionBytes": _ONE_FILE_A_TASK,
                "spark.sql.files.openCostInBytes": _ONE_FILE_A_TASK,
            }
        else:
            settings |= {
                "spark.sql.files.maxPartitionBytes": "128MB",
                "spark.sql.files.openCostInBytes": "4MB",
            }
        for name, value in settings.items():
            self.session.conf.set(name, value)

    def close(self) -> None:
        self.session.stop()

    def run(self, work: Work) -> Left:
        left = _QUERIES[work.variant](self.session, work)
        step = work.step
        horizon, now = (sql.lit(_time(time_ms)) for time_ms in (step.bounds.new_delete_horizon_ms, step.now_ms))
        lacks_horizon = sql.col("value").isNull() & sql.col("delete_horizon").isNull()
        left = left.where(sql.col("delete_horizon").isNull() | (sql.col("delete_horizon") > now)).withColumn(
            "delete_horizon", sql.when(lacks_horizon, horizon).otherwise(sql.col("delete_horizon"))
        )
        if work.variant != "anti_join":
            left = left.orderBy(*_OFFSET)
        target = work.output / "left"
        left.write.options(**_WRITER_OPTIONS).parquet(str(target))
        return Left(tuple(map(str, target.glob("*.parquet"))))


def _row_number(session: SparkSession, work: Work) -> DataFrame:
    records = session.read.parquet(*work.log.paths)
    of_key = Window.partitionBy(*_KEY).orderBy(sql.col("offset").desc())
    return records.withColumn("place", sql.row_number().over(of_key)).where("place = 1").drop("place")


def _max_by(session: SparkSession, work: Work) -> DataFrame:
    records = session.read.parquet(*work.log.paths)
    latest = sql.max_by(sql.struct(*records.columns), "offset").alias("latest")
    return records.groupBy(*_KEY).agg(latest).select("latest.*")


def _anti_join(session: SparkSession, work: Work) -> DataFrame:
    records = session.read.parquet(*work.log.paths).alias("record")
    dirty = session.read.parquet(*work.log.dirty_paths)
    newer = sql.broadcast(dirty.groupBy(*_KEY).agg(sql.max("offset").alias("latest"))).alias("newer")
    same_key = (sql.col("record.partition") == sql.col("newer.partition")) & (
        sql.col("record.key") == sql.col("newer.key")
    )
    return records.join(newer, same_key & (sql.col("record.offset") < sql.col("newer.latest")), "left_anti")


_QUERIES: dict[str, Callable[[SparkSession, Work], DataFrame]] = {
    "row_number": _row_number,
    "max_by": _max_by,
    "anti_join": _anti_join,
}


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / _MS_PER_SECOND, UTC)
