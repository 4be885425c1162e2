"""A driver gets as many bytes of its tasks as there are logs and files: eight times the records add digits alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession

from keptlog.engine.tasks import Sizes
from keptlog.log.offset_map import UNBOUNDED, MapCapacity, MapOverflow
from keptlog.log.reference import clean_records
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.spark.jobs import spark_engine
from tests.building import Clean
from tests.local_log import LocalFiles, write_segments
from tests.spark.test_engine import some_records

_SEGMENTS = 8
_RECORDS = 1000
_TIMES = 8


@dataclass(frozen=True)
class Way:
    """How a log is cleaned."""

    is_cut: bool = True
    strategy: Strategy = Strategy()  # noqa: RUF009  # it is frozen
    is_shuffled: bool = False

    def step(self, folder: Path, records: int) -> Compact:
        """Half clean, half dirty, half as many keys, in so many segments however many records there are."""
        half = records // 2
        before = clean_records([], some_records(half, half // 2), 5000, 1000)
        dirty = some_records(half, half // 2, first_offset=half, seed=2)
        in_clean, in_dirty = -(-len(before) // (_SEGMENTS // 2)), half // (_SEGMENTS // 2)
        segments = write_segments(folder, before, in_clean) + write_segments(folder, dirty, in_dirty)
        assert len(segments) == _SEGMENTS
        capacity = MapCapacity(records // 8, MapOverflow.SHUFFLE) if self.is_shuffled else UNBOUNDED
        return Clean(half, records, strategy=self.strategy, map_capacity=capacity, topic="t").step(segments)

    def sizes(self, records: int) -> Sizes:
        """As many tasks however many records there are."""
        cut = Sizes(whole_log_records=0, mapped_in_runs_records=0, merged_in_runs_keys=0) if self.is_cut else Sizes()
        return replace(cut, map_part_records=records // 4, shuffled_part_records=records // 4)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(Way(is_cut=False), id="in one task"),
        pytest.param(Way(), id="cut"),
        pytest.param(Way(strategy=Strategy(StrategyKind.TIMESTAMP)), id="cut, with versions"),
        pytest.param(Way(is_shuffled=True), id="shuffled"),
    ],
)
def test_eight_times_the_records_are_as_many_bytes_at_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    told_bytes: list[int] = []
    frames = type(spark.range(1))
    really_frames, really_answers = frames.collect, RDD.collect

    def measured(frame: DataFrame) -> list[Row]:
        rows = really_frames(frame)
        told_bytes[-1] += sum(len(json.dumps(row.asDict())) for row in rows)
        return rows

    def measured_answers(job: RDD[str]) -> list[str]:
        answers = really_answers(job)
        told_bytes[-1] += sum(map(len, answers))
        return answers

    monkeypatch.setattr(frames, "collect", measured)
    monkeypatch.setattr(RDD, "collect", measured_answers)
    for records in (_RECORDS, _RECORDS * _TIMES):
        folder = tmp_path / str(records)
        step = way.step(folder / "partition=0", records)
        told_bytes.append(0)
        engine = spark_engine(lambda: spark, LocalFiles(), way.sizes(records))
        [outcome] = engine.rewrite([step], {"t": str(folder)}, "run")
        assert outcome.removed
    few, many = told_bytes
    assert few > 0
    assert many < few * 1.05
