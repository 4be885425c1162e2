"""Logs whose retention run is queued or running are not asked for again, for as long as it can't be taken for dead."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from keptlog.dagster.orchestration import in_flight
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.shipped import AUTOMATION, clean_logs, retention_sensor
from tests.orchestration.test_siblings import HERE

SENSOR = retention_sensor(300)


@pytest.fixture
def asked(world: World) -> dg.RunRequest:
    """What a tick asks for of a topic that is appended to all the time."""
    world.topic("events", cleanup_policy="delete", retention_ms=str(HOUR_MS))
    world.append("events", ("a", "1"), age_ms=DAY_MS)
    world.append("events", ("b", "1"), age_ms=0)
    (request,) = world.requests(SENSOR)
    world.append("events", ("c", "1"), age_ms=0)
    return request


def under_way(world: World, request: dg.RunRequest, status: dg.DagsterRunStatus) -> None:
    world.instance.create_run_for_job(
        AUTOMATION.jobs.retention, run_config=request.run_config, status=status, remote_job_origin=HERE
    )


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED])
def test_they_are_left_to_it_and_a_tick_says_so(
    world: World, asked: dg.RunRequest, status: dg.DagsterRunStatus
) -> None:
    under_way(world, asked, status)

    assert world.skips(SENSOR) == "being retained, or waiting for a place: events-0"


def test_other_logs_are_asked_for_meanwhile(world: World, asked: dg.RunRequest) -> None:
    under_way(world, asked, dg.DagsterRunStatus.STARTED)
    world.topic("carts", cleanup_policy="delete", retention_ms=str(HOUR_MS))
    world.append("carts", ("a", "1"), age_ms=DAY_MS)
    world.append("carts", ("b", "1"), age_ms=0)

    (request,) = world.requests(SENSOR)

    assert request.tags["keptlog/topic_partitions"] == "carts-0"


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
)
def test_one_that_may_have_died_keeps_them_waiting_for_an_hour(
    world: World, asked: dg.RunRequest, monkeypatch: pytest.MonkeyPatch, status: dg.DagsterRunStatus
) -> None:
    under_way(world, asked, status)
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + 2 * HOUR_MS / 1000)

    (request,) = world.requests(SENSOR)

    assert request.run_key != asked.run_key


def test_one_that_waits_in_the_queue_keeps_them_waiting_for_as_long_as_it_does(
    world: World, asked: dg.RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way(world, asked, dg.DagsterRunStatus.QUEUED)
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + 2 * HOUR_MS / 1000)

    assert world.skips(SENSOR) == "being retained, or waiting for a place: events-0"


def test_those_that_wait_for_a_clean_are_told_apart(world: World, asked: dg.RunRequest) -> None:
    under_way(world, asked, dg.DagsterRunStatus.STARTED)
    world.topic("carts", cleanup_policy="compact,delete", retention_ms=str(HOUR_MS))
    world.append("carts", ("a", "1"), age_ms=DAY_MS)
    world.append("carts", ("b", "1"), age_ms=0)
    config = {"ops": {"plan": {"config": {"logs": ["carts-0"]}}}}
    world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)

    assert world.skips(SENSOR) == (
        "being retained, or waiting for a place: events-0; to be retained once their cleans are done: carts-0"
    )
