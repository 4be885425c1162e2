"""Hudi's or Paimon's own compaction, in a Spark that their jars are published for; run by that Spark's Python.

    python table_format_driver.py hudi JAR CORES    a request a line on stdin, its answer a line on stdout

    {"do": "fill", "table": FOLDER, "clean": [PATHS], "dirty": [[PATHS], ...], "partitions": 1}    null
    {"do": "open", "table": FOLDER}        null; what comes before a compaction and is not it
    {"do": "compact", "table": FOLDER}     the paths of the files that the table has then

A table is filled as a stream would fill it: the clean section is compacted already, and each of the lists of dirty
segments is a write of its own, which the table's format puts beside. Nothing of keptlog is imported here, as it may not
be installed where this runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

_HEAP = "4g"
_BUCKETS_A_CORE = 2


_HUDI = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.compression.codec": "zstd",
}
"""For writes and compactions alike."""


class Engine(Protocol):
    """A table format."""

    def fill(self, table: str, clean: list[str], dirty: list[list[str]], partitions: int) -> None: ...

    def open(self, table: str) -> None: ...

    def compact(self, table: str) -> list[str]: ...


def session(jar: str, cores: int, settings: dict[str, str]) -> SparkSession:
    """A local Spark with one jar more."""
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.jars", jar)
    own = {
        "spark.driver.memory": _HEAP,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
    }
    for name, value in (own | settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def records(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Keys are text in both formats: Paimon takes no bytes for a key, and Hudi makes a text of them itself."""
    return spark.read.parquet(*paths).withColumn("key", sql.col("key").cast("string"))


class Hudi:
    """A merge-on-read table: base files, and log files beside them that compaction merges by record key.

    The index by buckets lets all new records go to log files. With the default one, which looks keys up in base files,
    each write may also write small base files anew. The table of metadata is off, which every commit would write too.
    """

    def __init__(self, jar: str, cores: int) -> None:
        self._cores = cores
        self._spark = session(
            jar,
            cores,
            {
                "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
                "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
                "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            },
        )

    def fill(self, table: str, clean: list[str], dirty: list[list[str]], partitions: int) -> None:
        buckets = 1 if partitions > 1 else _BUCKETS_A_CORE * self._cores
        operations = [("bulk_insert", clean)] if clean else []
        for operation, paths in [*operations, *(("upsert", paths) for paths in dirty)]:
            options = self._options(operation, buckets)
            records(self._spark, paths).write.format("hudi").options(**options).mode("append").save(table)

    def open(self, table: str) -> None:
        self._call("schedule", table)

    def compact(self, table: str) -> list[str]:
        self._call("run", table)
        latest: dict[str, Path] = {}
        for path in Path(table).rglob("*.parquet"):
            file_id, _, instant = path.stem.split("_")
            if file_id not in latest or latest[file_id].stem.split("_")[2] < instant:
                latest[file_id] = path
        return sorted(map(str, latest.values()))

    def _call(self, operation: str, table: str) -> None:
        options = ",".join(f"{name}={value}" for name, value in _HUDI.items())
        rows = self._spark.sql(f"call run_compaction(op => '{operation}', path => '{table}', options => '{options}')")
        if not rows.collect():
            raise RuntimeError(f"Hudi has nothing to {operation} in {table}")

    def _options(self, operation: str, buckets: int) -> dict[str, str]:
        return _HUDI | {
            "hoodie.table.name": "compared",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "key",
            "hoodie.datasource.write.precombine.field": "offset",
            "hoodie.datasource.write.partitionpath.field": "partition",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(buckets),
            "hoodie.datasource.write.drop.partition.columns": "false",
        }


class Paimon:
    """A primary-key table: sorted runs, which a full compaction merges to one by key."""

    def __init__(self, jar: str, cores: int) -> None:
        self._cores = cores
        extensions = "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions"
        self._spark = session(jar, cores, {"spark.sql.extensions": extensions})
        self._catalogs = 0

    def fill(self, table: str, clean: list[str], dirty: list[list[str]], partitions: int) -> None:
        name = self._name(table)
        self._spark.sql(f"create database if not exists {name.rpartition('.')[0]}")
        partitioned = "partitioned by (partition)" if partitions > 1 else ""
        buckets = 1 if partitions > 1 else _BUCKETS_A_CORE * self._cores
        options = {
            "primary-key": "partition,key" if partitions > 1 else "key",
            "sequence.field": "offset",
            "bucket": str(buckets),
            "write-only": "true",
            "file.format": "parquet",
            "file.compression": "zstd",
            "file.compression.zstd-level": "1",
        }
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        columns = records(self._spark, [*clean, *dirty[0]]).schema
        listed = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in columns)
        self._spark.sql(f"create table {name} ({listed}) {partitioned} tblproperties ({properties})")
        for number, paths in enumerate([*([clean] if clean else []), *dirty]):
            records(self._spark, paths).writeTo(name).append()
            if clean and number == 0:
                self._compact(name)

    def open(self, table: str) -> None:
        self._name(table)

    def compact(self, table: str) -> list[str]:
        name = f"run{self._catalogs}.compared.log"
        self._compact(name)
        rows = self._spark.table(f"{name.rpartition('.')[0]}.`log$files`")
        live = {row["file_path"] for row in rows.collect()}
        return sorted(str(path) for path in Path(table).rglob("data-*.parquet") if path.name in live)

    def _compact(self, name: str) -> None:
        catalog, table = name.split(".", 1)
        self._spark.sql(f"call {catalog}.sys.compact(table => '{table}')").collect()

    def _name(self, table: str) -> str:
        """The table in a catalog of its own, since a catalog of Spark has one folder for ever."""
        self._catalogs += 1
        catalog = f"run{self._catalogs}"
        self._spark.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.paimon.spark.SparkCatalog")
        self._spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", table)
        return f"{catalog}.compared.log"


def main() -> None:
    format_, jar, cores = sys.argv[1:]
    # Libraries of Java write to stdout.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    engine: Engine = Hudi(jar, int(cores)) if format_ == "hudi" else Paimon(jar, int(cores))
    print("null", file=answers, flush=True)
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer = getattr(engine, request.pop("do"))(**request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
