"""What a clean costs, against the least that anything could cost that reads and writes the same bytes.

    python -m benchmarks.clean_vs_copy --records 5000000

The copy is plain pyarrow in as many processes as Spark has cores: every input is decoded, encoded the same way and
made durable the same way. Rounds are interleaved, so that a noisy machine is noisy for both; the first clean, which
starts the JVM, is told by itself. Memory is that of all processes together. The result is checked with DuckDB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.generated_log import TOPIC, Shape, generate
from benchmarks.processes import Measured
from keptlog.log.plan import Step
from keptlog.log.result import Rewritten, verify
from keptlog.log.segment import total_bytes
from keptlog.spark.engine import SparkEngine
from keptlog.spark.session import start_session
from keptlog.spark.tasks import contiguous_runs
from keptlog.storage.schema import SCHEMA
from keptlog.table.files import TableFiles

FILES = TableFiles()
_SPAWN = multiprocessing.get_context("spawn")
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Bench:
    """One log, and the two things that are done to it."""

    step: Step
    folder: Path
    cores: int

    def clean(self, spark: SparkSession, run_id: str) -> tuple[Measured, Rewritten]:
        engine = SparkEngine(lambda: spark, FILES)
        with Measured() as cost:
            [outcome] = engine.rewrite([self.step], {TOPIC: str(self.folder)}, run_id)
            verify(outcome)
        return cost, outcome

    def copy(self) -> Measured:
        shares = contiguous_runs(self.step.segments, -(-total_bytes(self.step.segments) // self.cores))
        target = self.folder / "copy"
        with ProcessPoolExecutor(self.cores, mp_context=_SPAWN) as pool:
            list(pool.map(_ready, range(self.cores)))
            with Measured() as cost:
                tasks = [([segment.path for segment in share], target / str(n)) for n, share in enumerate(shares)]
                list(pool.map(_copy, *zip(*tasks, strict=True)))
        shutil.rmtree(target)
        return cost


def _ready(_: int) -> int:
    return pa.set_cpu_count(1) or os.getpid()


def _copy(paths: Sequence[str], target: Path) -> None:
    for path in paths:
        with (
            FILES.open_input(path) as source,
            FILES.open_output(str(target / Path(path).name)) as sink,
            pq.ParquetWriter(
                sink,
                SCHEMA,
                compression="zstd",
                compression_level=1,
                use_dictionary=["partition", "timestamp_type"],
                column_encoding=dict.fromkeys(("offset", "timestamp", "delete_horizon"), "DELTA_BINARY_PACKED"),
                store_schema=False,
            ) as writer,
        ):
            parquet = pq.ParquetFile(source)
            for index in range(parquet.num_row_groups):
                writer.write_table(parquet.read_row_group(index, use_threads=False))


_FACTS = 'count(*), sum("offset"), bit_xor(hash("offset", key, value, "timestamp", len(headers)))'
_WANTED = f"""
    select {_FACTS}, count(*) filter (value is null)
    from read_parquet($paths)
    where ("offset", key) in (select (max("offset"), key) from read_parquet($paths) group by key)
"""  # noqa: S608  # nothing in it comes from outside
_FOUND = f"""
    select {_FACTS}, count(*) filter (value is null and epoch_ms(delete_horizon) = $horizon_ms)
    from read_parquet($paths)
"""  # noqa: S608


def _check(outcome: Rewritten) -> int:
    """Compare the result with a query over the inputs; returns the number of records that are left."""
    inputs = [segment.path for segment in outcome.step.segments]
    live = [segment.path for segment in (set(outcome.step.segments) - set(outcome.removed)) | set(outcome.added)]
    horizon_ms = outcome.step.bounds.new_delete_horizon_ms
    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false")
        wanted = connection.execute(_WANTED, {"paths": inputs}).fetchone()
        found = connection.execute(_FOUND, {"paths": live, "horizon_ms": horizon_ms}).fetchone()
    if wanted != found or wanted is None:
        sys.exit(f"the clean left a wrong log: wanted {wanted}, found {found}")
    return int(wanted[0])


def _medians(costs: Sequence[Measured]) -> dict[str, float]:
    return {
        "wall_seconds": round(statistics.median(cost.wall_seconds for cost in costs), 2),
        "cpu_seconds": round(statistics.median(cost.cpu_seconds for cost in costs), 2),
        "peak_rss_mib": round(max(cost.peak_rss_bytes for cost in costs) / _MEBIBYTE),
    }


def measure(step: Step, folder: Path, rounds: int, cores: int) -> dict[str, object]:
    """Interleaved rounds of clean and copy; medians, the largest memory, and their ratios."""
    bench = Bench(step, folder, cores)
    cold = Measured()
    with cold:
        spark = start_session(f"local[{cores}]")
        _, outcome = bench.clean(spark, "cold")
    records_left = _checked_and_deleted(outcome)
    cleans, copies = [], []
    for number in range(rounds):
        copies.append(bench.copy())
        cost, outcome = bench.clean(spark, f"round-{number}")
        _checked_and_deleted(outcome)
        cleans.append(cost)
    spark.stop()
    clean, copy = _medians(cleans), _medians(copies)
    del copy["peak_rss_mib"]  # it has the idle session in it
    return {
        "records": outcome.counts.total,
        "records_left": records_left,
        "input_mib": round(total_bytes(step.segments) / _MEBIBYTE),
        "cores": cores,
        "rounds": rounds,
        "cold_clean": _medians([cold]),
        "clean": clean,
        "copy": copy,
        "wall_ratio": round(clean["wall_seconds"] / copy["wall_seconds"], 2),
        "cpu_ratio": round(clean["cpu_seconds"] / copy["cpu_seconds"], 2),
    }


def _checked_and_deleted(outcome: Rewritten) -> int:
    with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
        records_left = pool.submit(_check, outcome).result()
    for segment in outcome.added:
        FILES.delete(segment.path)
    return records_left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000, help="four fifths clean, one fifth dirty")
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    arguments = parser.parse_args()
    shape = Shape(arguments.records * 4 // 5, arguments.records // 5, arguments.value_bytes)
    with tempfile.TemporaryDirectory(prefix="keptlog-benchmark-") as name:
        folder = Path(name)
        print(f"generating {arguments.records} records of {arguments.value_bytes} bytes", flush=True)
        with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
            step = pool.submit(generate, FILES, folder, shape).result()
        result = measure(step, folder, arguments.rounds, arguments.cores)
    print(f"{'':12}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}")
    for name in ("cold_clean", "clean", "copy"):
        row = result[name]
        assert isinstance(row, dict)
        print(f"{name:12}{row['wall_seconds']:>10}{row['cpu_seconds']:>10}{row.get('peak_rss_mib', '-'):>10}")
    print(f"a warm clean takes {result['wall_ratio']} times the copy's time, {result['cpu_ratio']} times its CPU")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
