"""A home that is away, its folder renamed or its disk not mounted, is no home without topics: nothing of it is gone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.orchestration.own_runs import MARKED_TAG
from keptlog.dagster.orchestration.requests import TRIGGER_TAG
from keptlog.errors import StorageUnavailable
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask
from tests.orchestration.instance import fail
from tests.orchestration.shipped import (
    KEYS,
    clean_logs,
    dirty_ratio_sensor,
    erasure_sensor,
    failed_run_sensor,
    health_sensor,
    ingest_lag_sensor,
    retention_sensor,
)

TOLD = {"the same process": "has lost its catalog", "one that was started meanwhile": ", mount its disk"}


@pytest.fixture
def loaded(world: World) -> dg.RepositoryDefinition:
    """The graph of a home of one topic."""
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    repository = world.defs.get_repository_def()
    assert KEYS.clean("users") in repository.assets_defs_by_key
    return repository


@pytest.fixture(params=["no folder", "an empty folder"])
def away(world: World, loaded: dg.RepositoryDefinition, request: pytest.FixtureRequest) -> Path:
    """Where the home is, after the sensors have seen it."""
    assert "1 log" in world.skips(health_sensor)
    place = world.path.with_name("elsewhere")
    world.path.rename(place)
    if request.param == "an empty folder":
        world.path.mkdir()
    return place


def has_anything(world: World) -> bool:
    return world.path.exists() and any(world.path.iterdir())


@pytest.mark.parametrize("who", TOLD)
def test_health_has_no_number_of_a_home_that_is_away(world: World, away: Path, who: str) -> None:
    if who != "the same process":
        world.reopen()
    world.now_ms += 120_000

    result = world.tick(health_sensor)

    assert TOLD[who] in str(result.skip_reason)
    (event,) = result.asset_events
    assert "logs" not in event.metadata
    assert TOLD[who] in str(event.metadata["not_looked_at"].value)
    assert not has_anything(world)


@pytest.mark.parametrize("who", TOLD)
def test_the_asset_graph_stays_while_the_home_is_away_and_nothing_is_made_in_its_place(
    world: World, loaded: dg.RepositoryDefinition, away: Path, who: str
) -> None:
    if who != "the same process":
        world.reopen()
    sensor = loaded.get_sensor_def("topics_sensor")

    said = world.skips(sensor)

    assert "the asset graph stays as it is" in said
    assert TOLD[who] in said
    assert not has_anything(world)


def test_a_sensor_says_that_the_home_is_lost_and_goes_on_once_it_is_back(world: World, away: Path) -> None:
    for sensor in (dirty_ratio_sensor, erasure_sensor):
        with pytest.raises(StorageUnavailable, match="has lost its catalog"):
            world.tick(sensor)
    if world.path.exists():
        shutil.rmtree(world.path)
    away.rename(world.path)

    assert world.requests(dirty_ratio_sensor)
    assert "1 log" in world.skips(health_sensor)


def test_a_sensor_that_never_saw_the_home_says_that_it_may_be_away(world: World, away: Path) -> None:
    world.reopen()
    for sensor in (dirty_ratio_sensor, retention_sensor(300), ingest_lag_sensor):
        said = world.skips(sensor)
        assert "is not mounted)" in said or f"(there is no home at {world.path})" in said
    assert not has_anything(world)


def test_an_erasure_is_not_told_to_be_done_because_its_home_is_away(world: World) -> None:
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"))
    ask(world, by_ms=DAY_MS)
    assert "1 erasure open" in world.skips(erasure_sensor)
    world.path.rename(world.path.with_name("elsewhere"))
    world.reopen()

    with pytest.raises(StorageUnavailable, match=", mount its disk"):
        world.tick(erasure_sensor)


def test_a_verify_of_a_home_that_is_away_fails(world: World, away: Path) -> None:
    world.reopen()

    result = world.run_job("verify", dg.RunRequest(run_config={}))

    assert not result.success
    failure = result.failure_data_for_node("verify_logs")
    assert failure
    assert failure.user_failure_data
    assert ", mount its disk" in (failure.user_failure_data.description or "")


def test_what_the_schedule_verifies_does_not_fail_in_a_new_home(world: World) -> None:
    done = world.run_job("verify", dg.RunRequest(run_config={}, tags={TRIGGER_TAG: "schedule"}))

    assert done.success
    assert [line for level, line in world.told(done) if level == "WARNING" and "nothing was verified: " in line]


def test_a_run_that_died_is_not_settled_while_its_home_is_away(world: World, away: Path) -> None:
    run = world.instance.create_run_for_job(
        clean_logs,
        run_config={"ops": {"plan": {"config": {"logs": ["users-0"]}}}},
        status=dg.DagsterRunStatus.STARTED,
    )
    fail(world.instance, run)
    world.now_ms = time.time_ns() // 1_000_000
    world.reopen()

    with pytest.raises(StorageUnavailable, match=", mount its disk"):
        world.tick(failed_run_sensor)
    after = world.instance.get_run_by_id(run.run_id)
    assert after
    assert MARKED_TAG not in after.tags


def test_a_purge_of_a_home_that_is_away_says_that_nothing_was_purged(world: World, away: Path) -> None:
    world.reopen()

    done = world.run_job("purge", dg.RunRequest(run_config={}))

    assert done.success, "most homes without a catalog are new ones"
    assert [line for level, line in world.told(done) if level == "WARNING" and "nothing was purged: " in line]
