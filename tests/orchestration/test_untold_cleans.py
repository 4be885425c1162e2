"""A clean that has landed in a run that died before it could tell is told, and its log is not shown as failed."""

from __future__ import annotations

import time
from contextlib import suppress

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets.attempts import last_attempts
from keptlog.dagster.orchestration import clean_job
from keptlog.dagster.resources.clock import ClockResource
from tests.orchestration.conftest import World
from tests.orchestration.shipped import KEYS, failed_run_sensor

USERS = KEYS.clean("users")


class Killed(BaseException):
    """In place of kill -9: no code of the run comes to know of it."""


@pytest.fixture
def died(world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> World:
    """A run has cleaned users-0, and died right after its commit."""
    world.now_ms = time.time_ns() // 1_000_000
    # Dagster dates the run's beginning: a clock that stands still would be behind it.
    world.more_resources["clock"] = ClockResource()
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))

    def killed(*_args: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(clean_job, "observe_after", killed)
        with suppress(Killed):
            world.clean("users-0")
    assert [value for _, _, value in world.records("users")] == [b"2"], "its commit has landed"
    (run,) = world.instance.get_runs()
    if not run.is_finished:
        world.instance.report_run_failed(run, "killed")
    return world


def failed(world: World) -> set[str]:
    return last_attempts(world.instance, USERS, [dg.DagsterRunStatus.FAILURE])


def made(world: World) -> list[str]:
    records = world.instance.fetch_materializations(USERS, limit=10).records
    return [
        f"{each.partition_key}: {each.asset_materialization.description}"
        for each in records
        if each.asset_materialization
    ]


def test_it_is_told_once_and_its_log_is_not_failed(died: World) -> None:
    assert failed(died) == {"users-0"}

    assert "it had cleaned users-0" in died.skips(failed_run_sensor)

    assert failed(died) == set()
    (told,) = made(died)
    assert told.startswith("users-0: looked at, and left as it is: it was cleaned, and run ")
    assert "no run has died" in died.skips(failed_run_sensor)
    assert len(made(died)) == 1


def test_a_log_that_a_later_run_is_to_clean_is_left_to_that(died: World) -> None:
    died.append("users", ("a", "3"), ("a", "4"))
    assert died.clean("users-0").success
    before = made(died)

    assert "it had cleaned" not in died.skips(failed_run_sensor)

    assert made(died) == before
