"""A clean whose process died untold, with its machine for example, is ended after a day, any other run after a week.

Until then it counts as under way: its logs are not asked for, and it keeps its place in the pool.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._daemon.monitoring import run_monitoring

from keptlog.dagster.orchestration import in_flight
from keptlog.dagster.orchestration.own_runs import OwnRuns
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.instance import begin
from tests.orchestration.shipped import (
    AUTOMATION,
    DEFS,
    KEYS,
    clean_logs,
    dirty_ratio_sensor,
    failed_run_sensor,
    health_sensor,
)
from tests.orchestration.test_siblings import HERE

SETTINGS = yaml.safe_load((Path(__file__).parents[2] / "dagster.yaml").read_text())["run_monitoring"]


@pytest.fixture
def lost(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that Dagster takes for one that is under way; its log is due."""
    monkeypatch.setattr(dg.DagsterInstance, "run_monitoring_settings", SETTINGS)
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    run = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.STARTING, tags=clean_logs.tags
    )
    begin(world.instance, run)
    return run.run_id


def monitor(world: World, run_id: str, monkeypatch: pytest.MonkeyPatch, *, after_ms: int) -> dg.DagsterRunStatus:
    """Let Dagster's daemon look at a run some time later; what it is then."""
    (record,) = world.instance.get_run_records(dg.RunsFilter(run_ids=[run_id]))
    workspace: Any = None  # it is asked only where a launcher can say how its runs are
    with monkeypatch.context() as patch:
        patch.setattr(run_monitoring, "get_current_timestamp", lambda: time.time() + after_ms / 1000)
        run_monitoring.monitor_started_run(world.instance, workspace, record, logging.getLogger(__name__))
    run = world.instance.get_run_by_id(run_id)
    assert run
    return run.status


def test_after_a_day_it_is_ended_and_its_logs_are_asked_for_again(
    world: World, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "users-0 is being cleaned" in world.skips(dirty_ratio_sensor)

    assert monitor(world, lost, monkeypatch, after_ms=DAY_MS + HOUR_MS) is dg.DagsterRunStatus.FAILURE

    assert "marked as uncleanable: users-0" in world.skips(failed_run_sensor)
    world.now_ms += HOUR_MS
    assert world.requests(dirty_ratio_sensor)


def test_after_an_hour_whoever_waits_for_it_names_it_and_what_to_do(
    world: World, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lost not in world.skips(dirty_ratio_sensor)
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + HOUR_MS / 1000)

    said = world.skips(dirty_ratio_sensor)

    assert "users-0 is being cleaned; run " + lost in said
    assert "if its process has died, terminate it" in said
    (event,) = world.tick(health_sensor).asset_events
    assert lost in str(event.metadata["worst"].value)


def test_one_that_only_waits_for_hours_is_not_named_and_the_one_that_it_waits_for_is(
    world: World, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("carts")
    world.append("carts", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    waiting = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.QUEUED, remote_job_origin=HERE
    )
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + HOUR_MS / 1000)

    said = world.skips(dirty_ratio_sensor)

    assert "carts-0 waits for its clean, whose run is queued" in said
    assert lost in said
    assert waiting.run_id not in said


@pytest.mark.parametrize("name", ["verify", "purge", "ingest_kafka"])
def test_while_a_clean_is_queued_a_run_of_any_job_that_may_hold_its_place_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    (request,) = world.requests(dirty_ratio_sensor)
    queued = world.instance.create_run_for_job(
        clean_logs, run_config=request.run_config, status=dg.DagsterRunStatus.QUEUED, remote_job_origin=HERE
    )
    dead = world.instance.create_run_for_job(DEFS.get_job_def(name), status=dg.DagsterRunStatus.STARTING)
    begin(world.instance, dead)
    assert dead.run_id not in world.skips(dirty_ratio_sensor)
    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + HOUR_MS / 1000)

    said = world.skips(dirty_ratio_sensor)
    (event,) = world.tick(health_sensor).asset_events

    assert f"run {dead.run_id} is under way since" in said
    assert queued.run_id not in said
    assert dead.run_id in str(event.metadata["worst"].value)


def test_a_materialization_that_is_not_due_any_more_and_holds_the_place_is_named(world: World) -> None:
    world.topic("carts")
    asset = KEYS.clean("carts")
    run = world.instance.create_run_for_job(
        clean_logs, status=dg.DagsterRunStatus.STARTING, tags={"dagster/partition": "carts-0"}
    )
    found = world.instance.get_run_record_by_id(run.run_id)
    assert found
    materializes = run._replace(job_name="__ASSET_JOB", asset_selection=frozenset({asset}))
    record = found._replace(dagster_run=materializes, start_time=time.time() - 2 * HOUR_MS / 1000)
    (said,) = in_flight.slow_cleans(OwnRuns(world.instance), [record], ["users", "carts"])
    assert run.run_id in said
    assert in_flight.slow_cleans(OwnRuns(world.instance), [record], ["users"]) == ()


def test_a_run_of_a_job_of_the_projects_own_keeps_its_logs_waiting_and_is_named_after_an_hour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule starts it: Dagster stores no selection with such a run."""
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    nightly = dg.define_asset_job("nightly_users", selection=dg.AssetSelection.assets(KEYS.clean("users")))
    job = dg.Definitions.merge(world.defs, dg.Definitions(jobs=[nightly])).resolve_job_def("nightly_users")
    run = world.instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={"dagster/partition": "users-0"}
    )
    assert run.asset_selection is None
    assert "users-0 is being cleaned" in world.skips(dirty_ratio_sensor)

    monkeypatch.setattr(in_flight, "get_current_timestamp", lambda: time.time() + 2 * HOUR_MS / 1000)

    assert f"run {run.run_id} is under way since" in world.skips(dirty_ratio_sensor)


@pytest.mark.parametrize("job", [AUTOMATION.jobs.verify, AUTOMATION.jobs.ingest_kafka, AUTOMATION.jobs.purge])
def test_what_reads_or_ingests_for_two_days_goes_on(
    world: World, lost: str, monkeypatch: pytest.MonkeyPatch, job: dg.JobDefinition
) -> None:
    run = world.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTING, tags=job.tags)
    begin(world.instance, run)

    assert monitor(world, run.run_id, monkeypatch, after_ms=2 * DAY_MS) is dg.DagsterRunStatus.STARTED
    assert monitor(world, run.run_id, monkeypatch, after_ms=8 * DAY_MS) is dg.DagsterRunStatus.FAILURE


def test_one_that_is_under_way_for_hours_goes_on(world: World, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert monitor(world, lost, monkeypatch, after_ms=DAY_MS - HOUR_MS) is dg.DagsterRunStatus.STARTED
