"""Who waits for an ingest or a look through a topic that has been under way for an hour names it: it may have died."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster.orchestration import erasure_looks, in_flight
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME
from keptlog.ingest import lag
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import SETTINGS, ask, asked_for, passes
from tests.orchestration.ingesting import ingest_world
from tests.orchestration.instance import begin
from tests.orchestration.shipped import (
    AUTOMATION,
    erasure_sensor,
    health_sensor,
    ingest_kafka,
    ingest_lag_sensor,
    verify_erasures,
)


def begun(world: World, job: dg.JobDefinition, request: dg.RunRequest) -> str:
    """A run that Dagster takes for one that is under way."""
    run = world.instance.create_run_for_job(job, run_config=request.run_config, status=dg.DagsterRunStatus.STARTING)
    begin(world.instance, run)
    return run.run_id


@pytest.fixture
def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """After an undo it is now."""
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + HOUR_MS / 1000)
    return monkeypatch


def test_an_ingest_is_named_by_the_sensor_and_by_health(tmp_path: Path, an_hour_later: pytest.MonkeyPatch) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        (request,) = here.world.requests(ingest_lag_sensor)
        dead = begun(here.world, ingest_kafka, request)

        said = here.skips()
        (event,) = here.world.tick(health_sensor).asset_events
        an_hour_later.undo()

        assert f"run {dead} is under way since" in said
        assert "if its process has died, terminate it" in said
        assert "users is being ingested" in said
        assert dead in str(event.metadata["not_looked_at"].value)
        assert dead not in here.skips(), "an ingest may take its time"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING])
def test_an_ingest_that_never_came_up_is_named(
    tmp_path: Path, an_hour_later: pytest.MonkeyPatch, status: dg.DagsterRunStatus
) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.produce("users", ("a", "1"))
        here.knows("users", 0, 0, 0, 0)
        (request,) = here.world.requests(ingest_lag_sensor)
        run = here.world.instance.create_run_for_job(ingest_kafka, run_config=request.run_config, status=status)

        assert f"run {run.run_id} is under way since" in here.skips()


def test_one_that_ingests_what_nobody_waits_for_is_not_named(tmp_path: Path, an_hour_later: pytest.MonkeyPatch) -> None:
    with ingest_world(tmp_path / "home") as here:
        an_hour_later.setattr(lag, "WAIT_SECONDS", 1)
        here.knows("users", 0, bootstrap="127.0.0.1:1")
        dead = begun(here.world, ingest_kafka, dg.RunRequest(run_config={}))

        assert dead not in here.skips()


def test_a_purge_that_an_erasure_waits_for_is_named(world: World, an_hour_later: pytest.MonkeyPatch) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 1, **SETTINGS)
    world.append("users", ("user-7@example.org", "1"), ("other", "1"), age_ms=0)
    ask(world, by_ms=HOUR_MS)
    for _ in range(2):
        world.now_ms += 2 * HOUR_MS
        passes(world).clean()
        world.log_store.eraser().advance(now_ms=world.now_ms)
    (request,) = world.requests(erasure_sensor)
    assert (request.job_name, asked_for(request)) == (PURGE_JOB_NAME, ["users"])
    dead = begun(world, AUTOMATION.jobs.purge, request)

    said = world.skips(erasure_sensor)

    assert f"run {dead} is under way since" in said
    assert "users is being purged" in said


def test_a_look_at_everything_that_a_large_topic_waits_for_is_named(
    world: World, an_hour_later: pytest.MonkeyPatch
) -> None:
    an_hour_later.setattr(erasure_looks, "LARGE_BYTES", 1)
    world.topic("users", 1, **SETTINGS)
    world.append("users", ("user-7@example.org", "1"), ("other", "1"), age_ms=0)
    ask(world, by_ms=30 * DAY_MS)
    world.now_ms += 2 * HOUR_MS
    passes(world).clean()
    dead = begun(world, verify_erasures, dg.RunRequest(run_config={}))

    assert f"run {dead} is under way since" in world.skips(erasure_sensor)
