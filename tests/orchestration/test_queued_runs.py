"""A run that waits in Dagster's queue cleans nothing yet, and ticks and health say so."""

from __future__ import annotations

import dagster as dg

from tests.orchestration.conftest import World
from tests.orchestration.shipped import clean_logs, dirty_ratio_sensor, health_sensor
from tests.orchestration.test_siblings import HERE


def test_a_log_whose_run_is_queued_is_not_said_to_be_cleaned_and_all_of_them_are_counted(world: World) -> None:
    world.topic("users", 6)
    for partition in range(6):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition)
    (request,) = world.requests(dirty_ratio_sensor)
    world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.QUEUED, remote_job_origin=HERE
    )

    said = world.skips(dirty_ratio_sensor)

    assert "users-0 waits for its clean, whose run is queued" in said
    assert "and 3 more" in said
    assert "is being cleaned" not in said
    (event,) = world.tick(health_sensor).asset_events
    assert "its clean's run is queued" in str(event.metadata["worst"].value)
