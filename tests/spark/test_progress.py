"""A job of Spark that takes long tells how far it is, and one that is soon over says nothing."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from keptlog.engine.amount import amount_of
from keptlog.engine.map_tasks import MergeTask
from keptlog.engine.segment_run import SegmentRun
from keptlog.engine.tasks import RewriteTask
from keptlog.spark import waiting
from keptlog.spark.waiting import collected, how_far
from tests.building import Clean, segment


def test_what_is_left_is_told_once_something_is_done() -> None:
    assert how_far("rewriting 3 logs", (), 0, 12, 10) is None
    assert how_far("rewriting 3 logs", (), 3, 12, 10) == "rewriting 3 logs: 3 of 12 tasks done in 10 s, about 30 s left"
    assert how_far("rewriting 3 logs", (), 12, 12, 10) is None
    assert how_far("rewriting 3 logs", (), 0, 0, 10) is None


def test_records_and_bytes_are_told_where_it_is_known_what_tasks_read() -> None:
    halves = segment(0, 9, size=1024), segment(10, 49, size=3072)
    step = Clean(0, 50).step(halves)
    amounts = [amount_of(RewriteTask((SegmentRun(0, step, (each,), "there"),))) for each in halves]
    assert amounts == [(10, 1024), (40, 3072)]
    known = [each for each in amounts if each]
    assert how_far("rewriting 2 logs", known, 1, 2, 10) == (
        "rewriting 2 logs: 1 of 2 tasks done in 10 s, about 10 of 50 records (1.0 KiB of 4.0 KiB), about 30 s left"
    )
    assert amount_of(MergeTask(0, 50, (), "")) is None


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(waiting, "_TOLD_SECONDS", 1)


@pytest.mark.usefixtures("soon")
def test_a_long_job_tells_how_many_of_its_tasks_are_done(spark: SparkSession) -> None:
    def half_a_second(number: int) -> int:
        time.sleep(0.5)
        return number

    slowly = udf(half_a_second, "long")
    told: list[str] = []
    rows = collected(spark, spark.range(0, 8, 1, 8).select(slowly("id")), "waiting", told.append)
    assert len(rows) == 8
    assert told
    assert all(line.startswith("waiting: ") and " of 8 tasks done in " in line for line in told)


@pytest.mark.usefixtures("soon")
def test_a_short_one_says_nothing(spark: SparkSession) -> None:
    told: list[str] = []
    collected(spark, spark.range(0, 1, 1, 1), "counting", told.append)
    assert told == []
