"""A log whose clean failed and that ``verify`` finds whole is told as whole; it may be late, which a check says."""

from __future__ import annotations

import dagster as dg
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent

from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.shipped import KEYS, clean_logs


def test_it_is_not_said_to_pass_a_check_that_it_does_not_pass(world: World) -> None:
    world.topic("users", max_compaction_lag_ms=str(HOUR_MS))
    world.append("users", ("a", "1"), ("a", "2"))
    run = world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTED)
    planned = AssetMaterializationPlannedData(KEYS.clean("users"), partition="users-0")
    event = DagsterEvent.build_asset_materialization_planned_event("clean_logs", "plan", planned)
    world.instance.report_dagster_event(event, run.run_id)
    world.instance.report_run_failed(run)

    verified = world.run_job("verify", dg.RunRequest())

    checks = {each.check_name: each.passed for each in verified.get_asset_check_evaluations()}
    assert not checks["max_compaction_lag"]
    (told,) = world.instance.fetch_materializations(KEYS.clean("users"), limit=5).records
    assert told.asset_materialization
    assert told.asset_materialization.description == "verify finds nothing broken in it"
