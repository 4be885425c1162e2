"""What somebody types into the launchpad, and Dagster lets through, stops no sensor: it costs that run alone."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.orchestration.in_flight import ingested_topics, is_refused_ingest
from tests.orchestration.conftest import World
from tests.orchestration.instance import begin
from tests.orchestration.shipped import (
    DEFS,
    clean_logs,
    dirty_ratio_sensor,
    failed_run_sensor,
    retention_sensor,
)

NOT_A_LIST: Any = None
BY_VARIABLE = [{"env": "LOGS_OF_TONIGHT"}]


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Its clock is Dagster's, and a log is due."""
    # Dagster creates no run whose variables it does not know.
    monkeypatch.setenv("LOGS_OF_TONIGHT", "users-0")
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    return world


def started(world: World, job: dg.JobDefinition, op: str, logs: Any) -> dg.DagsterRun:
    config = {"ops": {op: {"config": {"logs": logs}}}}
    run = world.instance.create_run_for_job(job, run_config=config, status=dg.DagsterRunStatus.STARTED)
    begin(world.instance, run)
    return run


def test_a_run_that_was_given_null_for_its_logs_is_waited_for_as_one_that_named_none(world: World) -> None:
    run = started(world, clean_logs, "plan", NOT_A_LIST)

    assert "users-0 is being cleaned" in world.skips(dirty_ratio_sensor)
    world.instance.report_run_failed(run, "Input should be a valid list")
    assert "it named no logs" in world.skips(failed_run_sensor)
    assert "no run has died" in world.skips(failed_run_sensor)
    assert world.requests(dirty_ratio_sensor)


@pytest.mark.parametrize("logs", [NOT_A_LIST, BY_VARIABLE], ids=["null", "variable"])
def test_a_retention_that_failed_of_what_was_typed_stops_no_later_one(world: World, logs: Any) -> None:
    world.topic("views", cleanup_policy="delete", retention_ms="1")
    world.append("views", ("a", "1"))
    run = started(world, DEFS.get_job_def("retention"), "remove_old_segments", logs)
    world.instance.report_run_failed(run, "Input should be a valid list")

    assert world.requests(retention_sensor(300))


def test_logs_that_a_variable_names_are_those_that_are_being_cleaned(world: World) -> None:
    world.topic("orders")
    world.append("orders", ("a", "1"), ("a", "2"))
    run = started(world, clean_logs, "plan", BY_VARIABLE)

    (request,) = world.requests(dirty_ratio_sensor)
    assert request.run_config == {"ops": {"plan": {"config": {"logs": ["orders-0"]}}}}
    world.instance.report_run_failed(run, "out of memory")
    assert "marked as uncleanable: users-0" in world.skips(failed_run_sensor)


def test_logs_of_a_variable_that_is_not_known_here_may_be_any(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    started(world, clean_logs, "plan", BY_VARIABLE)
    monkeypatch.delenv("LOGS_OF_TONIGHT")

    assert "users-0 is being cleaned" in world.skips(dirty_ratio_sensor)


@pytest.mark.parametrize(
    "typed", [{"topics": None}, {"topic_partitions": [{"env": "NOWHERE"}]}, {"into": {"env": "NOWHERE"}}], ids=str
)
def test_an_ingest_that_names_nothing_that_is_known_may_bring_in_anything(typed: Any) -> None:
    run = dg.DagsterRun("ingest_kafka", run_config={"ops": {"ingest": {"config": typed}}})

    assert ingested_topics(run) == set()


@pytest.mark.parametrize("resources", [None, {"spark": None}, {"spark": {"config": None}}, {"spark": {"config": "x"}}])
def test_what_is_no_configuration_of_a_resource_breaks_no_look_at_a_run(resources: Any) -> None:
    run = dg.DagsterRun("ingest_kafka", run_config={"ops": {}, "resources": resources})

    assert not is_refused_ingest(run)
