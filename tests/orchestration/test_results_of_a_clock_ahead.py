"""What a check has found under a clock that was ahead is no newer than what is found after it."""

from __future__ import annotations

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from tests.orchestration.conftest import DAY_MS, World

CHECK = dg.AssetCheckKey(dg.AssetKey(["users", "clean"]), "G1_one_record_a_key")


def verify(world: World, name: str) -> bool:
    """Whether the check passes once this log was looked at."""
    config = {"ops": {"verify_logs": {"config": {"logs": [name]}}}}
    world.run_job("verify", dg.RunRequest(run_config=config))
    (last,) = world.instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=1)
    return last.status is AssetCheckExecutionRecordStatus.SUCCEEDED


def test_a_log_that_is_whole_again_is_not_red_because_it_was_broken_under_a_clock_that_was_ahead(world: World) -> None:
    world.topic("users", 2)
    for partition in (0, 1):
        world.append("users", ("a", "1"), partition=partition)
    repair = world.break_segment("users")
    world.now_ms += 300 * DAY_MS
    assert not verify(world, "users-0")
    world.now_ms -= 300 * DAY_MS

    assert not verify(world, "users-1"), "the other one is still broken"
    repair()
    assert verify(world, "users-0")
    assert verify(world, "users-1"), "both are whole now"
