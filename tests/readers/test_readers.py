"""Other engines read what ``keptlog read`` reads, by the code that docs/readers.md shows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.readers.conftest import Moment, rows_of
from tests.readers.page import PAGE, blocks, run
from tests.readers.prepared import TOPIC, prepare


def test_pyiceberg_reads_what_keptlog_reads(moment: Moment) -> None:
    defined = run("catalog", "table", "pyiceberg")
    assert rows_of(defined["users"]) == moment.rows
    assert rows_of(defined["latest"].to_arrow_table()) == moment.latest


def test_duckdb_reads_what_keptlog_reads(moment: Moment) -> None:
    defined = run("duckdb")
    assert rows_of(defined["users"].to_arrow_table()) == moment.rows
    assert rows_of(defined["latest"].to_arrow_table()) == moment.latest


@pytest.mark.parametrize("way", ["polars", "polars-expressions"])
def test_polars_reads_what_keptlog_reads(moment: Moment, way: str) -> None:
    defined = run("catalog", "table", way)
    assert rows_of(defined["users"].collect().to_arrow()) == moment.rows
    assert rows_of(defined["latest"].collect().to_arrow()) == moment.latest


def test_spark_reads_what_keptlog_reads_without_icebergs_runtime(moment: Moment, spark: SparkSession) -> None:
    defined = run("catalog", "table", "spark-files")
    assert rows_of(defined["users"].toArrow()) == moment.rows
    assert rows_of(defined["latest"].toArrow()) == moment.latest


def test_an_earlier_snapshot_reads_as_it_was(moment: Moment) -> None:
    defined = run("catalog", "table", "time-travel")
    as_it_was = list(moment.store.read(TOPIC, snapshot_id=defined["first"]))
    for table in (defined["as_it_was"], defined["in_polars"].collect().to_arrow()):
        assert [row for row in rows_of(table) if row[1].offset >= defined["starts"][row[0]]] == as_it_was


def test_duckdbs_command_line_reads_what_keptlog_reads(tmp_path: Path) -> None:
    if shutil.which("duckdb") is None:
        pytest.skip("no duckdb on the PATH: pip install duckdb-cli")
    store = prepare(tmp_path / ".keptlog", "deleted up to the middle of a clean segment")
    command = blocks()["sh", "duckdb"].replace("| duckdb", "| duckdb -csv")
    shown = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.split()[-1] == str(len(list(store.read(TOPIC))))


def test_every_block_of_the_page_is_run() -> None:
    tried = Path(__file__).parent.rglob("test_*.py")
    tests = "".join(path.read_text(encoding="utf-8") for path in tried)
    assert not [name for _, name in blocks() if f'"{name}"' not in tests]


def test_the_line_in_the_readme_is_that_of_the_page() -> None:
    assert blocks()["sql", "latest"] in (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
