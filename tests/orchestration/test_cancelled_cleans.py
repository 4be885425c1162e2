"""A clean that somebody has cancelled is asked for again within the hour; until then ticks and health say so."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.storage.tags import RUN_KEY_TAG

from keptlog.log.words.iso_time import iso_time
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, health_sensor


@pytest.fixture
def users(world: World) -> World:
    """On a full hour, so each test ends within it."""
    world.now_ms -= world.now_ms % HOUR_MS
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"))
    return world


def submitted(world: World, request: dg.RunRequest) -> dg.DagsterRun:
    """As Dagster's daemon does it."""
    return world.instance.create_run_for_job(
        clean_logs,
        run_config=request.run_config,
        tags={**request.tags, RUN_KEY_TAG: request.run_key or ""},
        status=dg.DagsterRunStatus.STARTING,
    )


def cancelled(world: World) -> dg.DagsterRun:
    """The run that the sensor asks for, which somebody ends."""
    (request,) = world.requests(dirty_ratio_sensor)
    run = submitted(world, request)
    world.instance.report_run_canceled(run)
    return run


def row_of_health(world: World) -> str:
    (event,) = world.tick(health_sensor).asset_events
    table = str(event.metadata["worst_logs"].value)
    (row,) = [line for line in table.splitlines() if "users-0" in line]
    return row


def test_a_tick_says_that_its_run_was_cancelled_and_when_the_next_is_asked_for(users: World) -> None:
    run = cancelled(users)
    users.now_ms += HOUR_MS // 2

    assert users.skips(dirty_ratio_sensor) == (
        f"run {run.run_id}, which was to clean users-0, was cancelled: "
        f"the next is asked for at {iso_time(users.now_ms + HOUR_MS // 2)} at the latest"
    )
    users.now_ms += HOUR_MS // 2
    assert users.requests(dirty_ratio_sensor)


def test_health_does_not_say_that_the_log_is_cleaned_now(users: World) -> None:
    run = cancelled(users)
    at = iso_time(users.now_ms + HOUR_MS)

    row = row_of_health(users)

    assert f"run {run.run_id}, which was to clean it, was cancelled: the next is asked for at {at} at the latest" in row
    assert "to be cleaned now" not in row
    assert "| now |" not in row
    users.now_ms += HOUR_MS
    users.cursors.clear()
    row = row_of_health(users)
    assert "was cancelled" not in row
    assert "| now |" in row


def test_what_is_due_beside_it_is_asked_for_at_once_and_takes_it_along(users: World) -> None:
    cancelled(users)
    users.append("users", ("a", "1"), ("a", "2"), partition=1)

    (request,) = users.requests(dirty_ratio_sensor)

    assert request.run_config["ops"]["plan"]["config"]["logs"] == ["users-0", "users-1"]


def test_a_run_that_is_under_way_is_told_as_that(users: World) -> None:
    (request,) = users.requests(dirty_ratio_sensor)
    submitted(users, request)

    assert users.skips(dirty_ratio_sensor).startswith("users-0 is being cleaned")
    assert "it is being cleaned" in row_of_health(users)
