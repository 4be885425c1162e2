"""Whether a clean has landed that no run could tell of is seen in the topic, whatever keptlog's clock says."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.orchestration import clean_job
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.shipped import failed_run_sensor
from tests.orchestration.test_untold_cleans import Killed, die_after_a_clean, failed, made


@pytest.fixture
def users(world: World, spark: SparkSession) -> World:
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 2)
    return world


def test_a_clean_is_told_whose_clock_was_behind(users: World, monkeypatch: pytest.MonkeyPatch) -> None:
    users.now_ms -= HOUR_MS
    die_after_a_clean(users, monkeypatch, 0)

    assert "told now as cleaned: users-0" in users.skips(failed_run_sensor)

    assert failed(users) == set()
    assert len(made(users)) == 1


def test_a_clean_that_was_told_is_not_taken_for_one_of_a_run_that_was_ended_since(
    users: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was ahead when the log was cleaned."""
    users.append("users", ("a", "1"), ("a", "2"))
    users.now_ms += HOUR_MS
    assert users.clean("users-0").success
    users.now_ms -= HOUR_MS
    users.append("users", ("a", "3"), ("a", "4"))

    def killed(*_args: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(clean_job, "_stage", killed)
        users.clean("users-0")
    users.instance.report_run_canceled(users.instance.get_runs(limit=1)[0])
    before = made(users)

    assert "told now as cleaned" not in users.skips(failed_run_sensor)

    assert made(users) == before
