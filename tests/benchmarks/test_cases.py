"""Every contender of every case leaves what it should, on few records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.cases import BESIDE_FORMATS
from benchmarks.report import Result
from tests.benchmarks.here import CASES, Peers

KAFKA = {"kafka_none", "kafka_zstd"}
"""They need Maven."""


def assert_all_are_equal(result: Result) -> None:
    line = result.last_line()
    assert line["equal"], result.unequal
    assert set(result.absent) <= KAFKA
    measured = {contender.name for contender in result.case.contenders} - set(result.absent)
    assert measured <= set(line["wall_s"])
    assert set(line["wall_s"]) == set(line["cpu_s"])
    assert set(line["ratio"]) <= set(line["wall_s"]) - {"keptlog"}
    assert line["peak_rss_bytes"] > 0
    assert line["bytes_written"] > 0
    assert result.absent or all(goal["value"] is not None for goal in result.to_dict()["goals"])


@pytest.mark.parametrize(
    "name", [name for name in CASES if name not in {"W1-spark", "W3"} and BESIDE_FORMATS not in name]
)
def test_everybody_leaves_the_same_records(name: str, peers: Peers, tmp_path: Path) -> None:
    assert_all_are_equal(peers.measured(name, tmp_path))


def test_spark_leaves_the_same_records(spark: SparkSession, peers: Peers, tmp_path: Path) -> None:
    assert_all_are_equal(peers.measured("W1-spark", tmp_path, spark))


def test_segments_that_no_dirty_record_touches_are_not_written(peers: Peers, tmp_path: Path) -> None:
    result = peers.measured("W3", tmp_path)
    assert_all_are_equal(result)
    assert result.figures.note("keptlog", "segments_kept") == 17
    assert result.last_line()["bytes_written"] < result.figures.bytes_written("copy") / 4
