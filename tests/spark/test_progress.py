"""A job of Spark that takes long tells how far it is, and one that is soon over says nothing."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from keptlog.spark import waiting
from keptlog.spark.waiting import collected, how_far


def test_what_is_left_is_told_once_something_is_done() -> None:
    assert how_far("rewriting 3 logs", 0, 12, 10) is None
    assert how_far("rewriting 3 logs", 3, 12, 10) == "rewriting 3 logs: 3 of 12 tasks done in 10 s, about 30 s left"
    assert how_far("rewriting 3 logs", 12, 12, 10) is None
    assert how_far("rewriting 3 logs", 0, 0, 10) is None


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
